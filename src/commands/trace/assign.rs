//! `rota trace assign`: gives the jobs of a trace what it lacks, by rules in a script.

use anyhow::{Context, Result, bail};
use clap::Args;
use rota_core::workload::Workload;
use rota_scripts::assign::{JobFacts, ModelFacts, Rules};
use rota_scripts::shipped;
use rota_traces::assign::{self, COLUMNS, Cells, ModelOnCluster};
use rota_traces::format::{Setting, write_rota_remarked};
use rota_traces::stats;

use super::{Target, WriteArgs, counted, resolve, write_workload};
use crate::commands::inputs::Inputs;
use crate::commands::run::parse_set;
use rota_lab::report::grouped;
use rota_lab::results::{Input, replace_file};

pub(super) const EXAMPLES: &str = "\
Try:
  rota trace assign philly.csv --rules synergy --set language=50 -o jobs.csv
  rota trace assign philly.csv --rules elasticflow --profiles elasticflow-a100 --cluster a100-128 -o elastic.csv
  rota trace assign philly.csv --rules ./mine.rhai --seed 7 -o jobs.csv
  rota trace assign --list                              the rules that come with Rota";

/// A trace and the rules.
#[derive(Args, Clone, Debug)]
pub(crate) struct AssignArgs {
    /// The rules: a .rhai file, or a name of --list; they must be given [default: none]
    ///
    /// A script with one function: `fn assign(job, models) { #{ model: pick(models).name } }`. The map that it returns has columns of
    /// Rota's table; what it does not name stays. `docs/traces.md` lists what a rule can use.
    #[arg(long, value_name = "FILE|NAME", required_unless_present = "list")]
    rules: Option<String>,
    /// Set a parameter of the rules [default: as the script says]
    #[arg(long = "set", value_name = "KEY=VALUE")]
    set: Vec<String>,
    /// List the rules that come with Rota, with their parameters
    #[arg(long)]
    list: bool,
    #[command(flatten)]
    write: WriteArgs,
}

/// Assigns.
pub(super) fn run(args: &AssignArgs) -> Result<()> {
    if args.list {
        return list();
    }
    let name = args
        .rules
        .as_deref()
        .context("which rules? `rota trace assign --list` shows those that come with Rota")?;
    let (file, text) = text_of(name)?;
    let write = &args.write;
    let inputs = resolve(write.file.as_ref(), &write.inputs)?;
    let [load] = inputs.loads.as_slice() else {
        bail!("--jobs-per-hour: a trace has one load, give one value")
    };
    let known = assign::models(&inputs.profiles, &inputs.cluster);
    let models: Vec<ModelFacts> = known.iter().map(model_facts).collect();
    let set = parse_set(&args.set)?;
    let mut rules = Rules::load(&file, &text, &set, &models, COLUMNS)?;
    let cells = job_facts(&load.workload, &inputs)
        .map(|job| rules.assign(&job, Box::new(assign::numbers(inputs.seed, job.number))))
        .collect::<Result<Vec<_>, _>>()?;
    let setting =
        Setting { options: inputs.options.clone(), ..Setting::new(&inputs.cluster, &inputs.profiles) };
    let workload = assign::assign(&load.workload, &cells, &setting)?;
    eprintln!("{}", told(&cells, &file, inputs.seed));
    match (write.to.unwrap_or(Target::Rota), &write.out) {
        (Target::Rota, out) => {
            let sum = Input::of_bytes("rules", &file, text.as_bytes()).sha256;
            let remark = remark(&file, &sum, inputs.seed, &rules);
            let text = write_rota_remarked(&workload, &inputs.cluster, &remark);
            match out {
                Some(path) => {
                    replace_file(path, text.as_bytes())?;
                    eprintln!("{} written to {}", counted(workload.jobs.len(), "job"), path.display());
                }
                None => print!("{text}"),
            }
            Ok(())
        }
        (target, out) => write_workload(&workload, &inputs, target, out.as_ref()),
    }
}

fn list() -> Result<()> {
    for script in shipped::RULES {
        println!("{:<12} {}", script.name, script.summary());
        for parameter in Rules::load(script.file, script.source, &[], &[], COLUMNS)?.parameters() {
            let (name, default) = (&parameter.name, &parameter.default);
            println!("{:<12}   {name}={default} ({}): {}", "", parameter.domain, parameter.about);
        }
    }
    Ok(())
}

/// The name of a script for messages and its text: a path, or one that comes with Rota.
fn text_of(name: &str) -> Result<(String, String)> {
    if let Some(script) = shipped::RULES.iter().find(|script| script.name == name) {
        return Ok((script.file.to_owned(), script.source.to_owned()));
    }
    let text = std::fs::read_to_string(name).with_context(|| {
        let names: Vec<&str> = shipped::RULES.iter().map(|script| script.name).collect();
        format!("{name}: no such file, and no rules that come with Rota ({})", names.join(", "))
    })?;
    Ok((name.to_owned(), text))
}

fn model_facts(model: &ModelOnCluster<'_>) -> ModelFacts {
    let profile = &model.entry.profile;
    ModelFacts {
        name: profile.name.clone(),
        class: profile.class.clone(),
        batches: model.batches.clone(),
        levels: model.entry.levels.iter().map(|(batch, levels)| (*batch, levels.clone())).collect(),
        cpu_gain: model.cpu_gain,
        mem_gain: model.mem_gain,
        gpu_mem_bytes: profile.gpu_mem_bytes,
    }
}

fn job_facts(workload: &Workload, inputs: &Inputs) -> impl Iterator<Item = JobFacts> {
    let durations_s = stats::durations_s(workload, &inputs.cluster);
    let jobs = workload.jobs.iter().zip(&workload.truths).zip(durations_s).enumerate();
    jobs.map(|(number, ((job, truth), duration_s))| JobFacts {
        number,
        name: job.name.to_string(),
        tenant: workload.tenants.get(job.tenant.index()).cloned().unwrap_or_default(),
        arrival_s: job.arrival.as_secs_f64(),
        duration_s,
        gpus: job.gpus.asked,
        model: job.profile.name.clone(),
        batch: job.batch,
        ended: truth.end.word().to_owned(),
        deadline_s: job.deadline.first().map(|deadline| deadline.as_secs_f64()),
    })
}

/// What the rules changed, as a sentence.
fn told(cells: &[Cells], file: &str, seed: u64) -> String {
    let counts = COLUMNS.iter().filter_map(|column| {
        let n = cells.iter().filter(|cells| cells.get(*column).is_some_and(|cell| !cell.is_empty())).count()
            as u64;
        (n > 0).then(|| format!("{column} of {}", grouped(n)))
    });
    let counts: Vec<String> = counts.collect();
    let what = if counts.is_empty() { "nothing".to_owned() } else { counts.join(", ") };
    format!("{file} with seed {seed} gave {what} jobs")
}

/// What the trace keeps of how it was made: the heading of a column without cells.
fn remark(file: &str, sha256: &str, seed: u64, rules: &Rules) -> String {
    let parameters: Vec<String> = rules
        .parameters()
        .iter()
        .map(|parameter| format!(" {}={}", parameter.name, parameter.value))
        .collect();
    format!(
        "assigned by {file} (sha256 {}) seed {seed}{}",
        &sha256[..16.min(sha256.len())],
        parameters.join("")
    )
}
