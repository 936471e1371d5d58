//! ElasticFlow's overhead traces: lists of commands that its master replays. The first line is the number of workers;
//! then `R` runs a job (one line for each node), `K` kills one, `W` waits, and `G`, `F`, `T`, `RE`, `S` are about process
//! groups, which do not exist here. Only what changes a job's GPUs is taken out of it.

use std::collections::{BTreeMap, BTreeSet};

use super::published::ChangeKind;

/// One state of the job: GPUs, and the node of the first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stage {
    /// The model's name in the trace.
    pub model: String,
    /// Global batch size.
    pub batch: u32,
    /// GPUs in all.
    pub gpus: u32,
    /// Workers it runs on.
    pub nodes: BTreeSet<u32>,
}

/// A text that is not a trace of changes.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{file}:{line}: got \"{text}\", expected {expected}")]
pub struct ScriptError {
    /// Name of the file, for messages.
    pub file: String,
    /// Counted from 1.
    pub line: usize,
    /// Text of the line.
    pub text: String,
    /// What belongs there.
    pub expected: &'static str,
}

/// The stages of a trace, in order; those of several jobs one after the other.
pub fn read(file: &str, text: &str) -> Result<Vec<Stage>, ScriptError> {
    let mut stages: Vec<Stage> = Vec::new();
    // Lines of one stage by job: a job on two nodes has two.
    let mut gathering: BTreeMap<u32, Stage> = BTreeMap::new();
    for (at, line) in text.lines().enumerate() {
        let wrong =
            |expected| ScriptError { file: file.to_owned(), line: at + 1, text: line.to_owned(), expected };
        let words: Vec<&str> = line.split_whitespace().collect();
        match words.as_slice() {
            [] => {}
            [workers] if at == 0 => {
                workers.parse::<u32>().map_err(|_| wrong("the number of workers"))?;
            }
            ["R", rest @ ..] => {
                let (worker, job, stage) = run(rest).ok_or_else(|| {
                    wrong(
                        "R worker model batch job nproc nnodes node_rank address port gpu_mask iterations …",
                    )
                })?;
                match gathering.get_mut(&job) {
                    // The same node twice is a new stage whose predecessor was not killed.
                    Some(known) if !known.nodes.contains(&worker) => {
                        known.gpus = known.gpus.saturating_add(stage.gpus);
                        known.nodes.insert(worker);
                    }
                    _ => stages.extend(gathering.insert(job, stage)),
                }
            }
            ["K", _, job, ..] => {
                let job: u32 = job.parse().map_err(|_| wrong("K worker job"))?;
                stages.extend(gathering.remove(&job));
            }
            ["W", seconds] => {
                seconds.parse::<f64>().map_err(|_| wrong("W seconds"))?;
            }
            ["G" | "F" | "T" | "RE" | "S", ..] => {}
            _ => return Err(wrong("one of the commands R, K, W, G, F, T, RE, S")),
        }
    }
    stages.extend(gathering.into_values());
    Ok(stages)
}

/// The changes between stages of one model and batch: GPUs before and after, and whether no node stayed.
pub fn changes(stages: &[Stage]) -> Vec<ChangeKind> {
    let pairs =
        stages.windows(2).filter(|pair| (&pair[0].model, pair[0].batch) == (&pair[1].model, pair[1].batch));
    let changes = pairs.map(|pair| (pair[0].gpus, pair[1].gpus, pair[0].nodes.is_disjoint(&pair[1].nodes)));
    changes.filter(|(from, to, is_moved)| from != to || *is_moved).collect()
}

fn run(words: &[&str]) -> Option<(u32, u32, Stage)> {
    let [worker, model, batch, job, _nproc, _nnodes, _rank, _address, _port, mask, iterations, ..] = words
    else {
        return None;
    };
    let worker: u32 = worker.parse().ok()?;
    let mask: u64 = mask.parse().ok()?;
    iterations.parse::<f64>().ok()?;
    let stage = Stage {
        model: (*model).to_owned(),
        batch: batch.parse().ok()?,
        gpus: mask.count_ones(),
        nodes: [worker].into(),
    };
    Some((worker, job.parse().ok()?, stage)).filter(|(_, _, stage)| stage.gpus > 0)
}
