//! Which jobs a cluster with deadlines can admit, by a model instead of one after another.
//!
//! ```text
//!  plans so far, newcomers ─▶ greedy   admission one by one (ElasticFlow's way): the least that is accepted
//!                          ─▶ model    the most that could enter, time cut into slots at the deadlines
//!                          ─▶ arrange  the model's parts of slots in whole rounds
//!                          ─▶ follow   counted exactly, restarts included; what does not hold is thrown away
//! ```
//!
//! The model is a relaxation: it excludes no plan that could be run, so its optimum is a bound, and a plan of its own is
//! used only after it was counted. The formulation is `rota_solvers::elasticflow_shares`.

use rota_core::snapshot::Snapshot;
use rota_core::time::Time;
use rota_core::timeline::{Ahead, Need, Part, Planned, Timeline, Way};
use rota_solvers::elasticflow_shares::{
    Admission, Pace, ShareJob, ShareLevel, SharePlan, ShareProblem, ShareRun, ShareSlot, solve_shares,
};
use rota_solvers::{FormulationError, Limits, Solution, Solver};

/// How often a model is solved when its plans do not hold.
const MOST_ATTEMPTS: usize = 4;

/// The status of a question that no model was asked.
const NOT_NEEDED: &str = "not needed";

/// Worth that sums may lose to rounding.
const CRUMB: f64 = 1e-6;

/// How hard to look.
#[derive(Clone, Debug, PartialEq)]
pub struct ShareSettings {
    /// Limits of each solve; nodes and gap decide, so that answers repeat.
    pub limits: Limits,
    /// The most slots that time is cut into.
    pub n_slots: usize,
    /// How jobs use slots.
    pub pace: Pace,
}

impl Default for ShareSettings {
    fn default() -> Self {
        let limits = Limits { gap: 1e-4, nodes: 200, ..Limits::default() };
        ShareSettings { limits, n_slots: 32, pace: Pace::Parts }
    }
}

/// A job that asks for admission, and what admitting it is worth.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Newcomer {
    /// Its row in the job table.
    pub row: u32,
    /// At least 0; with 1 for every job, jobs are counted.
    pub worth: f64,
}

/// The plans that were found, and how good they are.
#[derive(Clone, Debug)]
pub struct Found {
    /// Plans for all jobs that were promised something and for those that enter.
    pub ahead: Ahead,
    /// Worth of the jobs that enter.
    pub worth: f64,
    /// Worth of the jobs that would enter one by one.
    pub greedy: f64,
    /// Worth that no plan exceeds.
    pub bound: f64,
    /// How the last solve ended.
    pub status: String,
    /// Plans of the model that did not hold when they were counted.
    pub n_refuted: usize,
}

impl Found {
    /// One line for the record of the round.
    pub fn note(&self) -> String {
        let Found { worth, greedy, bound, status, n_refuted, .. } = self;
        let mut note = format!("shares: {status}, {worth} enter, {greedy} one by one, at most {bound}");
        if *n_refuted > 0 {
            note.push_str(&format!(", {n_refuted} plans of the model did not hold"));
        }
        note
    }

    /// Whether planning one after another left out a job that could meet its deadline alone.
    pub fn needed_a_model(&self) -> bool {
        self.status != NOT_NEEDED
    }

    fn greedy(ahead: Ahead, worth: f64) -> Self {
        Found { ahead, worth, greedy: worth, bound: worth, status: NOT_NEEDED.to_owned(), n_refuted: 0 }
    }
}

/// Admits the newcomers worth most together, without making a planned job late. Jobs that are late already keep no one
/// out.
pub fn most(
    snapshot: &Snapshot,
    base: &Ahead,
    newcomers: &[Newcomer],
    solver: &mut dyn Solver,
    settings: &ShareSettings,
) -> Result<Found, FormulationError> {
    let mut greedy = base.clone();
    greedy.forget(&newcomers.iter().map(|newcomer| newcomer.row).collect::<Vec<_>>());
    let base = greedy.clone();
    let (entered, mut left_out): (Vec<Newcomer>, Vec<Newcomer>) =
        newcomers.iter().partition(|newcomer| greedy.enter(snapshot, newcomer.row, Way::LeastShare).is_ok());
    let worth = worth_of(&entered);
    let n_gpus = greedy.timeline().n_gpus();
    left_out
        .retain(|newcomer| base.unplanned(snapshot, &[newcomer.row])[0].can_make_it(n_gpus, snapshot.now));
    let mut found = Found::greedy(greedy, worth);
    for attempt in 0..MOST_ATTEMPTS {
        if left_out.is_empty() {
            break;
        }
        let open: Vec<Newcomer> = entered.iter().chain(&left_out).copied().collect();
        let slack = if attempt == 0 { Slack::None } else { Slack::ForChanges };
        let case = Case::new(snapshot, &base, &open, settings, slack);
        let start = case.encode(&found.ahead);
        let answer = solve_shares(&case.problem, solver, &settings.limits, Some(&start), worth + CRUMB)?;
        if attempt == 0 {
            found.status = answer.admit.status.word().to_owned();
            found.bound = bound(&answer.admit, worth, &open);
        }
        let better = answer.plan.filter(|plan| case.worth(plan) > worth + CRUMB);
        let Some(plan) = better else { break };
        match case.realise(snapshot, &base, &plan) {
            Ok(ahead) if case.worth_on(&ahead) > worth + CRUMB => {
                found.worth = case.worth_on(&ahead);
                found.ahead = ahead;
                break;
            }
            Ok(_) | Err(_) => found.n_refuted += 1,
        }
        if attempt > 0 {
            // Not even with slack: the last of the admitted newcomers is not tried again.
            let is_taken = |newcomer: &Newcomer| plan.admitted[case.index_of(newcomer.row)];
            let Some(last) = left_out.iter().rposition(is_taken) else { break };
            left_out.remove(last);
        }
    }
    Ok(found)
}

fn worth_of(newcomers: &[Newcomer]) -> f64 {
    newcomers.iter().fold(0.0, |sum, newcomer| sum + newcomer.worth)
}

/// The bound on what enters: rounded down where whole jobs are counted.
fn bound(solution: &Solution, greedy: f64, open: &[Newcomer]) -> f64 {
    let all = worth_of(open);
    let bound = solution.bound.map_or(all, |bound| bound.min(all));
    let counts_jobs = open.iter().all(|newcomer| newcomer.worth == 1.0);
    let bound = if counts_jobs { (bound + CRUMB).floor() } else { bound };
    bound.max(greedy)
}

/// Whether the model leaves time for what it does not know of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Slack {
    /// Every deadline as it is: only so is the answer a bound.
    None,
    /// Deadlines come a change of GPUs and a round earlier, except where what is planned needs that time.
    ForChanges,
}

/// One question to the model.
struct Case {
    jobs: Vec<Planned>,
    worths: Vec<f64>,
    n_promised: usize,
    slot_ends: Vec<Time>,
    now: Time,
    problem: ShareProblem,
}

impl Case {
    fn new(
        snapshot: &Snapshot,
        base: &Ahead,
        open: &[Newcomer],
        settings: &ShareSettings,
        slack: Slack,
    ) -> Self {
        let is_promised = |planned: &&Planned| planned.deadline != Need::NEVER && !planned.is_late;
        let mut rows: Vec<u32> =
            base.planned().iter().filter(is_promised).map(|planned| planned.row).collect();
        let n_promised = rows.len();
        rows.extend(open.iter().map(|newcomer| newcomer.row));
        // Promises are kept whatever they are worth: only newcomers count.
        let worths: Vec<f64> =
            std::iter::repeat_n(0.0, n_promised).chain(open.iter().map(|newcomer| newcomer.worth)).collect();
        let jobs = base.unplanned(snapshot, &rows);
        let slot_ends = slot_ends(snapshot, &jobs, settings.n_slots);
        let empty = without_plans(base);
        let job = |(index, planned): (usize, &Planned)| ShareJob {
            levels: planned.levels().iter().map(|&(gpus, rate)| ShareLevel { gpus, rate }).collect(),
            work: planned.work(),
            deadline_s: deadline_s(snapshot, base, planned, slack),
            worth: worths[index],
            admission: if index < n_promised { Admission::Promised } else { Admission::Open },
        };
        let problem = ShareProblem {
            slots: slots(empty.timeline(), &slot_ends),
            jobs: jobs.iter().enumerate().map(job).collect(),
            pace: settings.pace,
        };
        Case { jobs, worths, n_promised, slot_ends, now: snapshot.now, problem }
    }

    fn index_of(&self, row: u32) -> usize {
        let index = self.jobs.iter().rposition(|planned| planned.row == row);
        index.expect("every newcomer of the case is among its jobs")
    }

    fn worth(&self, plan: &SharePlan) -> f64 {
        self.worths.iter().zip(&plan.admitted).map(|(worth, &is_in)| if is_in { *worth } else { 0.0 }).sum()
    }

    /// Worth of the newcomers that make it on a timeline.
    fn worth_on(&self, ahead: &Ahead) -> f64 {
        let newcomers = self.jobs.iter().zip(&self.worths).skip(self.n_promised);
        let is_in = |row: u32| ahead.of(row).is_some_and(|planned| !planned.is_late);
        newcomers.map(|(job, worth)| if is_in(job.row) { *worth } else { 0.0 }).sum()
    }

    /// Plans as the model would write them down.
    fn encode(&self, ahead: &Ahead) -> SharePlan {
        let plan_of = |job: &Planned| ahead.of(job.row).filter(|planned| !planned.is_late);
        let admitted = self.jobs.iter().map(|job| plan_of(job).is_some()).collect();
        let runs = self.jobs.iter().map(|job| plan_of(job).map_or(Vec::new(), |planned| self.runs(planned)));
        SharePlan { admitted, runs: runs.collect() }
    }

    fn runs(&self, planned: &Planned) -> Vec<ShareRun> {
        let mut runs = Vec::new();
        for pair in planned.course().windows(2) {
            let (from, gpus, to) = (pair[0].0, pair[0].1, pair[1].0.min(planned.plan.finish()));
            let mut begin = self.now;
            for (slot, &end) in self.slot_ends.iter().enumerate() {
                let (held_from, held_to) = (from.max(begin), to.min(end));
                if gpus > 0 && held_from < held_to {
                    let part = (held_to - held_from).as_secs_f64() / (end - begin).as_secs_f64();
                    runs.push(ShareRun { slot, gpus, part });
                }
                begin = end;
            }
        }
        runs
    }

    /// The model's plan in rounds, counted; a row whose promise it would break otherwise.
    fn realise(&self, snapshot: &Snapshot, base: &Ahead, plan: &SharePlan) -> Result<Ahead, u32> {
        let mut ahead = without_plans(base);
        let part = |run: &ShareRun| {
            let seconds = run.part * self.problem.slots[run.slot].length_s;
            Part { slot: run.slot, gpus: run.gpus, seconds }
        };
        let parts: Vec<Vec<Part>> = plan.runs.iter().map(|runs| runs.iter().map(part).collect()).collect();
        let courses = ahead.arrange(&self.slot_ends, &self.jobs, &parts);
        let mut by_deadline: Vec<usize> =
            (0..self.jobs.len()).filter(|index| plan.admitted[*index]).collect();
        by_deadline.sort_by_key(|index| {
            let planned = &self.jobs[*index];
            (planned.deadline, snapshot.jobs.id(planned.row as usize))
        });
        for index in by_deadline {
            let row = self.jobs[index].row;
            if !ahead.follow(snapshot, row, &courses[index]) && index < self.n_promised {
                return Err(row);
            }
        }
        let rest: Vec<u32> =
            base.planned().iter().map(|planned| planned.row).filter(|row| ahead.of(*row).is_none()).collect();
        ahead.reserve(snapshot, &rest, Way::LeastShare);
        Ok(ahead)
    }
}

fn deadline_s(snapshot: &Snapshot, base: &Ahead, planned: &Planned, slack: Slack) -> f64 {
    let early = match slack {
        Slack::None => planned.deadline,
        Slack::ForChanges => planned.deadline - planned.change() - snapshot.round,
    };
    let needed = base.of(planned.row).map_or(early, |planned| planned.plan.finish());
    (early.max(needed) - snapshot.now).as_secs_f64()
}

/// What is blocked stays blocked.
fn without_plans(base: &Ahead) -> Ahead {
    let mut empty = base.clone();
    empty.forget(&base.planned().iter().map(|planned| planned.row).collect::<Vec<_>>());
    empty
}

/// Ends of slots at the rounds after deadlines. Where that is too many, those go that are closest to the one before, as
/// seen from now: precision matters most for what is near.
fn slot_ends(snapshot: &Snapshot, jobs: &[Planned], most: usize) -> Vec<Time> {
    let now = snapshot.now;
    let mut ends: Vec<Time> = jobs.iter().map(|job| job.deadline.align_up(now, snapshot.round)).collect();
    ends.retain(|end| *end > now);
    ends.sort_unstable();
    ends.dedup();
    while ends.len() > most.max(1) {
        let width = |index: usize| {
            let before = index.checked_sub(1).map_or(now, |before| ends[before]);
            (ends[index] - before).as_secs_f64() / (ends[index] - now).as_secs_f64()
        };
        let thinnest = (0..ends.len() - 1).min_by(|a, b| width(*a).total_cmp(&width(*b)));
        ends.remove(thinnest.expect("more than one slot"));
    }
    ends
}

fn slots(timeline: &Timeline, ends: &[Time]) -> Vec<ShareSlot> {
    let begins = std::iter::once(timeline.begin()).chain(ends.iter().copied());
    begins
        .zip(ends)
        .map(|(begin, &end)| ShareSlot {
            length_s: (end - begin).as_secs_f64(),
            gpus: timeline
                .window(begin, end)
                .map(|(_, _, free)| u32::try_from(free).unwrap_or(0))
                .max()
                .unwrap_or(0),
        })
        .collect()
}

#[cfg(test)]
mod tests;
