//! Spare GPUs, one level at a time: to the job whose GPU time grows most per GPU, which is the original's sign, or to the
//! one whose GPU time shrinks most.

use rota_core::timeline::{Grid, Timeline};

use super::Defect;
use super::deadlines::State;
use super::elastic::grid;
use super::job::Job;
use super::plans::{self, Charge};

/// Hands out what least shares leave free now.
pub(super) fn use_spare_gpus(state: &mut State, timeline: &mut Timeline) {
    let held: u32 = state.runnable.iter().map(|id| state.jobs[*id as usize].gpus).sum();
    let mut free = state.machines.n_gpus.saturating_sub(held);
    if free == 0 || state.runnable.is_empty() {
        return;
    }
    let mut gains = Gains::new(state);
    gains.look(state, timeline, free, |_| true);
    gains.sort(&mut state.runnable);
    while free > 0 {
        let fitting = |id: &&u32| gains.step(state, **id).is_some_and(|step| step <= free);
        let Some(&id) = state.runnable.iter().find(fitting) else { break };
        free -= grow(state, timeline, &mut gains, id);
        gains.look(state, timeline, free, |job| job.speeds.above(job.gpus).is_some());
        gains.sort(&mut state.runnable);
    }
}

/// One level more for a job; says how many GPUs that took.
fn grow(state: &mut State, timeline: &mut Timeline, gains: &mut Gains, id: u32) -> u32 {
    let now = state.now;
    let grid = gains.grid;
    let is_first = !state.jobs[id as usize].is_running;
    let job = state.job(id);
    let Some(next) = job.speeds.above(job.gpus) else { return 0 };
    timeline.release(&job.plan);
    job.plan = plans::scaled(timeline, &grid, &job.need(), now, next, gains.charge);
    let taken = next - job.gpus;
    job.gpus = next;
    job.old_end = Some(job.end);
    job.end = job.plan.end();
    job.real_end = Some(job.plan.finish());
    if is_first {
        state.start(id);
    }
    state.move_end(id);
    taken
}

/// What one more level is worth, by job: GPU time that it costs, or saves, per GPU.
struct Gains {
    by_job: Vec<(u32, f64)>,
    scratch: Timeline,
    grid: Grid,
    sign: f64,
    charge: Charge,
}

impl Gains {
    fn new(state: &State) -> Self {
        let scratch = Timeline::new(state.now, state.machines.n_gpus);
        Gains {
            by_job: Vec::new(),
            scratch,
            grid: grid(state),
            sign: if state.has(Defect::GrowthSign) { 1.0 } else { -1.0 },
            charge: if state.has(Defect::TrialUncharged) { Charge::UpToDeadline } else { Charge::WhileHeld },
        }
    }

    /// GPUs to the next level, if there is one.
    fn step(&self, state: &State, id: u32) -> Option<u32> {
        let job = &state.jobs[id as usize];
        job.speeds.above(job.gpus).map(|next| next - job.gpus)
    }

    /// Computes anew for the jobs that `is_asked` names; the others keep what they had.
    fn look(&mut self, state: &State, timeline: &Timeline, free: u32, is_asked: impl Fn(&Job) -> bool) {
        let old = std::mem::take(&mut self.by_job);
        let kept = |id: u32| old.iter().find(|g| g.0 == id).map_or(f64::NEG_INFINITY, |g| g.1);
        for &id in &state.runnable {
            let job = &state.jobs[id as usize];
            let gain = if is_asked(job) { self.gain(state, timeline, free, job) } else { kept(id) };
            self.by_job.push((id, gain));
        }
    }

    fn gain(&mut self, state: &State, timeline: &Timeline, free: u32, job: &Job) -> f64 {
        let Some(next) = job.speeds.above(job.gpus).filter(|next| next - job.gpus <= free) else {
            return f64::NEG_INFINITY;
        };
        if job.gpus == 0 {
            return f64::INFINITY;
        }
        self.scratch.copy_from(timeline);
        self.scratch.release(&job.plan);
        let trial = plans::scaled(&mut self.scratch, &self.grid, &job.need(), state.now, next, self.charge);
        let more = trial.gpu_time().0 - job.plan.gpu_time().0;
        self.sign * (more as f64 / 1e6) / f64::from(next - job.gpus)
    }

    /// Most first; equals stay as they are.
    fn sort(&mut self, list: &mut [u32]) {
        self.by_job.sort_by(|a, b| b.1.total_cmp(&a.1));
        for (place, (id, _)) in list.iter_mut().zip(&self.by_job) {
            *place = *id;
        }
    }
}
