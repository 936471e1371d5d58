//! One change of an allocation, timed with real processes: run, stop with a checkpoint, run again with other GPUs.

use std::path::{Path, PathBuf};

use rota_traces::profile::MeasuredChange;
use rota_transport::measure::{MeasureEndHow, MeasureEvent, MeasureOrder, MeasureSpec};

use crate::profile::measure::{Account, MeasureError, Running, Speaks};

/// What to time.
#[derive(Clone, Debug)]
pub struct Change {
    /// The run before: everything but GPUs, CPUs, memory and what is done.
    pub spec: MeasureSpec,
    /// GPUs before and after.
    pub gpus: (u32, u32),
    /// Folders of the nodes before and after; the same when it stays.
    pub run_dirs: (PathBuf, PathBuf),
    /// Iterations after which it is stopped.
    pub settle: f64,
    /// Seconds of the command's time in one real second.
    pub time_scale: f64,
}

/// A change that cannot be timed.
#[derive(Debug, thiserror::Error)]
pub enum ChangeError {
    /// A run that cannot even be tried.
    #[error(transparent)]
    Measure(#[from] MeasureError),
    /// It ended before the order to stop.
    #[error("with {gpus} GPUs: {why}")]
    Ended {
        /// GPUs of the run.
        gpus: u32,
        /// The command's last output, or how it ended.
        why: String,
    },
    /// It writes no checkpoints.
    #[error(
        "with {gpus} GPUs it wrote no checkpoint when it was asked to stop: its work would be lost, so there is nothing to time"
    )]
    NoCheckpoint {
        /// GPUs of the run.
        gpus: u32,
    },
}

impl Change {
    /// Runs the change and times it, in seconds of the command's own time.
    pub fn time(&self, agent: &Path) -> Result<MeasuredChange, ChangeError> {
        let is_moved = self.run_dirs.0 != self.run_dirs.1;
        let before = self.spec(self.gpus.0, &self.run_dirs.0, 0.0);
        let (account, stopped_s) = run_until(agent, &before, self.settle)?;
        let failed = |spec: &MeasureSpec, account: &Account| ChangeError::Ended {
            gpus: spec.gpus,
            why: account
                .failure(spec, &Speaks::Protocol)
                .unwrap_or_else(|| "it ended before the order to stop".to_owned()),
        };
        let Some(stopped_s) = stopped_s else { return Err(failed(&before, &account)) };
        let no_checkpoint = ChangeError::NoCheckpoint { gpus: before.gpus };
        let done = account.checkpointed.ok_or(no_checkpoint)?;
        let gone_s = account.end.as_ref().map_or(stopped_s, |end| end.at_s);
        let checkpointed_s = account.checkpointed_s.map_or(gone_s, |at_s| at_s.clamp(stopped_s, gone_s));
        let after =
            MeasureSpec { number: before.number + 1, ..self.spec(self.gpus.1, &self.run_dirs.1, done) };
        let (account, resumed_s) = run_until(agent, &after, 0.0)?;
        let Some(resumed_s) = resumed_s else { return Err(failed(&after, &account)) };
        Ok(MeasuredChange {
            from: self.gpus.0,
            to: self.gpus.1,
            moved: is_moved,
            checkpoint_s: (checkpointed_s - stopped_s) * self.time_scale,
            restart_s: (resumed_s - checkpointed_s) * self.time_scale,
        })
    }

    fn spec(&self, gpus: u32, run_dir: &Path, done: f64) -> MeasureSpec {
        let n_gpus = u64::from(gpus);
        MeasureSpec {
            gpus,
            cpu_micro: self.spec.cpu_micro.saturating_mul(n_gpus),
            mem_bytes: self.spec.mem_bytes.saturating_mul(n_gpus),
            run_dir: run_dir.to_owned(),
            done,
            ..self.spec.clone()
        }
    }
}

/// Runs until so many more iterations than before are reported, then stops it. Returns when the last of them was done;
/// none when it ended earlier.
fn run_until(agent: &Path, spec: &MeasureSpec, settle: f64) -> Result<(Account, Option<f64>), MeasureError> {
    let mut running = Running::start(agent, spec)?;
    let mut reached_s = None;
    while let Some(event) = running.next(None) {
        if let MeasureEvent::Progress { at_s, iterations } = event
            && reached_s.is_none()
            && iterations > spec.done + settle
        {
            reached_s = Some(at_s);
            running.order(MeasureOrder::Stop);
        }
    }
    let account = running.account()?;
    let was_stopped = account.end.as_ref().is_some_and(|end| end.how == MeasureEndHow::Stopped);
    Ok((account, reached_s.filter(|_| was_stopped)))
}
