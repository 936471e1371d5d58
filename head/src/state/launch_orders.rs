//! From an allocation to the orders that start a job on its nodes.

use rota_core::allocation::Allocation;
use rota_core::cluster::Cluster;
use rota_core::ids::NodeId;
use rota_core::resources::Host;
use rota_core::time::Span;
use rota_transport::message::{Attempt, Gang, GangNumbers, Launch, Processes, Start, Work};
use rota_transport::value::{
    GpuShare, Gpus, HostAmount, Iterations, Name, Rate, Text, TimeScale, ValueError, Wait,
};

use crate::cluster_state::JobRecord;

/// The launch of a job on each of its nodes.
pub(super) fn launches(
    attempt: Attempt,
    job: &JobRecord,
    done: f64,
    allocation: &Allocation,
    cluster: &Cluster,
    time_scale: TimeScale,
) -> Result<Vec<(NodeId, Launch)>, ValueError> {
    let per_node = |n_gpus: u32| match job.request.start.processes {
        Processes::PerNode => 1,
        Processes::PerGpu => n_gpus,
    };
    let world_size = allocation.slices.iter().map(|slice| per_node(slice.gpus.len())).sum();
    let n_nodes = allocation.slices.len() as u32;
    let (mut first_rank, mut found) = (0, Vec::new());
    for (node_rank, slice) in allocation.slices.iter().enumerate() {
        let n_ranks = per_node(slice.gpus.len());
        let gang =
            Gang::new(GangNumbers { node_rank: node_rank as u32, n_nodes, first_rank, n_ranks, world_size })?;
        first_rank += n_ranks;
        found.push((
            slice.node,
            Launch {
                attempt,
                id: (u64::from(attempt.job.0) << 32) | u64::from(attempt.incarnation.0),
                name: job.request.name.clone(),
                user: Name::new(job.user.as_str())?,
                launcher: job.request.start.launcher.clone(),
                argv: job.request.start.argv.clone(),
                env: environment(job)?,
                working_directory: job.request.start.working_directory.clone(),
                gpus: Gpus::new(slice.gpus)?,
                share: GpuShare::new(slice.thousandths())?,
                host: amount(&slice.host)?,
                gang,
                start: if n_nodes > 1 { Start::WhenTold } else { Start::AtOnce },
                work: work(attempt, job, done, allocation, cluster)?,
                checkpoint_directory: job.request.start.checkpoint_directory.clone(),
                on_head_lost: job.request.start.on_head_lost,
                log: job.request.start.log,
                grace: job.request.start.grace,
                time_scale,
                request: Some(Box::new((*job.request).clone())),
            },
        ));
    }
    Ok(found)
}

/// A share of a host as it goes to agents.
pub(super) fn amount(host: &Host) -> Result<HostAmount, ValueError> {
    HostAmount::new(*host)
}

/// Iterations per second with an allocation, as they go to agents.
pub(crate) fn rate(job: &JobRecord, allocation: &Allocation, cluster: &Cluster) -> Result<Rate, ValueError> {
    Rate::new(job.spec.rate(allocation, cluster))
}

fn work(
    attempt: Attempt,
    job: &JobRecord,
    done: f64,
    allocation: &Allocation,
    cluster: &Cluster,
) -> Result<Work, ValueError> {
    let costs = job.spec.costs();
    let delay = if attempt.incarnation.0 > 1 { costs.restart_and_checkpoint() } else { Span::ZERO };
    Ok(Work {
        to_do: job.request.work,
        done: Iterations::new(done)?,
        rate: rate(job, allocation, cluster)?,
        delay: Wait::cut(delay),
        checkpoint_every: job.request.start.checkpoint_every,
    })
}

/// The environment variables that a job's owner set, and the model it runs.
fn environment(job: &JobRecord) -> Result<Vec<(Text, Text)>, ValueError> {
    let mut found = job.request.start.env.clone();
    for (key, value) in
        [("ROTA_MODEL", job.request.model.to_string()), ("ROTA_BATCH", job.request.batch.to_string())]
    {
        found.push((Text::new(key)?, Text::new(value)?));
    }
    Ok(found)
}
