//! The scheduler's state: events in, commands out. It holds what is known, decides nothing and reads no clock.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::allocation::{Allocation, GpuSet, Slice};
use crate::check::{CheckedPlan, PlanViolation, check};
use crate::cluster::Cluster;
use crate::event::{Command, Event, KeptJob, StopCause};
use crate::ids::{Incarnation, JobId, NodeId};
use crate::job::JobSpec;
use crate::plan::{Hold, Plan, Run, Verdict};
use crate::reconcile::reconcile;
use crate::snapshot::{Guards, NodeStates, Snapshot};
use crate::table::{JobPhase, JobTable, RevisedRates};
use crate::time::{Span, Time};
use crate::workload::Dataset;

/// What is known about the cluster and about every job that has not ended. A copy shares everything until one of the two
/// changes.
#[derive(Clone, Debug)]
pub struct Scheduler {
    cluster: Arc<Cluster>,
    nodes: Arc<NodeStates>,
    jobs: Arc<JobTable>,
    /// Jobs that no policy is to see for now.
    parked: JobTable,
    guards: Arc<Guards>,
    round: Span,
    tenants: Arc<Vec<String>>,
}

/// Whether the set of jobs or nodes changed, so that a steady policy's answer may change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Impact {
    /// The set changed.
    Changed,
    /// Only details changed.
    Same,
}

impl Scheduler {
    /// An empty cluster.
    pub fn new(cluster: Arc<Cluster>, guards: Guards, round: Span, datasets: Vec<Dataset>) -> Self {
        let nodes = NodeStates { datasets, ..NodeStates::all_up(&cluster) };
        Scheduler {
            cluster,
            nodes: Arc::new(nodes),
            jobs: Arc::default(),
            parked: JobTable::default(),
            guards: Arc::new(guards),
            round,
            tenants: Arc::default(),
        }
    }

    /// A scheduler that goes on from tables that were written down, of its jobs and of those put aside, with the nodes as they
    /// were.
    pub fn restored(self, jobs: JobTable, parked: JobTable, nodes: NodeStates) -> Self {
        Scheduler { jobs: Arc::new(jobs), parked, nodes: Arc::new(nodes), ..self }
    }

    /// Other rules hold from now on: guards and the time between rounds. `spec_of` is what is known from now on of a job.
    pub fn revise(
        &mut self,
        now: Time,
        guards: Guards,
        round: Span,
        spec_of: impl Fn(JobId) -> Option<Arc<JobSpec>>,
    ) {
        (self.guards, self.round) = (Arc::new(guards), round);
        for jobs in [Arc::make_mut(&mut self.jobs), &mut self.parked] {
            for row in 0..jobs.len() {
                let Some(spec) = spec_of(jobs.id(row)) else { continue };
                let demand = spec.demand_per_gpu(&self.cluster);
                let rates = RevisedRates {
                    fair_rate: spec.fair_rate(&self.cluster),
                    rate: spec.rate(jobs.allocation(row), &self.cluster),
                    best_speed: spec.best_speed(&demand, &self.cluster),
                };
                jobs.revise(row, now, spec, demand, rates);
            }
        }
    }

    /// A job that has run for less is not preempted, as it was last set.
    pub fn min_run(&self) -> Span {
        self.guards.min_run
    }

    /// Tells it what the tenants are called, by number; policies may ask.
    pub fn name_tenants(&mut self, names: &[String]) {
        self.tenants = Arc::new(names.to_vec());
    }

    /// The jobs that have not ended, parked ones apart.
    pub fn jobs(&self) -> &JobTable {
        &self.jobs
    }

    /// Jobs that are put aside: no policy sees them until they are resumed.
    pub fn parked(&self) -> &JobTable {
        &self.parked
    }

    /// Puts a job aside that does not run. It keeps its number of launches and what it has done.
    pub fn park(&mut self, job: JobId) -> Impact {
        match self.jobs.row(job) {
            Some(row) if self.jobs.phase(row) != JobPhase::Running => {
                Arc::make_mut(&mut self.jobs).move_to(row, &mut self.parked);
                Impact::Changed
            }
            _ => Impact::Same,
        }
    }

    /// Takes back a job that was put aside.
    pub fn resume(&mut self, job: JobId) -> Impact {
        let Some(row) = self.parked.row(job) else { return Impact::Same };
        self.parked.move_to(row, Arc::make_mut(&mut self.jobs));
        Impact::Changed
    }

    /// The cluster as it was bought; what is up right now is in the snapshot.
    pub fn cluster(&self) -> &Arc<Cluster> {
        &self.cluster
    }

    /// The state of the nodes.
    pub fn nodes(&self) -> &NodeStates {
        &self.nodes
    }

    /// Absorbs a fact. Orders that follow from it without a decision (refusing what can never run, stopping what
    /// lost a node) are appended to `orders`.
    pub fn handle(&mut self, now: Time, event: &Event, orders: &mut Vec<Command>) -> Impact {
        let impact = self.absorb(now, event, orders);
        self.narrow_closed();
        impact
    }

    fn absorb(&mut self, now: Time, event: &Event, orders: &mut Vec<Command>) -> Impact {
        match event {
            Event::JobSubmitted(spec) => self.submit(now, spec, orders),
            Event::JobProgressed { job, incarnation, done } => {
                if let Some(row) = self.current(*job, *incarnation) {
                    Arc::make_mut(&mut self.jobs).report_done(row, now, *done);
                }
                Impact::Same
            }
            Event::JobCorrected(spec) => self.correct(now, spec),
            Event::JobStopped { job, incarnation, done } => {
                // A job that moves is launched again at once: the new launch begins at the last count of the one before.
                let next = self.jobs.launch_after(*incarnation);
                if let Some(row) = self.current(*job, *incarnation).or_else(|| self.current(*job, next)) {
                    Arc::make_mut(&mut self.jobs).report_done(row, now, *done);
                }
                Impact::Same
            }
            Event::JobFinished { job, incarnation } | Event::JobFailed { job, incarnation, .. } => {
                match self.current(*job, *incarnation) {
                    // Even if it was told to stop meanwhile: it is over.
                    Some(row) if self.jobs.phase(row) != JobPhase::Asking => {
                        Arc::make_mut(&mut self.jobs).remove(row);
                        Impact::Changed
                    }
                    Some(_) => Impact::Same,
                    None => self.end_parked(*job),
                }
            }
            Event::JobRequeued { job, incarnation, done } => match self.current(*job, *incarnation) {
                Some(row) if self.jobs.phase(row) == JobPhase::Running => {
                    let jobs = Arc::make_mut(&mut self.jobs);
                    jobs.stop(row, now);
                    jobs.report_done(row, now, *done);
                    Impact::Changed
                }
                _ => Impact::Same,
            },
            Event::JobCancelled { job } => self.take_out(*job, StopCause::Cancelled, orders),
            Event::NodeJoined { name, rack, group } => match self.cluster.join(name, *rack, group) {
                Ok(cluster) => {
                    self.cluster = Arc::new(cluster);
                    Arc::make_mut(&mut self.nodes).is_up.push(true);
                    Impact::Changed
                }
                Err(_) => Impact::Same,
            },
            Event::NodeLost { node } => self.lose(now, *node, orders),
            Event::NodeReturned { node } => {
                let nodes = Arc::make_mut(&mut self.nodes);
                let was_cut_off = nodes.cut_off.remove(node);
                match nodes.is_up.get_mut(node.index()) {
                    Some(is_up) if !*is_up => {
                        *is_up = true;
                        Impact::Changed
                    }
                    _ if was_cut_off => Impact::Changed,
                    _ => Impact::Same,
                }
            }
            Event::GpuLost { node, gpu } => self.lose_gpu(now, *node, *gpu, orders),
            Event::GpuReturned { node, gpu } => {
                let bad = &mut Arc::make_mut(&mut self.nodes).bad_gpus;
                let Some(set) = bad.get_mut(node).filter(|set| set.contains(*gpu)) else {
                    return Impact::Same;
                };
                *set = set.without(GpuSet::one(*gpu));
                if set.is_empty() {
                    bad.remove(node);
                }
                Impact::Changed
            }
            Event::DataCached { node, dataset } => {
                Arc::make_mut(&mut self.nodes).cached.entry(*node).or_default().push(*dataset);
                Impact::Same
            }
            Event::DataEvicted { node, dataset } => {
                if let Some(sets) = Arc::make_mut(&mut self.nodes).cached.get_mut(node) {
                    sets.retain(|d| d != dataset);
                }
                Impact::Same
            }
            Event::JobWithdrawn { job } => self.take_out(*job, StopCause::Withdrawn, orders),
            Event::JobReturned { spec, kept } => {
                let impact = self.submit(now, spec, orders);
                if let Some(row) = self.jobs.row(spec.id) {
                    Arc::make_mut(&mut self.jobs).restore(row, now, kept);
                }
                impact
            }
            Event::NodeClosed { node } => {
                Arc::make_mut(&mut self.nodes).closed.insert(*node, GpuSet::NONE);
                Impact::Changed
            }
            Event::NodeOpened { node } => match Arc::make_mut(&mut self.nodes).closed.remove(node) {
                Some(_) => Impact::Changed,
                None => Impact::Same,
            },
        }
    }

    /// What is to be kept of a job that is about to be taken out of the queue.
    pub fn kept(&mut self, now: Time, job: JobId) -> Option<KeptJob> {
        if let Some(row) = self.parked.row(job) {
            return Some(self.parked.kept(row, now));
        }
        let row = self.jobs.row(job)?;
        Some(Arc::make_mut(&mut self.jobs).kept(row, now))
    }

    /// Of nodes that take no new jobs, only what running jobs hold can be used.
    fn narrow_closed(&mut self) {
        if self.nodes.closed.is_empty() {
            return;
        }
        let mut held: BTreeMap<NodeId, GpuSet> =
            self.nodes.closed.keys().map(|node| (*node, GpuSet::NONE)).collect();
        for row in 0..self.jobs.len() {
            for slice in &self.jobs.allocation(row).slices {
                if let Some(held) = held.get_mut(&slice.node) {
                    *held = held.or(slice.gpus);
                }
            }
        }
        if held != self.nodes.closed {
            Arc::make_mut(&mut self.nodes).closed = held;
        }
    }

    /// The row of a job, if the report is about its current launch.
    fn current(&self, job: JobId, incarnation: Incarnation) -> Option<usize> {
        self.jobs.row(job).filter(|row| self.jobs.incarnation(*row) == incarnation)
    }

    fn submit(&mut self, _now: Time, spec: &Arc<JobSpec>, orders: &mut Vec<Command>) -> Impact {
        let available = self.cluster.n_gpus_of(spec.gpu_type);
        if spec.gpus.min() > available {
            let reason = format!("asks for {} GPUs, the cluster has {available}", spec.gpus.min());
            orders.push(Command::Decline { job: spec.id, reason });
            return Impact::Same;
        }
        let demand = spec.demand_per_gpu(&self.cluster);
        let fair_rate = spec.fair_rate(&self.cluster);
        let best_speed = spec.best_speed(&demand, &self.cluster);
        Arc::make_mut(&mut self.jobs).insert(Arc::clone(spec), demand, fair_rate, best_speed);
        Impact::Changed
    }

    fn correct(&mut self, now: Time, spec: &Arc<JobSpec>) -> Impact {
        let fair_rate = spec.fair_rate(&self.cluster);
        if let Some(row) = self.parked.row(spec.id) {
            self.parked.correct(row, now, Arc::clone(spec), fair_rate, 0.0);
        }
        let Some(row) = self.jobs.row(spec.id) else { return Impact::Same };
        let rate = spec.rate(self.jobs.allocation(row), &self.cluster);
        Arc::make_mut(&mut self.jobs).correct(row, now, Arc::clone(spec), fair_rate, rate);
        Impact::Changed
    }

    fn take_out(&mut self, job: JobId, cause: StopCause, orders: &mut Vec<Command>) -> Impact {
        let Some(row) = self.jobs.row(job) else { return self.end_parked(job) };
        if self.jobs.phase(row) == JobPhase::Running {
            orders.push(Command::Stop { job, incarnation: self.jobs.incarnation(row), cause });
        }
        Arc::make_mut(&mut self.jobs).remove(row);
        Impact::Changed
    }

    /// A job ends while it is put aside.
    fn end_parked(&mut self, job: JobId) -> Impact {
        let Some(row) = self.parked.row(job) else { return Impact::Same };
        self.parked.remove(row);
        Impact::Changed
    }

    /// A gang that lost one node is stopped on all.
    fn lose(&mut self, now: Time, node: NodeId, orders: &mut Vec<Command>) -> Impact {
        match Arc::make_mut(&mut self.nodes).is_up.get_mut(node.index()) {
            Some(is_up) if *is_up => *is_up = false,
            _ => return Impact::Same,
        }
        Arc::make_mut(&mut self.nodes).cut_off.remove(&node);
        self.stop_all(now, |slice| slice.node == node, orders);
        Impact::Changed
    }

    /// Jobs that hold the GPU are stopped; other jobs of the node go on.
    fn lose_gpu(&mut self, now: Time, node: NodeId, gpu: u32, orders: &mut Vec<Command>) -> Impact {
        let n_gpus = self.cluster.node(node).map_or(0, |node| node.n_gpus);
        let known = self.nodes.bad_gpus.get(&node).copied().unwrap_or(GpuSet::NONE);
        if gpu >= n_gpus || known.contains(gpu) {
            return Impact::Same;
        }
        Arc::make_mut(&mut self.nodes).bad_gpus.insert(node, known.or(GpuSet::one(gpu)));
        self.stop_all(now, |slice| slice.node == node && slice.gpus.contains(gpu), orders);
        Impact::Changed
    }

    /// Stops every job that holds a slice that is gone.
    fn stop_all(&mut self, now: Time, is_gone: impl Fn(&Slice) -> bool, orders: &mut Vec<Command>) {
        let mut hit: Vec<_> = (0..self.jobs.len())
            .filter(|row| self.jobs.allocation(*row).slices.iter().any(&is_gone))
            .map(|row| self.jobs.id(row))
            .collect();
        hit.sort_unstable();
        for job in hit {
            let Some(row) = self.jobs.row(job) else { continue };
            orders.push(Command::Stop {
                job,
                incarnation: self.jobs.incarnation(row),
                cause: StopCause::NodeLost,
            });
            Arc::make_mut(&mut self.jobs).stop(row, now);
        }
    }

    /// A node cannot be reached: what runs there goes on, and nothing is started there until it returns or is lost.
    pub fn cut_off(&mut self, node: NodeId) -> Impact {
        let is_up = self.nodes.is_up.get(node.index()) == Some(&true);
        match is_up && Arc::make_mut(&mut self.nodes).cut_off.insert(node) {
            true => Impact::Changed,
            false => Impact::Same,
        }
    }

    /// The nodes as policies see them: of a node that is cut off, only GPUs that jobs hold can be used.
    fn nodes_to_see(&self) -> Arc<NodeStates> {
        if self.nodes.cut_off.is_empty() {
            return Arc::clone(&self.nodes);
        }
        let mut seen = (*self.nodes).clone();
        for node in &self.nodes.cut_off {
            let of_node = |row: usize| self.jobs.allocation(row).slices.iter().filter(|s| s.node == *node);
            let held = (0..self.jobs.len()).flat_map(of_node).fold(GpuSet::NONE, |sum, s| sum.or(s.gpus));
            let all = GpuSet::first(self.cluster.node(*node).map_or(0, |node| node.n_gpus));
            let bad = seen.bad_gpus.entry(*node).or_insert(GpuSet::NONE);
            *bad = bad.or(all.without(held));
        }
        Arc::new(seen)
    }

    /// From now on, a job that has run for less is not preempted.
    pub fn set_min_run(&mut self, min_run: Span) {
        if self.guards.min_run != min_run {
            Arc::make_mut(&mut self.guards).min_run = min_run;
        }
    }

    /// From now on, launches have at least this number: lower ones may be in use by launches that are not known here.
    pub fn skip_launches(&mut self, first: Incarnation) {
        Arc::make_mut(&mut self.jobs).skip_launches(first);
    }

    /// Takes over a launch that runs without having been ordered by this state, as after a restore from an older copy. The
    /// job must be known and not run, and what the launch holds must be free.
    pub fn adopt(
        &mut self,
        now: Time,
        job: JobId,
        incarnation: Incarnation,
        allocation: &Allocation,
    ) -> Result<Vec<Command>, PlanViolation> {
        let is_running = |row: &usize| self.jobs.phase(*row) == JobPhase::Running;
        let running = (0..self.jobs.len()).filter(is_running).map(|row| self.jobs.id(row));
        // A job that runs already is then planned twice, which the check refuses.
        let mut run: Vec<_> = running.map(|job| Run { job, what: Hold::Keep }).collect();
        run.push(Run { job, what: Hold::Take(allocation.clone()) });
        let asks = self.jobs.row(job).is_some_and(|row| self.jobs.phase(row) == JobPhase::Asking);
        let verdicts = if asks { vec![(job, Verdict::Admit)] } else { Vec::new() };
        check(&self.snapshot(now), Plan { run, verdicts, ..Plan::default() })?;
        let mut commands: Vec<_> = asks.then_some(Command::Admit { job }).into_iter().collect();
        commands.push(Command::Start { job, incarnation, allocation: allocation.clone() });
        let jobs = Arc::make_mut(&mut self.jobs);
        for command in &commands {
            apply(jobs, &self.cluster, &self.nodes, now, command);
        }
        if let Some(row) = jobs.row(job) {
            jobs.set_incarnation(row, incarnation);
        }
        Ok(commands)
    }

    /// The view of this instant.
    pub fn snapshot(&mut self, now: Time) -> Snapshot {
        Arc::make_mut(&mut self.jobs).refresh(now);
        Snapshot {
            now,
            round: self.round,
            jobs: Arc::clone(&self.jobs),
            cluster: Arc::clone(&self.cluster),
            nodes: self.nodes_to_see(),
            guards: Arc::clone(&self.guards),
            tenants: Arc::clone(&self.tenants),
        }
    }

    /// Carries out a plan in the state, and returns the commands for it. The snapshot that the plan was checked against
    /// should be dropped by now; otherwise every change copies the table.
    pub fn commit(&mut self, now: Time, checked: CheckedPlan) -> Vec<Command> {
        let commands = reconcile(&self.jobs, checked);
        let jobs = Arc::make_mut(&mut self.jobs);
        for command in &commands {
            apply(jobs, &self.cluster, &self.nodes, now, command);
        }
        self.narrow_closed();
        commands
    }

    /// Panics when the state is inconsistent: something given twice, an incomplete gang, a wrong count.
    pub fn assert_sane(&self) {
        let jobs = &self.jobs;
        let mut free: Vec<_> =
            self.cluster.nodes().iter().map(|n| (vec![1000_u32; n.n_gpus as usize], n.host)).collect();
        let (mut n_running, mut n_asking) = (0, 0);
        for row in 0..jobs.len() {
            let (id, allocation) = (jobs.id(row), jobs.allocation(row));
            assert_eq!(jobs.row(id), Some(row), "job {id} is found at its row");
            n_asking += usize::from(jobs.phase(row) == JobPhase::Asking);
            n_running += usize::from(jobs.phase(row) == JobPhase::Running);
            assert_eq!(
                jobs.phase(row) == JobPhase::Running,
                !allocation.is_empty(),
                "job {id} holds GPUs when it runs"
            );
            assert!(
                allocation.is_empty() || jobs.spec(row).gpus.allows(allocation.n_gpus()),
                "job {id}: gang is whole"
            );
            for slice in &allocation.slices {
                assert!(
                    self.nodes.is_up[slice.node.index()],
                    "job {id} runs on node {}, which is down",
                    slice.node
                );
                let bad = self.nodes.bad_gpus.get(&slice.node).copied().unwrap_or(GpuSet::NONE);
                assert!(slice.gpus.and(bad).is_empty(), "job {id} runs on a bad GPU of node {}", slice.node);
                let (gpus, host) = &mut free[slice.node.index()];
                for gpu in slice.gpus.iter() {
                    let left = &mut gpus[gpu as usize];
                    *left = left
                        .checked_sub(slice.share.into())
                        .unwrap_or_else(|| panic!("node {}: GPU {gpu} given twice", slice.node));
                }
                *host = host.checked_sub(&slice.host).unwrap_or_else(|| {
                    panic!("node {}: {host} left, job {id} holds {}", slice.node, slice.host)
                });
            }
        }
        assert_eq!((n_running, n_asking), (jobs.n_running(), jobs.n_asking()), "jobs are counted right");
    }
}

/// Applies a command to the state.
fn apply(jobs: &mut JobTable, cluster: &Cluster, nodes: &NodeStates, now: Time, command: &Command) {
    let row_of = |job: JobId| jobs.row(job).unwrap_or_else(|| panic!("job {job}: commanded but not active"));
    match command {
        Command::Admit { job } => {
            let row = row_of(*job);
            jobs.admit(row);
        }
        Command::Decline { job, .. } => {
            let row = row_of(*job);
            jobs.remove(row);
        }
        Command::Stop { job, .. } => {
            let row = row_of(*job);
            jobs.stop(row, now);
        }
        Command::Resize { job, allocation, .. } => {
            let row = row_of(*job);
            let rate = jobs.spec(row).rate(allocation, cluster);
            jobs.resize(row, now, allocation.clone(), rate);
        }
        Command::Start { job, incarnation, allocation } => {
            let row = row_of(*job);
            let rate = jobs.spec(row).rate(allocation, cluster);
            let costs = jobs.spec(row).costs();
            let delay = if incarnation.0 > 1 { costs.restart_and_checkpoint() } else { Span::ZERO };
            let fetch = match jobs.spec(row).dataset {
                Some(dataset) => {
                    let there = allocation.slices.iter().filter_map(|slice| cluster.node(slice.node));
                    nodes.fetch_time(dataset, there)
                }
                None => Span::ZERO,
            };
            jobs.start(row, now, allocation.clone(), rate, delay, fetch);
        }
    }
}
