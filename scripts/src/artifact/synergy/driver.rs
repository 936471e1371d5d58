//! The original's rounds: its clock, its way of crediting work, its way of noticing ends.

use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::sync::Arc;

use rota_core::allocation::Allocation as Held;
use rota_core::artifact::{self, Givers, Kept, OverwriteJobs as _};
use rota_core::cluster::Cluster;
use rota_core::fill::{Answer, Counts, Demand, Fill, Grade, Granted, Sequence, Walk};
use rota_core::ids::{GpuTypeId, JobId};
use rota_core::ledger::Ledger;
use rota_core::place::{Consolidate, FirstFit, Place};
use rota_core::policy::PolicyError;
use rota_core::room::Room;
use rota_core::simulation::Progress;
use rota_core::snapshot::{Guards, NodeStates, Snapshot};
use rota_core::table::{Field, JobTable};
use rota_core::time::{Span, Time};
use rota_core::workload::Workload;

use super::accounts::Accounts;
use super::attach::{Attached, Models, Server};
use super::error::ArtifactError;
use super::order::ScriptedOrder;
use super::scheme::{Allocation, OrderName, Placement, Scheme};
use crate::artifact::{Defect, Defects};

/// A job that has not run for longer than this goes before all others, for good.
const PATIENCE_S: f64 = 3_600_000.0;

/// How a run goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SynergySettings {
    /// Time between rounds.
    pub round: Span,
    /// When the first round is; the others follow at multiples of `round` from it.
    pub first_round: Time,
    /// Whether what ran where is recorded.
    pub keeps_timeline: bool,
    /// The defects that the run has.
    pub defects: Defects,
}

impl Default for SynergySettings {
    fn default() -> Self {
        SynergySettings {
            round: Span::from_secs(300),
            first_round: Time::ZERO,
            keeps_timeline: false,
            defects: Defects::ALL,
        }
    }
}

/// Runs a workload to its end as the original does.
pub fn run(
    scheme: Scheme,
    cluster: Arc<Cluster>,
    workload: &Workload,
    models: &Models,
    settings: &SynergySettings,
    observe: &mut dyn FnMut(&Progress),
) -> Result<Ledger, ArtifactError> {
    let mut driver = Driver::new(scheme, cluster, workload, models, settings)?;
    while let Some(now) = driver.next_round() {
        driver.round(now)?;
        observe(&driver.progress(now));
    }
    Ok(driver.accounts.close())
}

/// Which jobs a walk tries, and in what order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Selection {
    /// All jobs, in order.
    All,
    /// The jobs whose GPUs fit together, in order.
    Fitting,
    /// Of those, wide gangs first.
    WidestFirst,
}

struct Driver<'a> {
    scheme: Scheme,
    workload: &'a Workload,
    order: ScriptedOrder,
    settings: &'a SynergySettings,
    snapshot: Snapshot,
    room: Room,
    placement: Box<dyn Place>,
    /// By job id.
    attached: Vec<Attached>,
    /// When the work of a job is done, by job id, as soon as that is paid.
    ends: Vec<Option<Time>>,
    n_arrived: usize,
    n_finished: usize,
    /// The jobs of the round under way.
    running: Vec<JobId>,
    /// Jobs whose speed of the last round was not the one attached to them: the next order still goes by it.
    slowed: Vec<JobId>,
    last_round: Option<Time>,
    accounts: Accounts,
}

impl<'a> Driver<'a> {
    fn new(
        scheme: Scheme,
        cluster: Arc<Cluster>,
        workload: &'a Workload,
        models: &Models,
        settings: &'a SynergySettings,
    ) -> Result<Self, ArtifactError> {
        let can_opt = matches!(scheme.order, OrderName::Fifo | OrderName::Srtf);
        if scheme.allocation == Allocation::Opt && !can_opt {
            return Err(ArtifactError::OptOrder { scheme: scheme.to_string() });
        }
        let server = Server::of(&cluster)?;
        let attached = workload
            .jobs
            .iter()
            .map(|job| server.attach(job, models, settings.defects))
            .collect::<Result<_, _>>()?;
        let snapshot = Snapshot {
            now: settings.first_round,
            round: settings.round,
            jobs: Arc::new(JobTable::default()),
            nodes: Arc::new(NodeStates::all_up(&cluster)),
            guards: Arc::new(Guards::default()),
            tenants: Arc::default(),
            cluster,
        };
        Ok(Driver {
            room: Room::new(&snapshot),
            accounts: Accounts::new(workload, &snapshot.cluster, settings),
            placement: match scheme.placement {
                Placement::FirstFit => Box::new(FirstFit),
                Placement::Consolidate => Box::new(Consolidate::default()),
            },
            scheme,
            workload,
            order: ScriptedOrder::new(scheme.order, settings.defects, workload.jobs.len())?,
            settings,
            snapshot,
            attached,
            ends: vec![None; workload.jobs.len()],
            n_arrived: 0,
            n_finished: 0,
            running: Vec::new(),
            slowed: Vec::new(),
            last_round: None,
        })
    }

    fn has(&self, defect: Defect) -> bool {
        self.settings.defects.has(defect)
    }

    fn progress(&self, now: Time) -> Progress {
        let (n_ended, n_jobs) = (self.n_finished, self.workload.jobs.len());
        Progress { now, n_ended, n_jobs, n_decisions: self.accounts.n_rounds() }
    }

    /// The next round; an idle gap is jumped over. `None` when all jobs have ended, or none of those left fits an
    /// empty cluster: the original then goes round for ever.
    fn next_round(&self) -> Option<Time> {
        let next = match self.last_round {
            None => self.settings.first_round,
            Some(last) => last + self.settings.round,
        };
        let arrival = self.workload.jobs.get(self.n_arrived).map(|job| job.arrival);
        let is_idle = self.last_round.is_some() && self.running.is_empty();
        match arrival {
            _ if !is_idle => (self.n_finished < self.workload.jobs.len()).then_some(next),
            Some(arrival) => Some(next.max(arrival.align_up(self.settings.first_round, self.settings.round))),
            None => None,
        }
    }

    fn round(&mut self, now: Time) -> Result<(), ArtifactError> {
        self.snapshot.now = now;
        self.arrive(now);
        self.finish(now);
        if self.snapshot.jobs.is_empty() {
            self.accounts.idle(now);
        } else {
            let order = self.order(now)?;
            let (walked, granted) = self.walk(&order);
            self.refuse_failure(now, &walked, &granted)?;
            let optimum = self.optimum(now, &granted)?;
            self.credit(now, &granted, optimum.as_deref());
            if self.has(Defect::AgePriority) {
                self.age(now, &walked);
            }
            if !self.has(Defect::PlacedAnew) {
                self.settle(&granted);
            }
            self.accounts.round(now, &self.snapshot.jobs, &self.snapshot.cluster, granted);
        }
        self.last_round = Some(now);
        Ok(())
    }

    fn jobs_mut(&mut self) -> &mut JobTable {
        Arc::make_mut(&mut self.snapshot.jobs)
    }

    fn arrive(&mut self, now: Time) {
        let workload = self.workload;
        while let Some(job) = workload.jobs.get(self.n_arrived).filter(|job| job.arrival <= now) {
            let index = self.n_arrived;
            let attached = self.attached[index];
            let work = workload.truths[index].work;
            let remaining = self.remaining_s(&attached, work, attached.speedup);
            let best_speed = job.best_speed(&attached.per_gpu, &self.snapshot.cluster);
            let jobs = self.jobs_mut();
            let row = jobs.len();
            jobs.insert(Arc::clone(job), attached.per_gpu, 1.0 / attached.iteration_s, best_speed);
            jobs.admit(row);
            jobs.set(row, Field::Work, work);
            jobs.set(row, Field::Duration, attached.iteration_s * work);
            jobs.set(row, Field::Remaining, remaining);
            jobs.set(row, Field::CpuDemand, attached.demand[0]);
            jobs.set(row, Field::MemDemand, attached.demand[1]);
            jobs.set(row, Field::StorageDemand, attached.demand[2]);
            self.accounts.arrived(now, job);
            self.n_arrived += 1;
        }
    }

    /// Takes out the jobs of the last round that are done; the others have last run until now.
    fn finish(&mut self, now: Time) {
        for job in std::mem::take(&mut self.running) {
            let Some(row) = self.snapshot.jobs.row(job) else { continue };
            if let Some(end) = self.ends[job.index()] {
                let end = if self.has(Defect::LateEnds) { now } else { end };
                self.jobs_mut().remove(row);
                self.accounts.finished(end, job);
                self.n_finished += 1;
            } else {
                self.jobs_mut().set(row, Field::Since, now.as_secs_f64());
            }
        }
    }

    /// Rows in the order of the script; afterwards the speed of every job is the attached one again.
    fn order(&mut self, now: Time) -> Result<Vec<u32>, ArtifactError> {
        let failed = |error| ArtifactError::Order { now, error };
        let order = self.order.rows(&self.snapshot).map_err(failed)?;
        let n_jobs = self.snapshot.jobs.len();
        if order.len() != n_jobs {
            let message = format!("the order has {} jobs, {n_jobs} are runnable", order.len());
            return Err(failed(PolicyError { message }));
        }
        for job in std::mem::take(&mut self.slowed) {
            if let Some(row) = self.snapshot.jobs.row(job) {
                self.set_remaining(row, self.attached[job.index()].speedup);
            }
        }
        Ok(order)
    }

    /// The jobs that are tried, in order, and what they got.
    fn walk(&mut self, order: &[u32]) -> (Vec<u32>, Vec<Granted>) {
        let tunes = self.scheme.allocation == Allocation::Tune;
        // OPT's GPUs are counted and not placed; at proportional shares all that are counted have a place.
        let demand = match self.scheme.allocation {
            Allocation::Proportional | Allocation::Opt => Demand::FairShare,
            _ => Demand::Best,
        };
        let looks_back = tunes && !self.has(Defect::OnePass);
        let words = Walk {
            demand,
            keep_places: !self.has(Defect::PlacedAnew),
            stayers_first: tunes && !self.has(Defect::TuneOrder),
            rearranges: looks_back.then_some(Sequence::Queue),
            tops_up: looks_back.then_some(Sequence::Queue),
            ..Walk::default()
        };
        let whole_share = self.has(Defect::LowerWholeShare);
        let kept = if whole_share { Kept::WholeShare } else { Kept::UpToItsShare };
        let givers = if self.has(Defect::ReclaimUseless) { Givers::Anyone } else { Givers::Useful };
        let reclaim = artifact::reclaim(kept, givers);
        // All GPUs of the original are of one type.
        let jobs = Arc::clone(&self.snapshot.jobs);
        let mut lowered = |row: usize, room: &Room| {
            let (demand, fair) = (*jobs.demand_per_gpu(row), room.fair_share(GpuTypeId(0)));
            Some(if demand.fits_in(&fair) { demand } else { fair })
        };
        let lower = if whole_share { Answer::Ask(&mut lowered) } else { Answer::FairShare };
        let mut answers = [lower, Answer::Reclaim(reclaim)];
        let answers = if tunes { &mut answers[..] } else { &mut [] };
        let selection = self.selection();
        self.room.reset(&self.snapshot);
        let fill = Fill::new(&self.snapshot, &mut self.room, &mut *self.placement);
        let mut walked =
            if selection == Selection::All { order.to_vec() } else { fill.select(order, &Counts::Asked) };
        if selection == Selection::WidestFirst {
            walked.sort_by_key(|row| Reverse(self.snapshot.jobs.gpus()[*row as usize]));
        }
        let granted = fill.run(&walked, &words, answers);
        (walked, granted)
    }

    /// Which jobs the walk tries: only LAS keeps to the jobs whose GPUs fit together, and only LAS+tune takes large gangs
    /// first; the shipped tune keeps to them under every order, and to the order.
    fn selection(&self) -> Selection {
        let is_las = self.scheme.order == OrderName::Las;
        match self.scheme.allocation {
            Allocation::Tune if !self.has(Defect::TuneOrder) => Selection::Fitting,
            Allocation::Tune if is_las => Selection::WidestFirst,
            Allocation::Tune => Selection::All,
            Allocation::Opt => Selection::Fitting,
            _ if is_las && self.has(Defect::LasSelects) => Selection::Fitting,
            _ => Selection::All,
        }
    }

    /// Jobs that run stay where they are in the next round.
    fn settle(&mut self, granted: &[Granted]) {
        let jobs = self.jobs_mut();
        (0..jobs.len()).for_each(|row| jobs.hold(row, Held::default()));
        for Granted { row, slices, .. } in granted {
            jobs.hold(*row as usize, Held { slices: slices.clone() });
        }
    }

    /// The original's tuner cannot leave out a job for which there are GPUs.
    fn refuse_failure(&self, now: Time, walked: &[u32], granted: &[Granted]) -> Result<(), ArtifactError> {
        if self.scheme.allocation != Allocation::Tune {
            return Ok(());
        }
        let served: BTreeSet<u32> = granted.iter().map(|g| g.row).collect();
        let mut free = self.snapshot.cluster.n_gpus();
        for &row in walked {
            let gpus = self.snapshot.jobs.gpus()[row as usize];
            if served.contains(&row) {
                free -= gpus;
            } else if gpus <= free {
                let job = self.snapshot.jobs.spec(row as usize).name.to_string();
                return Err(ArtifactError::GaveUp { now, job });
            }
            if free == 0 {
                break;
            }
        }
        Ok(())
    }

    /// The speeds of OPT's model, in the order of the grants; nothing for the other allocations.
    fn optimum(&self, now: Time, granted: &[Granted]) -> Result<Option<Vec<f64>>, ArtifactError> {
        if self.scheme.allocation != Allocation::Opt {
            return Ok(None);
        }
        let jobs: Vec<_> =
            granted.iter().map(|grant| &**self.snapshot.jobs.spec(grant.row as usize)).collect();
        let speeds = super::opt::speeds(&self.snapshot.cluster, &jobs);
        let wrong = |error: rota_solvers::FormulationError| ArtifactError::Model {
            now,
            n_jobs: granted.len(),
            why: error.to_string(),
        };
        speeds.map(Some).map_err(wrong)
    }

    /// Credits the whole round ahead, at the speed of the grade or of OPT's level, cut off at the job's end.
    fn credit(&mut self, now: Time, granted: &[Granted], optimum: Option<&[f64]>) {
        let round_s = self.settings.round.as_secs_f64();
        for (index, grant) in granted.iter().enumerate() {
            let row = grant.row as usize;
            let job = self.snapshot.jobs.id(row);
            let attached = self.attached[job.index()];
            let level = optimum.and_then(|speeds| speeds.get(index).copied());
            let (paid, left_over) = match (level, self.measured_speed(grant)) {
                // OPT leaves the speed alone that SRTF sorts by.
                (Some(speed), _) => (speed, attached.speedup),
                (None, Some(speed)) => (speed, speed),
                (None, None) => self.speeds(&attached, grant.grade),
            };
            let iterations = round_s / (attached.iteration_s / paid);
            let iterations = if self.has(Defect::WholeIterations) { iterations.floor() } else { iterations };
            let work = self.snapshot.jobs.column(Field::Work)[row];
            let before = self.snapshot.jobs.done(row);
            let done = (before + iterations).min(work);
            if done >= work {
                let needed_s = (work - before) * attached.iteration_s / paid;
                self.ends[job.index()] = Some(now + Span::from_secs_f64(needed_s.min(round_s)));
            }
            let attained = self.snapshot.jobs.column(Field::Attained)[row] + round_s;
            self.jobs_mut().set(row, Field::Done, done);
            self.jobs_mut().set(row, Field::Attained, attained);
            self.set_remaining(row, left_over);
            if left_over != attached.speedup {
                self.slowed.push(job);
            }
            self.running.push(job);
        }
    }

    /// The speed of what a job holds relative to its proportional share, by the profile's grid where that counts.
    fn measured_speed(&self, grant: &Granted) -> Option<f64> {
        if self.has(Defect::TwoSpeeds) {
            return None;
        }
        let cluster = &self.snapshot.cluster;
        let spec = self.snapshot.jobs.spec(grant.row as usize);
        let fair = spec.fair_rate(cluster);
        let held = Held { slices: grant.slices.clone() };
        (fair > 0.0).then(|| spec.rate(&held, cluster) / fair)
    }

    /// The speed a job is paid at, and the one it is left with for the next order.
    fn speeds(&self, attached: &Attached, grade: Grade) -> (f64, f64) {
        let fair = self.room.fair_share(rota_core::ids::GpuTypeId(0));
        match grade {
            Grade::Asked if self.scheme.allocation == Allocation::Proportional => (1.0, attached.speedup),
            Grade::Asked => (attached.speedup, attached.speedup),
            Grade::Lowered => (1.0, 1.0),
            // A neighbour with nothing to give is paid at the proportional share all the same.
            Grade::Reclaimed if attached.per_gpu.fits_in(&fair) => (1.0, attached.speedup),
            Grade::Reclaimed => (1.0, 1.0),
        }
    }

    fn set_remaining(&mut self, row: usize, speedup: f64) {
        let attached = self.attached[self.snapshot.jobs.id(row).index()];
        let left = self.snapshot.jobs.column(Field::Work)[row] - self.snapshot.jobs.done(row);
        let remaining = self.remaining_s(&attached, left, speedup);
        self.jobs_mut().set(row, Field::Remaining, remaining);
    }

    fn remaining_s(&self, attached: &Attached, iterations: f64, speedup: f64) -> f64 {
        let at_fair = attached.iteration_s * iterations;
        let is_plain = self.scheme.allocation == Allocation::Proportional || !self.has(Defect::StaleSpeeds);
        if is_plain { at_fair } else { at_fair / speedup }
    }

    /// Jobs that were passed over and have not run for too long are important from now on.
    fn age(&mut self, now: Time, walked: &[u32]) {
        let now_s = now.as_secs_f64();
        for &row in walked {
            if now_s - self.snapshot.jobs.column(Field::Since)[row as usize] > PATIENCE_S {
                self.jobs_mut().set(row as usize, Field::Priority, 1.0);
            }
        }
    }
}
