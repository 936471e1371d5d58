//! `rota policy duel`: searches for cases in which a policy is worse than another, or violates a property.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use clap::Args;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use rota_scripts::scenario;

use super::run::parse_set;
use rota_lab::duel::{
    Arena, Findings, Match, Parameters, Property, Question, Search, Setting, Sizes, explained, matches,
};
use rota_lab::results::replace_file;

/// Which policies are compared, and on which cases.
#[derive(Args, Clone, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct DuelArgs {
    /// Policy to test: an allocation (tune), an order (srtf), a placement, a script, or a whole policy
    ///
    /// Parts that it lacks are the same on both sides: an order named by one side is used for both, otherwise the orders of
    /// --order are used in turn; --with adds further parts.
    #[arg(value_name = "P")]
    pub policy: String,
    /// Policy to compare it with: greedy, opt, las+proportional, ./mine.rhai, … [default: none, with --property]
    #[arg(long, value_name = "Q", required_unless_present = "property", conflicts_with = "property")]
    pub against: Option<String>,
    /// Search for violations of a property instead: one of those below, or `all` [default: none]
    #[arg(long, value_name = "NAME")]
    pub property: Vec<String>,
    /// Orders to use in turn where neither side names one
    #[arg(long, value_name = "ORDER", value_delimiter = ',', default_values = ["fifo", "srtf", "las"])]
    pub order: Vec<String>,
    /// Parts added to both sides, e.g. `--with tune+consolidate` [default: none]
    #[arg(long, value_name = "PARTS")]
    pub with: Option<String>,
    /// Set a parameter of P [default: as the scripts say]
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub set: Vec<String>,
    /// Set a parameter of Q [default: as the scripts say]
    #[arg(long = "set-against", value_name = "KEY=VALUE", requires = "against")]
    pub set_against: Vec<String>,

    /// Number of cases to try
    #[arg(long, value_name = "N", default_value_t = 10_000, value_parser = clap::value_parser!(u64).range(1..), help_heading = "Cases")]
    pub cases: u64,
    /// Seed from which the cases are drawn
    #[arg(long, value_name = "N", default_value_t = 0, help_heading = "Cases")]
    pub seed: u64,
    /// The most nodes of a case
    #[arg(long, value_name = "N", default_value_t = Sizes::default().nodes, value_parser = clap::value_parser!(u32).range(1..=64), help_heading = "Cases")]
    pub nodes: u32,
    /// The most GPUs of a node
    #[arg(long, value_name = "N", default_value_t = Sizes::default().gpus, value_parser = clap::value_parser!(u32).range(1..=16), help_heading = "Cases")]
    pub gpus: u32,
    /// The most jobs of a case
    #[arg(long, value_name = "N", default_value_t = Sizes::default().jobs, value_parser = clap::value_parser!(u32).range(1..=1000), help_heading = "Cases")]
    pub jobs: u32,
    /// All jobs arrive at the beginning
    #[arg(long = "static", help_heading = "Cases")]
    pub is_static: bool,
    /// All nodes are equal, and jobs are not slower on several nodes
    #[arg(long, help_heading = "Cases")]
    pub plain: bool,
    /// Use the cluster and jobs of a scenario file [default: cases are drawn]
    #[arg(long, value_name = "FILE.scn", conflicts_with = "out", help_heading = "Cases")]
    pub case: Option<PathBuf>,

    /// How much worse P may be [default: 5%; for a property, its own margin]
    #[arg(long, value_name = "PERCENT", value_parser = parse_margin)]
    pub margin: Option<f64>,
    /// Compare the speed of all jobs after the first decision, not completion times
    #[arg(long, conflicts_with = "property")]
    pub first_round: bool,

    /// Write the counterexamples as scenarios, which `rota policy test FILE.scn` runs again [default: not written]
    #[arg(short, long, value_name = "FILE.scn", help_heading = "Output")]
    pub out: Option<PathBuf>,
    /// Print JSON instead of tables
    #[arg(long, help_heading = "Output")]
    pub json: bool,
    /// Show no progress
    #[arg(short, long, help_heading = "Output")]
    pub quiet: bool,
}

const EXAMPLES: &str = "\
Small clusters and workloads are drawn at random, and both policies run each of them. The case in which P has the worst mean completion time is reduced to the smallest one that still shows it and printed as a scenario. To find the decision that caused the loss, P decides up to some round and the other policy from there on: the first round after which the other policy can no longer make up for the loss is explained. The exit code is 0 when nothing exceeds the margin, 1 when a counterexample was found.

Properties (--property):
  ends       every job that is not refused ends
  conserves  no job waits while its GPUs are free with its share (or its demand, if that is less)
  serves     no job waits while its GPUs are free with its whole demand
  share      no job runs with less than its proportional share (or its demand, if that is less) of anything
  tops       no job runs below its demand while its own nodes could give it all of it
  leaves     nothing that would speed a running job up is left on its nodes
  roams      no job that can move at no cost runs below its demand while another node has room for all of it
  steady     skipping rounds in which nothing changed does not change the result
  capacity   one more node, or half as many CPUs or half as much memory again, does not raise the mean completion time
  fewer      removing a job does not raise the mean completion time of the others

Try:
  rota policy duel tune --against greedy                 under fifo, srtf and las in turn
  rota policy duel las+tune --against las+opt --cases 500 --static
  rota policy duel ./mine.rhai --against srtf --with tune --margin 10%
  rota policy duel consolidate --against first-fit --with fifo+tune
  rota policy duel tune --property share --property conserves
  rota policy duel tune --against greedy --out worst.scn
  rota policy test worst.scn                             is the result still the same?
  rota policy duel tune --against opt --case worst.scn   what would another policy do?";

/// Searches and reports; 1 when a counterexample was found.
pub(crate) fn run(args: &DuelArgs) -> Result<ExitCode> {
    if let Some(path) = &args.case {
        return one_case(args, path);
    }
    let mut is_refuted = false;
    let mut scenarios = Vec::new();
    let mut all = Vec::new();
    for question in questions(args)? {
        let findings = findings(args, question)?;
        is_refuted |= findings.is_refuted();
        scenarios.extend(findings.counterexample.iter().map(|found| found.scenario.clone()));
        if args.json {
            all.push(findings);
        } else {
            println!("{}", findings.to_text());
        }
    }
    match (args.json, all.as_slice()) {
        (true, [only]) => print!("{}", only.to_json()),
        (true, _) => println!("{}", serde_json::to_string_pretty(&all)?),
        _ => {}
    }
    if let (Some(path), false) = (&args.out, scenarios.is_empty()) {
        replace_file(path, scenarios.join("\n").as_bytes())?;
        eprintln!("wrote {0}; run it again with: rota policy test {0}", path.display());
    }
    Ok(if is_refuted { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// Compares the policies on the case of a scenario file; 1 when it exceeds the margin under any order.
fn one_case(args: &DuelArgs, path: &Path) -> Result<ExitCode> {
    let text = std::fs::read_to_string(path).with_context(|| path.display().to_string())?;
    let scenarios = scenario::parse(&text).with_context(|| path.display().to_string())?;
    let scenario = scenarios.first().with_context(|| format!("{}: no scenario", path.display()))?;
    let setting = Setting::from(scenario);
    let mut is_refuted = false;
    let mut all = Vec::new();
    for question in questions(args)? {
        for of in sides(args)? {
            let found = explained(&of, &setting, &mut Arena::load(question, &of, &set(args)?)?);
            is_refuted |= found.ratio > 1.0 + margin(args, question);
            all.push(found);
        }
    }
    match args.json {
        true => println!("{}", serde_json::to_string_pretty(&all)?),
        false => all.iter().for_each(|found| println!("{}", found.judgement())),
    }
    Ok(if is_refuted { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// What is asked.
fn questions(args: &DuelArgs) -> Result<Vec<Question>> {
    let comparison = if args.first_round { Question::Speed } else { Question::Jct };
    if args.property.is_empty() {
        return Ok(vec![comparison]);
    }
    if args.property.iter().any(|name| name == "all") {
        return Ok(Property::ALL.iter().map(|about| Question::Property(about.property)).collect());
    }
    let names = || Property::ALL.iter().map(|about| about.name).collect::<Vec<_>>().join(", ");
    let found = |name: &String| {
        let property = Property::find(name);
        property.map(Question::Property).with_context(|| {
            format!("--property {name}: unknown; the properties are {}, and `all` for all of them", names())
        })
    };
    args.property.iter().map(found).collect()
}

fn findings(args: &DuelArgs, question: Question) -> Result<Findings> {
    let search = Search {
        matches: sides(args)?,
        question,
        set: set(args)?,
        sizes: Sizes {
            nodes: args.nodes,
            gpus: args.gpus,
            jobs: args.jobs,
            is_static: args.is_static,
            is_plain: args.plain,
        },
        n_cases: args.cases,
        seed: args.seed,
        margin: margin(args, question),
    };
    let bar = bar(args);
    let findings = search.run(&|| bar.inc(1))?;
    bar.finish_and_clear();
    Ok(findings)
}

/// The pairs of policies; a policy is not compared with itself.
fn sides(args: &DuelArgs) -> Result<Vec<Match>> {
    let found = matches(&args.policy, args.against.as_deref(), &args.order, args.with.as_deref())?;
    let set = set(args)?;
    match found.iter().find(|of| of.against.as_ref() == Some(&of.policy) && set.policy == set.against) {
        Some(of) => {
            bail!("{} against itself: name two different policies, or set different parameters", of.policy)
        }
        None => Ok(found),
    }
}

fn margin(args: &DuelArgs, question: Question) -> f64 {
    match (args.margin, question) {
        (Some(margin), _) => margin,
        (None, Question::Property(property)) => property.about().margin,
        (None, _) => 0.05,
    }
}

fn set(args: &DuelArgs) -> Result<Parameters> {
    Ok(Parameters { policy: parse_set(&args.set)?, against: parse_set(&args.set_against)? })
}

fn bar(args: &DuelArgs) -> ProgressBar {
    let is_quiet = args.quiet || args.json;
    let target = if is_quiet { ProgressDrawTarget::hidden() } else { ProgressDrawTarget::stderr() };
    let bar = ProgressBar::with_draw_target(Some(args.cases), target);
    let style = "{bar:32} {human_pos}/{human_len} cases, {per_sec}, {eta} left";
    bar.set_style(ProgressStyle::with_template(style).expect("a valid template").progress_chars("━╸ "));
    bar
}

/// `5%`, `5 %` or `0.05`.
fn parse_margin(text: &str) -> Result<f64, String> {
    let (number, whole) = match text.trim().strip_suffix('%') {
        Some(percent) => (percent.trim(), 100.0),
        None => (text.trim(), 1.0),
    };
    let margin = number.parse::<f64>().ok().filter(|number| number.is_finite() && *number >= 0.0);
    margin.map(|margin| margin / whole).ok_or_else(|| format!("`{text}` is not a margin: write 5% or 0.05"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_help_names_every_property_and_what_it_says() {
        for about in Property::ALL {
            let line = EXAMPLES.lines().find(|line| line.trim_start().starts_with(about.name));
            assert!(line.is_some_and(|line| line.ends_with(about.says)), "{}: {line:?}", about.name);
        }
    }

    #[test]
    fn margins_are_read_as_parts_or_as_percent() {
        assert_eq!(parse_margin("5%"), Ok(0.05));
        assert_eq!(parse_margin(" 2.5 % "), Ok(0.025));
        assert_eq!(parse_margin("0.1"), Ok(0.1));
        assert!(parse_margin("-1%").is_err() && parse_margin("much").is_err());
    }
}
