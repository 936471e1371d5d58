//! Synergy-OPT for every order (OSDI'22, §4.1): the best CPU and memory level for each job of a round, and a place
//! for all of it, so that the plan can run.
//!
//! ```text
//!  order ─▶ select        jobs whose GPUs fit together, as every allocation chooses them
//!            │ per GPU type
//!            ├▶ levels     phase 1: throughput over the whole cluster, servers ignored; its bound is idealised
//!            ├▶ places     phase 2: jobs that stay, pack, exact ILP where that is small enough
//!            ├▶ walk       the core's walk gives what was chosen; jobs that do not fit are lowered to the fair share
//!            └▶ joint      if wanted: levels and places in one model, from that plan on; kept where it is better
//! ```
//!
//! The original stops after phase 1 and credits jobs with levels that no server may have. Here only `bound` does, and
//! `relaxed`, a bound of rounds that needs no solver.

mod joint;
mod levels;
mod places;
mod relaxed;

use rota_core::allocation::{Allocation, GpuSet};
use rota_core::fill::{Answer, Counts, Demand, Fill, Grade, Granted, Walk};
use rota_core::ids::GpuTypeId;
use rota_core::place::FirstFit;
use rota_core::reclaim::Reclaim;
use rota_core::room::Room;
use rota_core::snapshot::Snapshot;
use rota_solvers::synergy_opt::ClassProblem;
use rota_solvers::{FormulationError, Limits, Solver};

pub use levels::{ChosenLevels, RowOnType, fair_rate};
pub use places::Method;
pub use relaxed::{Look, Loss, Relaxation};

/// How hard to look.
#[derive(Clone, Debug, PartialEq)]
pub struct OptimumSettings {
    /// Limits of each solve; nodes and gap decide, so that answers repeat.
    pub limits: Limits,
    /// How places are found when packing leaves jobs out.
    pub method: Method,
    /// The largest placement or joint model, jobs times servers, that is solved exactly.
    pub exact_spots: usize,
    /// Whether levels and places are chosen in two models or in one.
    pub formulation: Formulation,
}

/// How levels and places are chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Formulation {
    /// Levels first, then places for them.
    TwoPhases,
    /// Both at once, starting from the two phases.
    Joint,
}

impl Default for OptimumSettings {
    fn default() -> Self {
        let limits = Limits { gap: 1e-4, nodes: 1_000, ..Limits::default() };
        OptimumSettings {
            limits,
            method: Method::Exact,
            exact_spots: 600,
            formulation: Formulation::TwoPhases,
        }
    }
}

/// What was found for one round.
#[derive(Clone, Debug, Default)]
pub struct Optimum {
    /// What each job that runs gets.
    pub granted: Vec<Granted>,
    /// Throughput relative to proportional shares, summed over jobs, that no choice of levels can exceed.
    pub bound: f64,
    /// What phase 1 reached, servers ignored.
    pub ideal: f64,
    /// What the plan reaches.
    pub throughput: f64,
    /// How phase 1 ended; of several GPU types, the worst.
    pub status: String,
    /// Jobs that had to be lowered to find a place.
    pub n_lowered: usize,
    /// Jobs that were selected and found no place at all.
    pub n_left_out: usize,
    /// How the joint model ended, if it was wanted; `too_large` if it was not asked.
    pub joint: Option<&'static str>,
}

impl Optimum {
    /// Distance of what phase 1 reached from its bound.
    pub fn gap(&self) -> f64 {
        if self.ideal > 0.0 { ((self.bound - self.ideal) / self.ideal).max(0.0) } else { 0.0 }
    }

    /// One line for the record of the round.
    pub fn note(&self) -> String {
        let Optimum { bound, throughput, status, n_lowered, n_left_out, joint, .. } = self;
        let gap = self.gap() * 100.0;
        let mut note =
            format!("opt: {status}, gap {gap:.3} %, throughput {throughput:.3} of at most {bound:.3}");
        if *n_lowered > 0 {
            note.push_str(&format!(", {n_lowered} lowered"));
        }
        if *n_left_out > 0 {
            note.push_str(&format!(", {n_left_out} left out"));
        }
        if let Some(joint) = joint {
            note.push_str(&format!(", joint model {joint}"));
        }
        note
    }
}

/// The best levels and places for the jobs of an order that fit by GPUs.
pub fn optimum(
    snapshot: &Snapshot,
    order: &[u32],
    room: &mut Room,
    solver: &mut dyn Solver,
    settings: &OptimumSettings,
) -> Result<Optimum, FormulationError> {
    let mut native =
        |problem: &ClassProblem, solver: &mut dyn Solver| levels::solve(problem, solver, &settings.limits);
    optimum_by(snapshot, order, room, solver, settings, &mut native)
}

/// Answers the level model: it is given the problem of one GPU type, and a solver it may use.
pub type ChooseLevels<'a> =
    &'a mut dyn FnMut(&ClassProblem, &mut dyn Solver) -> Result<ChosenLevels, FormulationError>;

/// The same with levels that another chooses.
pub fn optimum_by(
    snapshot: &Snapshot,
    order: &[u32],
    room: &mut Room,
    solver: &mut dyn Solver,
    settings: &OptimumSettings,
    choose: ChooseLevels<'_>,
) -> Result<Optimum, FormulationError> {
    let selected = Fill::new(snapshot, room, &mut FirstFit).select(order, &Counts::Asked);
    let mut found = Optimum::default();
    for (gpu_type, rows) in by_type(snapshot, room, &selected).into_iter().enumerate() {
        if rows.is_empty() {
            continue;
        }
        let gpu_type = GpuTypeId::from(gpu_type);
        let jobs: Vec<RowOnType> = rows
            .iter()
            .map(|&row| RowOnType { row, gpus: snapshot.jobs.gpus()[row as usize], gpu_type })
            .collect();
        let chosen = levels::choose(snapshot, room, &jobs, &mut |problem| choose(problem, &mut *solver))?;
        found.count(&chosen);
        let places = places::find(snapshot, room, gpu_type, &chosen.jobs, solver, settings)?;
        let mut granted = walk(snapshot, room, gpu_type, places);
        if settings.formulation == Formulation::Joint {
            let joint = joint::ask(snapshot, room, &jobs, &granted, solver, settings)?;
            found.joint = Some(joint.status);
            let other = joint.places.map(|places| walk(snapshot, room, gpu_type, places));
            granted = other.filter(|other| is_better(snapshot, other, &granted)).unwrap_or(granted);
        }
        found.n_left_out += rows.len() - granted.len();
        found.n_lowered += granted.iter().filter(|g| g.grade != Grade::Asked).count();
        found.throughput += throughput(snapshot, &granted);
        found.granted.extend(granted);
    }
    if found.status.is_empty() {
        found.status = "optimal".to_owned();
    }
    Ok(found)
}

/// An upper bound on the throughput of jobs with these GPUs, relative to proportional shares, whatever the places.
/// Levels may fall below the proportional share, so that no allocation of CPUs and memory can beat it.
pub fn bound(
    snapshot: &Snapshot,
    jobs: &[RowOnType],
    solver: &mut dyn Solver,
    limits: &Limits,
) -> Result<f64, FormulationError> {
    let room = Room::new(snapshot);
    let mut sum = 0.0;
    for gpu_type in (0..snapshot.cluster.gpu_types().len()).map(GpuTypeId::from) {
        let of_type: Vec<RowOnType> = jobs.iter().filter(|job| job.gpu_type == gpu_type).copied().collect();
        let (mut problem, _) = levels::problem(snapshot, &room, &of_type);
        problem.classes.iter_mut().for_each(|class| class.floor = 0.0);
        sum += bound_of(&problem, solver, limits)?;
    }
    Ok(sum)
}

fn bound_of(
    problem: &ClassProblem,
    solver: &mut dyn Solver,
    limits: &Limits,
) -> Result<f64, FormulationError> {
    if problem.classes.is_empty() {
        return Ok(0.0);
    }
    let built = problem.model()?;
    let solution = solver.solve(&built.model, limits, rota_solvers::Start::Cold);
    let best = |class: &rota_solvers::synergy_opt::LevelClass| {
        let most = class.levels.iter().map(|level| level.throughput).fold(0.0, f64::max);
        f64::from(class.count) * most
    };
    // All jobs at full speed is a bound that needs no solver.
    Ok(solution.bound.unwrap_or_else(|| problem.classes.iter().map(best).sum()))
}

impl Optimum {
    fn count(&mut self, chosen: &levels::Choice) {
        self.ideal += chosen.ideal;
        self.bound += chosen.bound.unwrap_or(chosen.ideal).max(chosen.ideal);
        if self.status.is_empty() || self.status == "optimal" {
            self.status.clone_from(&chosen.status);
        }
    }
}

/// Better by more than rounding, with no job left out for it: among equals the plan that runs stays.
fn is_better(snapshot: &Snapshot, other: &[Granted], granted: &[Granted]) -> bool {
    let gain = throughput(snapshot, other) - throughput(snapshot, granted);
    other.len() >= granted.len() && gain > 1e-6
}

/// Throughput relative to proportional shares, summed.
pub fn throughput(snapshot: &Snapshot, granted: &[Granted]) -> f64 {
    let speed = |granted: &Granted| {
        let spec = snapshot.jobs.spec(granted.row as usize);
        let allocation = Allocation { slices: granted.slices.clone() };
        speed_of(snapshot, spec, &allocation)
    };
    granted.iter().map(speed).sum()
}

/// How fast a job is with an allocation, relative to the proportional share of as many GPUs of that type.
pub fn speed_of(snapshot: &Snapshot, spec: &rota_core::job::JobSpec, allocation: &Allocation) -> f64 {
    let node = allocation.slices.first().and_then(|slice| snapshot.cluster.node(slice.node));
    let Some(node) = node else { return 0.0 };
    let fair = fair_rate(&snapshot.cluster, spec, allocation.n_gpus(), node.gpu_type);
    if fair > 0.0 { spec.rate(allocation, &snapshot.cluster) / fair } else { 0.0 }
}

/// Which of the selected jobs use which GPU type: the one they are bound to or hold, else the first with GPUs left.
fn by_type(snapshot: &Snapshot, room: &Room, selected: &[u32]) -> Vec<Vec<u32>> {
    let n_types = snapshot.cluster.gpu_types().len();
    let mut left: Vec<u32> = (0..n_types).map(|t| room.free_gpus_of(GpuTypeId::from(t))).collect();
    let mut rows = vec![Vec::new(); n_types];
    for &row in selected {
        let jobs = &snapshot.jobs;
        let gpus = jobs.gpus()[row as usize];
        let held = jobs.allocation(row as usize).slices.first();
        let held = held.map(|slice| snapshot.cluster.nodes()[slice.node.index()].gpu_type.index());
        let has_room = |t: &usize| left[*t] >= gpus;
        let index = match jobs.spec(row as usize).gpu_type {
            Some(only) => Some(only.index()).filter(has_room),
            None => held.filter(has_room).or_else(|| (0..n_types).find(has_room)),
        };
        if let Some(index) = index {
            left[index] -= gpus;
            rows[index].push(row);
        }
    }
    rows
}

/// Gives every job what was chosen, where it was chosen; a job without a place takes the fair share wherever it fits.
fn walk(
    snapshot: &Snapshot,
    room: &mut Room,
    gpu_type: GpuTypeId,
    mut places: places::Places,
) -> Vec<Granted> {
    leave_only(snapshot, room, gpu_type);
    let mut by_row = vec![rota_core::resources::Host::NONE; snapshot.jobs.len()];
    for job in places.jobs() {
        by_row[job.row as usize] = job.per_gpu;
    }
    let order = places.order(snapshot);
    let how = Walk { demand: Demand::PerGpu(by_row), keep_places: false, ..Walk::default() };
    let mut answers = [Answer::FairShare, Answer::Reclaim(Reclaim::default())];
    let granted = Fill::new(snapshot, room, &mut places).run(&order, &how, &mut answers);
    room.reset(snapshot);
    granted
}

/// Frees everything of one GPU type and nothing of the others, so that a walk stays on it.
pub(crate) fn leave_only(snapshot: &Snapshot, room: &mut Room, gpu_type: GpuTypeId) {
    room.reset(snapshot);
    for node in snapshot.cluster.nodes().iter().filter(|node| node.gpu_type != gpu_type) {
        let (free, _) = room.free_on(node.id);
        if free != GpuSet::NONE {
            room.take_gpus(node.id, free);
        }
    }
}
