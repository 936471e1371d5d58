//! `rota doctor`: what works on this machine, on one screen. Simulation needs nothing but this program; the live cluster and
//! reports use more, and what is absent there is no fault.
//!
//! GPUs, control groups and containers are looked at by `rota-agent check`, which is what will use them.

use std::fmt;
use std::path::PathBuf;
use std::process::{Command, ExitCode};
use std::time::Instant;

use anyhow::Result;
use clap::Args;
use rota_solvers::{Highs, Limits, Model, ModelError, Sense, SolveStatus, Solver, Start};
use serde::{Deserialize, Serialize};

use super::live::agent_program;
use super::run::{human, load_policy};
use rota_lab::shared::shared_folder;
use rota_lab::solve::ChildSolver;

/// How to report.
#[derive(Args, Clone, Debug)]
pub(crate) struct DoctorArgs {
    /// Print JSON instead of a table
    #[arg(long)]
    json: bool,
}

/// What was found about one thing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
struct Finding {
    name: &'static str,
    state: State,
    found: String,
    /// What to do, or what works without it; may be empty.
    advice: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum State {
    /// Works.
    Good,
    /// Not there; some commands cannot be used, and the advice says which.
    Absent,
    /// There, or needed by everything, and does not work.
    Broken,
}

/// Prints the findings; the exit code is 1 when something is broken.
pub(super) fn run(args: &DoctorArgs) -> Result<ExitCode> {
    let mut findings = vec![program(), machine(), policies(), solver("solver", &mut Highs)];
    findings.push(match ChildSolver::of_this_program() {
        Ok(mut child) => solver("solver child", &mut child),
        Err(error) => Finding::broken("solver child", error.to_string(), "start rota by its whole path"),
    });
    findings.extend(agent());
    findings.push(browser());
    findings.push(shared());
    let is_broken = findings.iter().any(|finding| finding.state == State::Broken);
    if args.json {
        let report = serde_json::json!({ "format": 1, "is_broken": is_broken, "findings": findings });
        println!("{}", serde_json::to_string_pretty(&report)?);
    } else {
        findings.iter().for_each(|finding| println!("{finding}"));
        println!(
            "\n{}",
            if is_broken { "something is broken: see above" } else { "nothing that is needed is broken" }
        );
    }
    Ok(if is_broken { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

impl Finding {
    fn good(name: &'static str, found: impl Into<String>) -> Self {
        Finding { name, state: State::Good, found: found.into(), advice: String::new() }
    }

    fn absent(name: &'static str, found: impl Into<String>, advice: impl Into<String>) -> Self {
        Finding { name, state: State::Absent, found: found.into(), advice: advice.into() }
    }

    fn broken(name: &'static str, found: impl Into<String>, advice: impl Into<String>) -> Self {
        Finding { name, state: State::Broken, found: found.into(), advice: advice.into() }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = match self.state {
            State::Good => "good",
            State::Absent => "absent",
            State::Broken => "BROKEN",
        };
        write!(f, "{state:7} {:13} {}", self.name, self.found)?;
        match self.advice.as_str() {
            "" => Ok(()),
            advice => write!(f, "\n{:22}{advice}", ""),
        }
    }
}

fn program() -> Finding {
    let path =
        std::env::current_exe().map_or_else(|error| error.to_string(), |path| path.display().to_string());
    Finding::good("rota", format!("{}, {path}", env!("CARGO_PKG_VERSION")))
}

fn machine() -> Finding {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let memory = match memory_gb() {
        Some((total, free)) => format!("{total:.1} GB of memory, {free:.1} GB of it free"),
        None => "memory unknown".to_owned(),
    };
    Finding::good("machine", format!("{cores} cores, {memory}"))
}

/// All memory and what is available, in GB, where the kernel says so.
fn memory_gb() -> Option<(f64, f64)> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let kilobytes = |key: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(key))?;
        line.split_whitespace().next()?.parse::<f64>().ok()
    };
    Some((kilobytes("MemTotal:")? * 1024.0 / 1e9, kilobytes("MemAvailable:")? * 1024.0 / 1e9))
}

/// Compiles every shipped script.
fn policies() -> Finding {
    let scripts = rota_scripts::shipped::ALL;
    let failed =
        scripts.iter().find_map(|script| load_policy(script.name, &[]).err().map(|e| (script.name, e)));
    match failed {
        None => Finding::good("policies", format!("{} shipped scripts compile", scripts.len())),
        Some((name, error)) => {
            Finding::broken("policies", format!("{name}: {error:#}"), "install Rota again")
        }
    }
}

/// Weights and values of the items that the solver packs into [`CAPACITY`].
const ITEMS: [(f64, f64); 8] = [
    (12.0, 24.0),
    (7.0, 13.0),
    (11.0, 23.0),
    (8.0, 15.0),
    (9.0, 16.0),
    (6.0, 11.0),
    (5.0, 9.0),
    (14.0, 28.0),
];
const CAPACITY: f64 = 33.0;

/// Solves a small model whose optimum is known from trying all subsets.
fn solver(name: &'static str, solver: &mut dyn Solver) -> Finding {
    let model = match knapsack() {
        Ok(model) => model,
        Err(error) => return Finding::broken(name, error.to_string(), "report this"),
    };
    let started = Instant::now();
    let solution = solver.solve(&model, &Limits::default(), Start::Cold);
    match (&solution.status, solution.objective) {
        (SolveStatus::Optimal, Some(objective)) if (objective - best_by_trial()).abs() < 1e-6 => {
            Finding::good(
                name,
                format!("HiGHS finds the optimum of a small model in {}", human(started.elapsed())),
            )
        }
        (status, objective) => Finding::broken(
            name,
            format!("HiGHS answers {status:?} with {objective:?}, the optimum is {}", best_by_trial()),
            "commands and policies that solve models cannot be used",
        ),
    }
}

fn knapsack() -> Result<Model, ModelError> {
    let mut model = Model::new(Sense::Maximize);
    let mut terms = Vec::new();
    for (at, (weight, value)) in ITEMS.into_iter().enumerate() {
        let item = model.binary(&format!("item{at}"))?;
        model.set_cost(item, value)?;
        terms.push((item, weight));
    }
    model.row("capacity", f64::NEG_INFINITY, CAPACITY, terms)?;
    Ok(model)
}

fn best_by_trial() -> f64 {
    let of = |set: u32| {
        let chosen = ITEMS.iter().enumerate().filter(|(at, _)| set >> at & 1 == 1);
        chosen.fold((0.0, 0.0), |(weight, value), (_, item)| (weight + item.0, value + item.1))
    };
    let fitting = (0..1 << ITEMS.len()).map(of).filter(|(weight, _)| *weight <= CAPACITY);
    fitting.map(|(_, value)| value).fold(0.0, f64::max)
}

/// The agent's program, and what it says of this machine.
fn agent() -> Vec<Finding> {
    let program = match agent_program() {
        Ok(program) => program,
        Err(error) => {
            let advice = "only the live cluster and `rota profile run` need it";
            return vec![Finding::absent("rota-agent", error.to_string(), advice)];
        }
    };
    let version = Command::new(&program).arg("--version").output();
    let version = version.map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned());
    let wanted = format!("rota-agent {}", env!("CARGO_PKG_VERSION"));
    let own = match version {
        Ok(found) if found == wanted => {
            Finding::good("rota-agent", format!("{}, {}", env!("CARGO_PKG_VERSION"), program.display()))
        }
        Ok(found) => Finding::broken(
            "rota-agent",
            format!("{} says `{found}`, `{wanted}` is expected", program.display()),
            "install rota and rota-agent of one version",
        ),
        Err(error) => {
            Finding::broken("rota-agent", format!("{}: {error}", program.display()), "install it again")
        }
    };
    let verdicts = verdicts(&program, "docker");
    let mut findings = vec![own];
    for (name, shown, without) in [
        ("GPUs", "GPUs", "everything else works; `rota up` emulates GPUs"),
        ("cgroups", "cgroups", "jobs run without limits of CPU and memory"),
    ] {
        findings.push(match verdicts.iter().find(|verdict| verdict.name == name) {
            Some(verdict) if verdict.status == "good" => Finding::good(shown, verdict.found.clone()),
            Some(verdict) => Finding::absent(shown, verdict.found.clone(), without),
            None => Finding::absent(shown, "`rota-agent check` does not say", without),
        });
    }
    findings.push(containers(&program, &verdicts));
    findings
}

/// Docker's client, or else podman's.
fn containers(program: &PathBuf, with_docker: &[Verdict]) -> Finding {
    let of = |verdicts: &[Verdict]| verdicts.iter().find(|verdict| verdict.name == "containers").cloned();
    client(of(with_docker), || of(&verdicts(program, "podman")))
}

/// The first client that answers. One that gives GPUs in a roundabout way is a warning of the agent's, and answers; one that does
/// not work is a warning too, since jobs run as processes without it, so what was found has to say which it is.
fn client(docker: Option<Verdict>, podman: impl FnOnce() -> Option<Verdict>) -> Finding {
    let answers = |verdict: &Verdict| verdict.status == "good" || verdict.found.contains("` answers");
    let found =
        |verdict: Verdict| Finding { advice: verdict.advice, ..Finding::good("containers", verdict.found) };
    if let Some(docker) = docker.clone().filter(answers) {
        return found(docker);
    }
    match podman() {
        Some(podman) if answers(&podman) => found(podman),
        podman => {
            let told: Vec<String> =
                [docker, podman].into_iter().flatten().map(|verdict| verdict.found).collect();
            let told =
                if told.is_empty() { "`rota-agent check` does not say".to_owned() } else { told.join("; ") };
            Finding::absent(
                "containers",
                told,
                "jobs run as processes; `rota submit --image` needs docker or podman",
            )
        }
    }
}

/// A line of `rota-agent check --json`.
#[derive(Clone, Debug, Deserialize)]
struct Verdict {
    name: String,
    status: String,
    found: String,
    #[serde(default)]
    advice: String,
}

fn verdicts(program: &PathBuf, container_client: &str) -> Vec<Verdict> {
    #[derive(Deserialize)]
    struct Report {
        verdicts: Vec<Verdict>,
    }
    let mut check = Command::new(program);
    check.args(["check", "--json", "--container-client", container_client]);
    let text = check.output().map(|output| output.stdout).unwrap_or_default();
    serde_json::from_slice::<Report>(&text).map(|report| report.verdicts).unwrap_or_default()
}

/// A program that opens report.html.
fn browser() -> Finding {
    let named = std::env::var("BROWSER").ok();
    let usual = ["xdg-open", "open", "chromium", "chromium-browser", "google-chrome", "firefox"];
    let paths = std::env::var_os("PATH").unwrap_or_default();
    let is_there = |name: &str| std::env::split_paths(&paths).any(|path| path.join(name).is_file());
    match named.or_else(|| usual.into_iter().find(|name| is_there(name)).map(str::to_owned)) {
        Some(name) => Finding::good("browser", format!("{name} opens reports")),
        None => {
            Finding::absent("browser", "none found", "copy report.html to another machine: it is one file")
        }
    }
}

/// Traces and recorded outputs of the original programs.
fn shared() -> Finding {
    let folder = shared_folder();
    match folder.is_dir() {
        true => Finding::good("originals", format!("traces and recorded outputs in {}", folder.display())),
        false => Finding::absent(
            "originals",
            format!("no folder {}", folder.display()),
            "`rota reproduce` needs public traces there (ROTA_SHARED names it); `rota conform` runs the cases that it carries",
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Answers every model with nothing.
    struct Useless;

    impl Solver for Useless {
        fn solve(&mut self, _: &Model, _: &Limits, _: Start<'_>) -> rota_solvers::Solution {
            rota_solvers::Solution::failed("out of order", std::time::Duration::ZERO)
        }
    }

    fn verdict(status: &str, found: &str) -> Option<Verdict> {
        let text = |text: &str| text.to_owned();
        Some(Verdict {
            name: text("containers"),
            status: text(status),
            found: text(found),
            advice: text("do this"),
        })
    }

    #[test]
    fn a_container_client_that_answers_is_good_even_if_its_gpus_need_advice() {
        let (docker, podman) =
            ("`docker` does not work: no daemon", "`podman` answers; GPUs are device files");
        let found = client(verdict("warning", docker), || verdict("warning", podman));
        assert_eq!((found.state, found.found.as_str()), (State::Good, podman));
        assert_eq!(found.advice, "do this");
        let none =
            client(verdict("warning", docker), || verdict("warning", "`podman` cannot be run: no file"));
        assert_eq!(none.state, State::Absent);
        assert_eq!(none.found, format!("{docker}; `podman` cannot be run: no file"));
        let docker = client(verdict("good", "`docker` answers"), || panic!("podman is not asked"));
        assert_eq!((docker.state, docker.found.as_str()), (State::Good, "`docker` answers"));
    }

    #[test]
    fn a_solver_that_fails_is_found_broken() {
        assert_eq!(solver("solver", &mut Highs).state, State::Good);
        let finding = solver("solver", &mut Useless);
        assert_eq!(finding.state, State::Broken);
        assert!(finding.found.contains("out of order"), "{finding}");
    }
}
