//! Levels and places in one model, from the plan of the two phases on.
//!
//! Two phases choose levels as if the cluster were one server and then look for places; what finds none is lowered. The
//! joint model knows servers from the start, so nothing can do better in a round, and it grows with jobs x levels x
//! servers: beyond a size it is not built, and the status says so.

use rota_core::allocation::Allocation;
use rota_core::fill::Granted;
use rota_core::ids::{GpuTypeId, NodeId};
use rota_core::resources::Host;
use rota_core::room::Room;
use rota_core::snapshot::Snapshot;
use rota_solvers::synergy_opt::{JointJob, JointPlacement, JointProblem, LeftOut, Part};
use rota_solvers::{FormulationError, Solver, Start};

use super::OptimumSettings;
use super::levels::{self, Chosen, RowOnType};
use super::places::{self, Places};

/// What the joint model said.
pub(super) struct Joint {
    /// Levels and places, if it was asked and answered.
    pub(super) places: Option<Places>,
    /// How it ended; `too_large` when it was not asked.
    pub(super) status: &'static str,
}

/// Asks the joint model for the jobs of one GPU type; `granted` is what the two phases came to.
pub(super) fn ask(
    snapshot: &Snapshot,
    room: &Room,
    jobs: &[RowOnType],
    granted: &[Granted],
    solver: &mut dyn Solver,
    settings: &OptimumSettings,
) -> Result<Joint, FormulationError> {
    let Some(gpu_type) = jobs.first().map(|job| job.gpu_type) else {
        return Ok(Joint { places: None, status: "optimal" });
    };
    let nodes = places::nodes_of(snapshot, gpu_type);
    if jobs.len() * nodes.len() > settings.exact_spots {
        return Ok(Joint { places: None, status: "too_large" });
    }
    let table = Table::new(snapshot, room, jobs, &nodes);
    let left_out = if granted.len() == jobs.len() { LeftOut::Forbidden } else { LeftOut::Allowed };
    let built = table.problem.model(left_out)?;
    let start = table.plan_of(&nodes, granted).and_then(|plan| built.encode(&plan));
    let start = start.as_deref().map_or(Start::Cold, Start::Values);
    let solution = solver.solve(&built.model, &settings.limits, start);
    let status = solution.status.word();
    if !solution.status.has_values() {
        return Ok(Joint { places: None, status });
    }
    let plan = built.decode(&solution)?;
    Ok(Joint { places: Some(table.places(snapshot, room, gpu_type, &plan)), status })
}

/// The numbers of the model, with the jobs and levels that they refer to.
struct Table<'a> {
    jobs: &'a [RowOnType],
    /// Shares for each GPU, by job and level.
    shares: Vec<Vec<Host>>,
    problem: JointProblem,
}

impl<'a> Table<'a> {
    fn new(snapshot: &Snapshot, room: &Room, jobs: &'a [RowOnType], nodes: &[NodeId]) -> Self {
        let mut shares = Vec::with_capacity(jobs.len());
        let joint = jobs.iter().map(|job| {
            let spec = snapshot.jobs.spec(job.row as usize);
            let (levels, of_job) = levels::levels(&snapshot.cluster, room, spec, job);
            shares.push(of_job);
            JointJob { gpus: job.gpus, levels, floor: 1.0 }
        });
        let joint = joint.collect();
        let servers = nodes.iter().map(|node| places::server(room.free_on(*node))).collect();
        Table { jobs, shares, problem: JointProblem { servers, jobs: joint } }
    }

    /// A plan that runs, as the model would say it; `None` if it has a gang on several servers or a share that is no
    /// level.
    fn plan_of(&self, nodes: &[NodeId], granted: &[Granted]) -> Option<Vec<Option<JointPlacement>>> {
        let placement = |(index, job): (usize, &RowOnType)| {
            let Some(granted) = granted.iter().find(|granted| granted.row == job.row) else {
                return Some(None);
            };
            let [slice] = &granted.slices[..] else { return None };
            let server = nodes.iter().position(|node| *node == slice.node)?;
            let held = Allocation { slices: granted.slices.clone() }.least_per_gpu();
            let level = self.shares[index].iter().position(|share| *share == held)?;
            Some(Some(JointPlacement { level, parts: vec![Part { server, gpus: slice.gpus.len() }] }))
        };
        self.jobs.iter().enumerate().map(placement).collect()
    }

    fn places(
        &self,
        snapshot: &Snapshot,
        room: &Room,
        gpu_type: GpuTypeId,
        plan: &[Option<JointPlacement>],
    ) -> Places {
        let share = |index: usize| plan[index].as_ref().map_or(0, |placement| placement.level);
        let chosen: Vec<Chosen> = self
            .jobs
            .iter()
            .enumerate()
            .map(|(index, job)| Chosen {
                row: job.row,
                gpus: job.gpus,
                per_gpu: self.shares[index][share(index)],
            })
            .collect();
        let parts = plan.iter().map(|placement| placement.as_ref().map_or(Vec::new(), |p| p.parts.clone()));
        places::settle(snapshot, room, gpu_type, &chosen, parts.collect())
    }
}
