//! From the settings in a study to a run: they become a command line of `rota simulate`, so that both mean the same.

use std::collections::VecDeque;
use std::path::Path;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use anyhow::{Context, Result, bail};
use clap::Parser;
use rota_scripts::study::{Setting, Settings};
use rota_scripts::{ScriptPolicy, Source, shipped};
use rota_traces::faults;

use crate::commands::inputs::{Inputs, input};
use crate::commands::run::{self, RunArgs};
use rota_lab::results::{Input, RunResult};
use rota_lab::study::{Execute, Key, RunError};

/// Inputs kept for the next run that needs the same.
const MAX_INPUTS: usize = 16;
/// What a study writes itself, and what has no meaning in a batch.
const NOT_HERE: [&str; 10] =
    ["out", "plot", "size", "font_size", "by", "timeline", "json", "quiet", "bound", "help"];
/// Settings that name something read: what counts is the text behind the name.
const NAMES: [&str; 6] = ["policy", "cluster", "workload", "profiles", "trace", "faults"];

/// One run as on a command line.
#[derive(Parser)]
#[command(no_binary_name = true, disable_help_flag = true)]
struct OneRun {
    #[command(flatten)]
    args: RunArgs,
}

/// Runs on this machine, with inputs shared between runs that need the same.
pub(crate) struct Simulate {
    /// Version and checksum of the program: another program may decide otherwise.
    program: String,
    inputs: Recent<Inputs>,
    files: Recent<Vec<Input>>,
}

/// A run that makes sense, as far as can be said without reading its trace.
pub(crate) struct Plan {
    args: RunArgs,
    /// The options that determine the inputs.
    inputs_key: String,
}

impl Simulate {
    /// Reads the program's own checksum.
    pub(crate) fn new() -> Result<Self> {
        let path = std::env::current_exe().context("cannot find the program itself")?;
        let program = Input::of_file("program", &path)?;
        let program = format!("{} {}", env!("CARGO_PKG_VERSION"), program.sha256);
        Ok(Simulate { program, inputs: Recent::default(), files: Recent::default() })
    }

    fn planned(&self, settings: &Settings) -> Result<(Plan, Key)> {
        let args = parse(settings)?;
        let is_original = run::runs_originals(&args)?;
        let inputs_key = format!(
            "{:?} {:?} {} {is_original} {} {} {:?} {:?} {}",
            args.inputs,
            args.faults,
            args.ends_as_recorded,
            args.estimate_bias,
            args.estimate_noise,
            args.estimate_per,
            args.window,
            args.prioritize
        );
        let files = self.files.find_or_make(&format!("{:?}", args.inputs), || args.inputs.files())?;
        let [policy] = args.policies.as_slice() else {
            bail!("a run needs one policy, as in `policy: \"las+tune\"`")
        };
        let scripts = if is_original { vec![policy.clone()] } else { scripts(policy)? };
        let mut parts: Vec<String> = vec![self.program.clone()];
        let options = settings.iter().filter(|(name, _)| !NAMES.contains(&name.as_str()));
        parts.extend(options.flat_map(|(name, setting)| words(name, setting)));
        parts.extend(files.iter().map(|file| format!("{} {}", file.role, file.sha256)));
        if let Some(name) = &args.faults {
            parts.push(format!("faults {}", input("faults", name, &faults::BUILT_IN)?.sha256));
        }
        // A reader may be chosen by how a name ends.
        parts.extend(
            args.inputs
                .trace
                .as_deref()
                .and_then(Path::extension)
                .map(|end| end.to_string_lossy().into_owned()),
        );
        parts.extend(scripts);
        let key = Key::new(parts.iter().map(String::as_str));
        Ok((Plan { args, inputs_key }, key))
    }
}

impl Execute for Simulate {
    type Plan = Plan;

    fn plan(&self, settings: &Settings) -> Result<(Plan, Key), RunError> {
        self.planned(settings).map_err(|error| failed(&error))
    }

    fn run(&self, plan: &Plan) -> Result<RunResult, RunError> {
        let inputs = self.inputs.find_or_make(&plan.inputs_key, || run::prepared(&plan.args))?;
        run::single(&plan.args, &inputs).map_err(|error| failed(&error))
    }
}

/// A failure in one line: tables and lists show one for each run, and the script's own line is where it says.
fn failed(error: &anyhow::Error) -> RunError {
    let told = crate::commands::in_one_line(error);
    let mut lines = told.lines().map(str::trim);
    let first = lines.next().unwrap_or_default().to_owned();
    let hint = lines.find_map(|line| line.strip_prefix("hint: "));
    RunError { why: hint.map_or(first.clone(), |hint| format!("{first}; {hint}")) }
}

/// Settings as options; what the parser says is said in a line.
fn parse(settings: &Settings) -> Result<RunArgs> {
    if let Some((name, _)) = settings.iter().find(|(name, _)| NOT_HERE.contains(&name.as_str())) {
        bail!("{name}: a study writes its own files, a run in it cannot have this");
    }
    let argv: Vec<String> = settings.iter().flat_map(|(name, setting)| words(name, setting)).collect();
    let parsed = OneRun::try_parse_from(&argv).map_err(|error| {
        let text = error.to_string();
        let told = text.lines().map(str::trim).take_while(|line| !line.starts_with("Usage:"));
        let told: Vec<&str> = told.filter(|line| !line.is_empty() && !line.starts_with("For more")).collect();
        anyhow::anyhow!("{}", told.join("; ").trim_start_matches("error: ").to_owned())
    })?;
    let args = parsed.args;
    if args.inputs.jobs_per_hour.len() > 1 {
        bail!("jobs_per_hour: a run has one load; `sweep` makes a run for each");
    }
    Ok(args)
}

/// A setting as words of a command line.
fn words(name: &str, setting: &Setting) -> Vec<String> {
    let option = format!("--{}", name.replace('_', "-"));
    match setting {
        Setting::Flag(true) => vec![option],
        Setting::Flag(false) => Vec::new(),
        Setting::Pairs(pairs) => pairs
            .iter()
            .flat_map(|(key, value)| [option.clone(), format!("{key}={}", plain(value))])
            .collect(),
        other => vec![format!("{option}={}", plain(other))],
    }
}

fn plain(setting: &Setting) -> String {
    match setting {
        Setting::Flag(flag) => flag.to_string(),
        Setting::Whole(whole) => whole.to_string(),
        Setting::Number(number) => number.to_string(),
        Setting::Text(text) => text.clone(),
        Setting::List(values) => values.iter().map(plain).collect::<Vec<_>>().join(","),
        Setting::Pairs(pairs) => {
            pairs.iter().map(|(key, value)| format!("{key}={}", plain(value))).collect::<Vec<_>>().join(",")
        }
    }
}

/// The scripts of a policy: a shipped one by name and text, another by its text alone, wherever it lies.
fn scripts(policy: &str) -> Result<Vec<String>> {
    let sources = ScriptPolicy::sources_of(policy).with_context(|| format!("policy {policy}"))?;
    let part = |source: &Source| {
        let sha256 = Input::of_bytes("policy", &source.file, source.text.as_bytes()).sha256;
        // Which stages of it are used is in the part's name.
        let (script, stage) = source.name.split_once(':').unwrap_or((&source.name, ""));
        let name =
            shipped::find(script).filter(|script| script.file == source.file).map(|script| script.name);
        [name.unwrap_or_default(), stage, &sha256]
            .iter()
            .filter(|word| !word.is_empty())
            .copied()
            .collect::<Vec<_>>()
            .join(" ")
    };
    Ok(sources.iter().map(part).collect())
}

/// Made by the first thread that asks; the others wait for it.
type Cell<T> = Arc<OnceLock<Result<Arc<T>, RunError>>>;

/// The last few things made, each made once even when several threads ask at the same time.
struct Recent<T> {
    kept: Mutex<VecDeque<(String, Cell<T>)>>,
}

impl<T> Default for Recent<T> {
    fn default() -> Self {
        Recent { kept: Mutex::default() }
    }
}

impl<T> Recent<T> {
    fn find_or_make(&self, key: &str, make: impl FnOnce() -> Result<T>) -> Result<Arc<T>, RunError> {
        let cell = {
            let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
            match kept.iter().position(|(known, _)| known == key) {
                Some(at) => {
                    let entry = kept.remove(at).expect("it was found there");
                    kept.push_back(entry);
                }
                None => {
                    kept.push_back((key.to_owned(), Arc::default()));
                    if kept.len() > MAX_INPUTS {
                        kept.pop_front();
                    }
                }
            }
            Arc::clone(&kept.back().expect("one was put there").1)
        };
        cell.get_or_init(|| make().map(Arc::new).map_err(|error| failed(&error))).clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(text: &str) -> Setting {
        Setting::Text(text.to_owned())
    }

    fn planned(settings: &[(&str, Setting)]) -> Result<Key, RunError> {
        let settings: Settings =
            settings.iter().map(|(name, setting)| ((*name).to_owned(), setting.clone())).collect();
        Simulate::new().expect("the program").plan(&settings).map(|(_, key)| key)
    }

    #[test]
    fn inputs_are_shared_by_runs_of_the_same_kind_of_rules() {
        let simulate = Simulate::new().expect("the program");
        let key = |set: &str| {
            let pair = ("compat".to_owned(), text(set));
            let settings =
                vec![("policy".to_owned(), text("edf")), ("set".to_owned(), Setting::Pairs(vec![pair]))];
            simulate.plan(&settings).map(|(plan, _)| plan.inputs_key).expect("a plan")
        };
        assert_eq!(key("artifact"), key("artifact"));
        assert_ne!(key("artifact"), key("none"), "originals also read the run times of a trace");
    }

    #[test]
    fn settings_are_the_options_of_simulate() {
        let settings = vec![
            ("jobs_per_hour".to_owned(), Setting::Number(8.5)),
            ("multi_gpu".to_owned(), Setting::Flag(true)),
            ("policy".to_owned(), text("las+tune")),
            ("set".to_owned(), Setting::Pairs(vec![("threshold".into(), Setting::Whole(5))])),
            (
                "split".to_owned(),
                Setting::List(vec![Setting::Whole(20), Setting::Whole(70), Setting::Whole(10)]),
            ),
            ("static".to_owned(), Setting::Flag(false)),
        ];
        let args = parse(&settings).expect("options");
        assert_eq!((args.inputs.jobs_per_hour, args.inputs.multi_gpu), (vec![8.5], true));
        assert_eq!((args.set, args.inputs.is_static), (vec!["threshold=5".to_owned()], false));
        assert!(args.inputs.split.is_some());
    }

    #[test]
    fn what_is_no_option_is_said_with_the_nearest() {
        let why = planned(&[("jobs_per_hr", Setting::Whole(8)), ("policy", text("las"))])
            .expect_err("no such option")
            .why;
        assert!(why.contains("--jobs-per-hr") && why.contains("--jobs-per-hour"), "{why}");
        let why = planned(&[("jobs", text("many")), ("policy", text("las"))]).expect_err("no number").why;
        assert!(why.contains("invalid value 'many'"), "{why}");
        let why = planned(&[("out", text("dir")), ("policy", text("las"))]).expect_err("not here").why;
        assert!(why.starts_with("out: "), "{why}");
        assert!(
            planned(&[("seed", Setting::Whole(1))]).expect_err("no policy").why.contains("needs one policy")
        );
    }

    #[test]
    fn the_key_follows_everything_that_a_result_depends_on() {
        let dir = tempfile::tempdir().expect("a folder");
        let script = dir.path().join("mine.rhai");
        std::fs::write(&script, "fn order(jobs, now) { rank(jobs.gpus) }").expect("a script");
        let path = script.display().to_string();
        let base = planned(&[("policy", text(&path)), ("seed", Setting::Whole(1))]).expect("a key");
        let again = planned(&[("policy", text(&path)), ("seed", Setting::Whole(1))]).expect("a key");
        assert_eq!(base, again);
        let moved = dir.path().join("moved.rhai");
        std::fs::copy(&script, &moved).expect("copied");
        let moved = planned(&[("policy", text(&moved.display().to_string())), ("seed", Setting::Whole(1))]);
        assert_eq!(moved, Ok(base.clone()), "where a script lies does not matter");
        for other in [
            vec![("policy", text(&path)), ("seed", Setting::Whole(2))],
            vec![("policy", text("las")), ("seed", Setting::Whole(1))],
            vec![("cluster", text("philly")), ("policy", text(&path)), ("seed", Setting::Whole(1))],
            vec![
                ("policy", text(&path)),
                ("seed", Setting::Whole(1)),
                ("set", Setting::Pairs(vec![("a".into(), Setting::Whole(1))])),
            ],
        ] {
            assert_ne!(planned(&other), Ok(base.clone()), "{other:?}");
        }
        std::fs::write(&script, "fn order(jobs, now) { rank(-jobs.gpus) }").expect("changed");
        assert_ne!(planned(&[("policy", text(&path)), ("seed", Setting::Whole(1))]), Ok(base));
    }
}
