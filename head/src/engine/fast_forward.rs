//! Fast-forward, as in ElasticFlow's testbed: every launch trains a few real iterations, then the head's time jumps to
//! the next thing that happens, and jobs are credited with what they would have done meanwhile by their profiles.
//!
//! Starting, stopping and checkpointing take their real time; only the long spans in between are skipped. Leases and
//! heartbeats count real time and are not affected.

use rota_core::time::{Span, Time};
use rota_transport::message::Attempt;
use rota_transport::value::Name;

use super::Engine;
use super::refusal::Refusal;
use crate::state::{LaunchPhase, LiveLaunch, Moment, State, launch_orders};

/// Jumps ahead, at most to `until`, if every launch has done `n_iterations` itself; returns the moment after the jump.
pub(super) fn fast_forward(
    engine: &mut Engine,
    moment: Moment,
    user: &Name,
    until: Time,
    n_iterations: u32,
) -> Result<Moment, Refusal> {
    if !engine.rules.may_jump {
        return Err(Refusal::NoFastForward);
    }
    let is_settled = |live: &LiveLaunch| {
        live.phase == LaunchPhase::Running && live.iterations - live.begun >= f64::from(n_iterations)
    };
    let is_busy = engine.timer.is_deciding() || engine.disk_trouble.is_some();
    if !engine.is_ready || is_busy || !engine.state.launches().iter().all(|(_, live)| is_settled(live)) {
        return Ok(moment);
    }
    let speeds = speeds(&engine.state);
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
    engine.state.credit(moment, user, credited);
    Ok(moment)
}

/// Launches that run, with their iterations per second and what is left of their work.
fn speeds(state: &State) -> Vec<(Attempt, f64, f64)> {
    let speed = |(attempt, live): (&Attempt, &LiveLaunch)| {
        let job = state.cluster().job(attempt.job)?;
        let rate =
            launch_orders::rate(job, &live.allocation, state.cluster().scheduler().cluster()).ok()?.per_s();
        let left = job.spec.estimated_work - live.iterations - live.skipped;
        (rate > 0.0).then_some((*attempt, rate, left.max(0.0)))
    };
    state.launches().iter().filter_map(speed).collect()
}
