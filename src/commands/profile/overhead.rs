//! `rota profile overhead`: the cost of changing a job's GPUs, next to ElasticFlow's published seconds.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, Result, bail};
use clap::Args;
use comfy_table::Table;
use rota_core::time::Span;
use rota_head::changes as observed;
use rota_traces::profile::{Measured, MeasuredChange, ProfileEntry, ProfileSet, load, write};
use rota_transport::measure::{MeasureResources, MeasureSpec};

use super::levels::parse_cpus;
use super::new_table;
use crate::commands::deploy::read_journal;
use crate::commands::live::{Client, HeadArgs, agent_program};
use rota_lab::profile::overhead::change::Change;
use rota_lab::profile::overhead::published::{self, CHANGES, ChangeKind, FIGURE_12};
use rota_lab::profile::overhead::script;
use rota_lab::profile::rates::machine_name;
use rota_lab::results::replace_file;

const EXAMPLES: &str = "\
The command runs with some GPUs, is told to stop, writes its checkpoint, and runs again with other GPUs. It must use the job protocol and write a checkpoint when asked (docs/job-protocol.md), as `rota-agent emulate` does.

Try:
  rota profile overhead --published
  rota profile overhead --pretend --profiles mine.toml --model resnet50 --write -- rota-agent emulate --profile mine.toml
  rota profile overhead --trace overhead_measurement_traces/bert_migration_overhead.txt -- python train.py";

/// What to time.
#[derive(Args, Clone, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct OverheadArgs {
    /// Training command [default: none, with --head or --published]
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<String>,
    /// Address of a head: read the changes from the journal of a live cluster, and run nothing [default: run the command]
    #[arg(long, value_name = "HOST:PORT", conflicts_with_all = ["change", "trace", "published"])]
    head: Option<String>,
    /// Folder with your certificate and key [default: $ROTA_CREDENTIALS, else the one that `rota up` wrote]
    #[arg(long, value_name = "DIR", requires = "head")]
    credentials: Option<PathBuf>,
    /// Print ElasticFlow's Figure 12 and run nothing
    #[arg(long)]
    published: bool,
    /// Changes of GPU counts, such as 1-2,2-1; with an m at the end, the job moves to another node: 8-8m [default: those of Figure
    /// 12 that this machine's GPUs allow]
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = parse_change)]
    change: Vec<ChangeKind>,
    /// ElasticFlow's overhead trace, whose changes are timed [default: none]
    #[arg(long, value_name = "FILE", conflicts_with = "change")]
    trace: Option<PathBuf>,
    /// Profile file of the model [default: none]
    #[arg(long, value_name = "FILE")]
    profiles: Option<String>,
    /// Name of the model in the profile file and in Figure 12 [default: the only one in the file]
    #[arg(long, value_name = "NAME")]
    model: Option<String>,
    /// Write the measured costs into the profile file, so that simulations use them
    #[arg(long, requires = "profiles")]
    write: bool,
    /// Iterations to run before the job is stopped
    #[arg(long, value_name = "N", default_value_t = 5.0)]
    settle: f64,
    /// Number of times each change is timed; the median counts
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=99))]
    repeats: u32,
    /// CPUs for each GPU
    #[arg(long, value_name = "N", default_value = "1", value_parser = parse_cpus)]
    cpus: u64,
    /// Tell the command about CPUs and GPUs that this machine may not have, and limit nothing; for emulated jobs
    #[arg(long)]
    pretend: bool,
    /// Seconds of the command's time in one real second, for emulated jobs
    #[arg(long, value_name = "FACTOR", default_value_t = 1.0)]
    time_scale: f64,
    /// Stop a run after this time
    #[arg(long, value_name = "TIME", default_value = "10m", value_parser = Span::parse)]
    run_limit: Span,
}

fn parse_change(text: &str) -> Result<ChangeKind, String> {
    let (plain, is_moved) = text.strip_suffix('m').map_or((text, false), |plain| (plain, true));
    let parsed = plain.split_once('-').and_then(|(from, to)| Some((from.parse().ok()?, to.parse().ok()?)));
    match parsed {
        Some((from, to)) if from > 0 && to > 0 => Ok((from, to, is_moved)),
        _ => Err(format!("`{text}`: write a change such as 1-2, or 8-8m to another node")),
    }
}

/// Times the changes, prints them, and writes them if asked to.
pub(super) fn run(args: &OverheadArgs) -> Result<()> {
    if args.published {
        println!("{}", published_table());
        return Ok(());
    }
    if args.head.is_some() {
        return observe(args);
    }
    if args.command.is_empty() {
        bail!("nothing to run: give a command after --, or --published for the published numbers only");
    }
    let changes = changes(args)?;
    let mut measured = Vec::new();
    // Removed at the end; it has a folder for each node.
    let place = tempfile::Builder::new().prefix("rota-").tempdir()?;
    let result = changes.iter().try_for_each(|change| -> Result<()> {
        let timed = time(args, *change, place.path())?;
        eprintln!(
            "{} → {} GPUs{}: {:.3} s",
            timed.from,
            timed.to,
            if timed.moved { ", to another node" } else { "" },
            timed.checkpoint_s + timed.restart_s
        );
        measured.push(timed);
        Ok(())
    });
    println!("{}", table(args, &measured));
    if args.write && !measured.is_empty() {
        write_back(args, &measured)?;
    }
    result
}

/// What happened on a live cluster: each change once, with the mean of all jobs of a model.
fn observe(args: &OverheadArgs) -> Result<()> {
    let (address, credentials) = (args.head.clone(), args.credentials.clone());
    let head = HeadArgs { head: address, credentials, ..HeadArgs::default() };
    let journal = read_journal(&mut Client::new(&head)?)?;
    let is_asked = |change: &observed::Change| args.model.as_ref().is_none_or(|model| *model == change.model);
    let mut by_change: BTreeMap<(String, ChangeKind), Vec<MeasuredChange>> = BTreeMap::new();
    for observed::Change { model, change, .. } in observed::changes(&journal).into_iter().filter(is_asked) {
        by_change.entry((model, (change.from, change.to, change.moved))).or_default().push(change);
    }
    if by_change.is_empty() {
        println!("no job of the journal was moved or scaled while it ran");
        return Ok(());
    }
    let headings = ["model", "change", "jobs", "checkpoint s", "restart s", "in all s", "published s"];
    let mut table = new_table(&headings, 2);
    let mut all = Vec::new();
    for ((model, key), changes) in &by_change {
        let mean = mean_of(changes);
        let printed = published::of(model).and_then(|printed| published::seconds(printed, *key));
        table.add_row([
            model.clone(),
            name_of(*key),
            changes.len().to_string(),
            format!("{:.3}", mean.checkpoint_s),
            format!("{:.3}", mean.restart_s),
            format!("{:.3}", mean.checkpoint_s + mean.restart_s),
            printed.map_or(String::new(), |s| s.to_string()),
        ]);
        all.push(mean);
    }
    println!("{table}\nin the cluster's own time; a restart ends here when every rank runs");
    if args.write { write_back(args, &all) } else { Ok(()) }
}

fn mean_of(changes: &[MeasuredChange]) -> MeasuredChange {
    let n = changes.len().max(1) as f64;
    let mean = |of: fn(&MeasuredChange) -> f64| changes.iter().map(of).sum::<f64>() / n;
    let (from, to, moved) =
        changes.first().map_or((0, 0, false), |change| (change.from, change.to, change.moved));
    MeasuredChange {
        from,
        to,
        moved,
        checkpoint_s: mean(|c| c.checkpoint_s),
        restart_s: mean(|c| c.restart_s),
    }
}

fn changes(args: &OverheadArgs) -> Result<Vec<ChangeKind>> {
    let mut changes = match &args.trace {
        Some(file) => {
            let text = std::fs::read_to_string(file).with_context(|| file.display().to_string())?;
            script::changes(&script::read(&file.display().to_string(), &text)?)
        }
        None if args.change.is_empty() => CHANGES.to_vec(),
        None => args.change.clone(),
    };
    changes.sort_unstable();
    changes.dedup();
    if changes.is_empty() {
        bail!("the trace changes no job's GPUs");
    }
    Ok(changes)
}

/// The median of a few times.
fn time(args: &OverheadArgs, (from, to, is_moved): ChangeKind, place: &Path) -> Result<MeasuredChange> {
    let agent = agent_program()?;
    let mut times = Vec::new();
    for number in 0..args.repeats {
        let here = std::env::current_dir()?;
        let checkpoint_dir = place.join(format!("checkpoints-{from}-{to}-{is_moved}-{number}"));
        let spec = MeasureSpec {
            number: number * 2 + 1,
            command: args.command.clone(),
            environment: [("PYTHONUNBUFFERED", "1"), ("ROTA_REPORT_EVERY_S", "0.02")]
                .map(|(name, value)| (name.to_owned(), value.to_owned()))
                .into(),
            directory: here.clone(),
            run_dir: place.to_owned(),
            gpus: from,
            gpu_type: String::new(),
            cpu_micro: args.cpus,
            mem_bytes: 0,
            storage_bps: 0,
            // More than is ever done: it ends when it is told to.
            iterations: 1e9,
            done: 0.0,
            data_dir: here,
            checkpoint_dir,
            container: None,
            resources: if args.pretend { MeasureResources::Told } else { MeasureResources::Held },
            time_limit_s: args.run_limit.as_secs_f64(),
            silence_limit_s: args.run_limit.as_secs_f64(),
            grace_s: args.run_limit.as_secs_f64(),
        };
        let node = |name: &str| place.join(name);
        let run_dirs = (node("node0"), if is_moved { node("node1") } else { node("node0") });
        let change =
            Change { spec, gpus: (from, to), run_dirs, settle: args.settle, time_scale: args.time_scale };
        times.push(change.time(&agent)?);
    }
    times.sort_by(|a, b| (a.checkpoint_s + a.restart_s).total_cmp(&(b.checkpoint_s + b.restart_s)));
    times.get(times.len() / 2).copied().context("nothing was timed")
}

fn name_of((from, to, is_moved): ChangeKind) -> String {
    if is_moved { format!("{from} GPUs to another node") } else { format!("{from} → {to} GPUs") }
}

fn table(args: &OverheadArgs, measured: &[MeasuredChange]) -> Table {
    let model = args.model.as_deref().unwrap_or_default();
    let printed = published::of(model);
    let mut table = new_table(&["change", "checkpoint s", "restart s", "in all s", "published s"], 1);
    for change in measured {
        let key = (change.from, change.to, change.moved);
        table.add_row([
            name_of(key),
            format!("{:.3}", change.checkpoint_s),
            format!("{:.3}", change.restart_s),
            format!("{:.3}", change.checkpoint_s + change.restart_s),
            printed
                .and_then(|printed| published::seconds(printed, key))
                .map_or(String::new(), |s| s.to_string()),
        ]);
    }
    table
}

fn published_table() -> String {
    let mut headings = vec!["model".to_owned(), "profiling s".to_owned()];
    headings.extend(CHANGES.iter().map(|change| name_of(*change)));
    let mut table = new_table(&headings.iter().map(String::as_str).collect::<Vec<_>>(), 1);
    for published in &FIGURE_12 {
        let numbers = [published.profiling_s].into_iter().chain(published.changes_s);
        table.add_row([published.model.to_owned()].into_iter().chain(numbers.map(|s| s.to_string())));
    }
    format!(
        "ElasticFlow (ASPLOS'23), Figure 12: (a) seconds to profile a model, (b) seconds each change costs it, on A100s\n\
         {table}\ndeepspeech2's changes repeat bert's in the original's plot script"
    )
}

/// Puts what was measured into the profile file; what simulations charge is the mean over all changes.
fn write_back(args: &OverheadArgs, measured: &[MeasuredChange]) -> Result<()> {
    let (Some(file), model) = (&args.profiles, args.model.as_deref()) else { return Ok(()) };
    let set = load(file)?;
    if !Path::new(file).exists() {
        bail!("--write: {file} is built in; write it to a file first, or name one of your own");
    }
    let mut entries: Vec<ProfileEntry> = set.entries().to_vec();
    let at = match (model, entries.len()) {
        (Some(model), _) => entries.iter().position(|entry| entry.profile.name == model),
        (None, 1) => Some(0),
        (None, _) => bail!("--write: {file} has several models, name one with --model"),
    };
    let entry = at
        .and_then(|at| entries.get_mut(at))
        .with_context(|| format!("model `{model:?}` is not in {file}"))?;
    let mean = |of: fn(&MeasuredChange) -> f64| {
        Span::from_secs_f64(measured.iter().map(of).sum::<f64>() / measured.len().max(1) as f64)
    };
    let profile = Arc::make_mut(&mut entry.profile);
    profile.checkpoint = mean(|change| change.checkpoint_s);
    profile.restart = mean(|change| change.restart_s);
    let known = entry.measured.take().unwrap_or_else(|| Measured {
        command: args.command.join(" "),
        machine: machine_name(),
        day: time::OffsetDateTime::now_utc().date().to_string(),
        tool: format!("rota {}", env!("CARGO_PKG_VERSION")),
        ..Measured::default()
    });
    entry.measured = Some(Measured { changes: measured.to_vec(), ..known });
    let text = write(&ProfileSet::new(set.name.clone(), entries));
    replace_file(Path::new(file), text.as_bytes())?;
    println!("written to {file}: simulations charge it at every restart");
    Ok(())
}
