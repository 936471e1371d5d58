//! Fast-forward, as in ElasticFlow's testbed: every launch trains a few real iterations, then the head's time jumps to
//! the next thing that happens, and jobs are credited with what they would have done meanwhile by their profiles.
//!
//! What starting, stopping and checkpointing take is real; only the long stretches in between are passed over. Leases
//! and heartbeats count real time and notice nothing.

use rota_core::time::{Span, Time};
use rota_transport::message::{Attempt, KeepWork};

use super::engine::Engine;
use super::fleet::{LaunchPhase, Live};
use super::launch;
use super::record::Record;
use super::state::{Moment, State};
use crate::pace::PaceWatch;

/// Jumps, at most to `until`, if every launch has done so many iterations of its own; the moment after.
pub(super) fn fast_forward(
    engine: &mut Engine,
    moment: Moment,
    until: Time,
    n_iterations: u32,
) -> Result<Moment, String> {
    if !engine.rules.may_jump {
        return Err("this head's time does not jump: start it with --fast-forward".into());
    }
    let is_settled = |live: &Live| {
        live.phase == LaunchPhase::Running && live.iterations - live.begun >= f64::from(n_iterations)
    };
    let is_busy = engine.is_deciding() || engine.disk_trouble.is_some();
    if !engine.is_ready || is_busy || !engine.state.fleet.lives.values().all(is_settled) {
        return Ok(moment);
    }
    let speeds = engine.state.speeds();
    let ends = speeds.iter().map(|(_, rate, left)| moment.now + Span::from_secs_f64(left / rate) + Span(1));
    let to = ends.chain(engine.next_round(moment)).chain([until]).min().unwrap_or(until);
    if to <= moment.now {
        return Ok(moment);
    }
    let passed_s = (to - moment.now).as_secs_f64();
    let credit = |(attempt, rate, left): &(Attempt, f64, f64)| (*attempt, (rate * passed_s).min(*left));
    let credited: Vec<_> = speeds.iter().map(credit).collect();
    engine.clock.jump(to - moment.now);
    let moment = engine.clock.moment();
    engine.state.credit(moment, credited);
    Ok(moment)
}

impl State {
    /// Launches that run, with their iterations per second and what is left of their work.
    fn speeds(&self) -> Vec<(Attempt, f64, f64)> {
        let speed = |(attempt, live): (&Attempt, &Live)| {
            let job = self.books.job(attempt.job)?;
            let rate = launch::rate(job, &live.allocation, self.books.scheduler.cluster()).ok()?.per_s();
            let left = job.spec.estimated_work - live.iterations - live.skipped;
            (rate > 0.0).then_some((*attempt, rate, left.max(0.0)))
        };
        self.fleet.lives.iter().filter_map(speed).collect()
    }

    /// Gives launches iterations that nobody did; those whose work is done by that end here.
    fn credit(&mut self, moment: Moment, credited: Vec<(Attempt, f64)>) {
        let jobs = credited.iter().map(|(attempt, done)| (attempt.job, attempt.incarnation, *done)).collect();
        self.record(moment, Record::TimeJumped { jobs });
        for (attempt, done) in credited {
            let Some(live) = self.fleet.lives.get_mut(&attempt) else { continue };
            live.skipped += done;
            // What it does in time that did not pass says nothing of its speed.
            live.pace = PaceWatch::default();
            live.progress = Some(live.iterations);
            let in_all = live.iterations + live.skipped;
            let Some(job) = self.books.job(attempt.job) else { continue };
            let work = job.spec.estimated_work;
            // Sums of fractions do not meet the work to the last digit.
            if in_all >= work * (1.0 - 1e-9) {
                let Attempt { job, incarnation } = attempt;
                self.record(moment, Record::JobFinished { job, incarnation, done: work });
                self.stop(moment, attempt, KeepWork::No);
            }
        }
    }
}
