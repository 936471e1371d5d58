//! The command of one point: what the user typed, with batch, workers, iterations and data put in where the command
//! expects them. Where both the profiler and the command give one, the profiler's takes precedence, with a note.

use super::grid::Point;
use super::perf_file;

/// Options through which the command gets what changes from point to point. Empty means that it has no such option.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OptionNames {
    /// Option for the batch size.
    pub batch: String,
    /// Option for the number of workers that load data.
    pub workers: String,
    /// Option for the number of iterations to do.
    pub iterations: String,
    /// Option for the folder with the data.
    pub data: String,
    /// Option for the job's name.
    pub job_name: String,
    /// What the command means by its batch and its name.
    pub manner: Manner,
}

/// What a command means by its batch and its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Manner {
    /// One batch for all GPUs, one name for all runs.
    Usual,
    /// As Synergy's scripts: the batch of one GPU, and a name for each run, after which it leaves its file.
    Synergy,
}

impl OptionNames {
    /// The options that most scripts accept.
    pub fn usual() -> Self {
        let own = str::to_owned;
        OptionNames {
            manner: Manner::Usual,
            batch: own("--batch-size"),
            workers: own("--workers"),
            iterations: own("--max-iterations"),
            data: own("--data"),
            job_name: String::new(),
        }
    }

    /// The options of scripts that come with Synergy, or are written for its profiler.
    pub fn synergy() -> Self {
        let own = str::to_owned;
        OptionNames {
            batch: own("-b"),
            job_name: own("--job-name"),
            manner: Manner::Synergy,
            ..OptionNames::usual()
        }
    }

    /// Nothing: the command reads its environment.
    pub fn none() -> Self {
        let empty = String::new;
        OptionNames {
            manner: Manner::Usual,
            batch: empty(),
            workers: empty(),
            iterations: empty(),
            data: empty(),
            job_name: empty(),
        }
    }
}

/// A command and what to put into it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Invocation {
    command: Vec<String>,
    names: OptionNames,
    iterations: u64,
    data: Option<String>,
    job_name: Option<String>,
    overruled: Vec<String>,
}

/// Option names that scripts for Synergy treat as the same.
const SAME: [&[&str]; 2] = [&["--batch-size", "--batch", "-b"], &["--workers", "-j"]];

impl Invocation {
    /// The command with everything taken out that the profiler sets. `sets_batch` is whether batches are swept.
    pub fn new(
        command: &[String],
        names: OptionNames,
        iterations: u64,
        data: Option<String>,
        job_name: Option<String>,
        sets_batch: bool,
    ) -> Self {
        let mut ours = vec![names.workers.clone(), names.iterations.clone()];
        ours.extend(sets_batch.then(|| names.batch.clone()));
        ours.extend(data.as_ref().map(|_| names.data.clone()));
        ours.extend(job_name.as_ref().map(|_| names.job_name.clone()));
        let is_ours = |names: &&&[&str]| ours.iter().any(|name| names.contains(&name.as_str()));
        let same = SAME.iter().filter(is_ours).flat_map(|names| names.iter().copied());
        let same: Vec<String> = same.map(str::to_owned).collect();
        ours.extend(same);
        ours.retain(|name| !name.is_empty());
        let (command, overruled) = without(command, &ours);
        Invocation { command, names, iterations, data, job_name, overruled }
    }

    /// Options of the command that were replaced by the profiler's.
    pub fn overruled(&self) -> &[String] {
        &self.overruled
    }

    /// The job's name at a point.
    pub fn job_at(&self, point: &Point) -> Option<String> {
        let name = self.job_name.as_ref()?;
        Some(match self.names.manner {
            Manner::Usual => name.clone(),
            Manner::Synergy => perf_file::job_name(name, point),
        })
    }

    /// The command for a point.
    pub fn at(&self, point: &Point) -> Vec<String> {
        let workers = (point.cpus().floor() as u64).max(1);
        let batch = match self.names.manner {
            Manner::Usual => point.batch,
            Manner::Synergy => point.batch / point.gpus.max(1),
        };
        let no_name = String::new();
        let values = [
            ("{gpus}", &no_name, Some(point.gpus.to_string())),
            ("{batch}", &self.names.batch, (batch > 0).then(|| batch.to_string())),
            ("{workers}", &self.names.workers, Some(workers.to_string())),
            ("{iterations}", &self.names.iterations, Some(self.iterations.to_string())),
            ("{data}", &self.names.data, self.data.clone()),
            ("{job}", &self.names.job_name, self.job_at(point)),
        ];
        let mut command = self.command.clone();
        for (place, name, value) in values {
            let Some(value) = value else { continue };
            let has_place = command.iter().any(|word| word.contains(place));
            if has_place {
                command.iter_mut().for_each(|word| *word = word.replace(place, &value));
            } else if !name.is_empty() {
                command.extend([name.clone(), value]);
            }
        }
        command
    }
}

/// A command without some options and their values, and what was taken out.
fn without(command: &[String], names: &[String]) -> (Vec<String>, Vec<String>) {
    let mut kept = Vec::new();
    let mut taken = Vec::new();
    let mut words = command.iter().peekable();
    while let Some(word) = words.next() {
        let is_whole = names.contains(word);
        let is_joined = names.iter().any(|name| word.starts_with(&format!("{name}=")));
        // A value that is a placeholder of the profiler stays: the user put it there for the profiler.
        let next_is_place = words.peek().is_some_and(|next| next.starts_with('{'));
        match (is_whole, is_joined) {
            (true, _) if next_is_place => kept.push(word.clone()),
            (true, _) => {
                let value = words.next_if(|next| !next.starts_with("--")).cloned().unwrap_or_default();
                taken.push(format!("{word} {value}").trim().to_owned());
            }
            (_, true) if !word.contains("={") => taken.push(word.clone()),
            _ => kept.push(word.clone()),
        }
    }
    (kept, taken)
}
