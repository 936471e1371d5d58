//! From rows to a workload: names become ids, and jobs are put in order of arrival.

use std::collections::BTreeMap;
use std::sync::Arc;

use rota_core::ids::{DatasetId, JobId, TenantId};
use rota_core::job::{Deadline, GpuRequest, JobSpec};
use rota_core::profile::Profile;
use rota_core::time::Time;
use rota_core::workload::{Dataset, Truth, Workload};

/// The tenant of jobs that name none.
pub(crate) const NO_TENANT: &str = "default";

/// A workload while it is read: jobs in the order of the file.
#[derive(Default)]
pub(crate) struct JobList {
    jobs: Vec<ReadJob>,
    line: u64,
    tenants: Names,
    datasets: Vec<Dataset>,
}

struct ReadJob {
    spec: Arc<JobSpec>,
    truth: Truth,
    line: u64,
}

/// Names by order of appearance.
#[derive(Default)]
struct Names {
    names: Vec<String>,
    ids: BTreeMap<String, u32>,
}

impl JobList {
    /// A job with nothing but what every job has; ids are given at the end.
    pub(crate) fn plain(name: &str, profile: Arc<Profile>, gpus: u32, work: f64, arrival: Time) -> JobSpec {
        JobSpec {
            id: JobId(0),
            name: name.into(),
            tenant: TenantId(0),
            priority: 0,
            profile,
            batch: 0,
            gpus: GpuRequest::fixed(gpus),
            gpu_type: None,
            estimated_work: work,
            arrival,
            deadline: Deadline::None,
            dataset: None,
            costs: None,
        }
    }

    /// The id of a tenant; the empty name is [`NO_TENANT`].
    pub(crate) fn tenant(&mut self, name: &str) -> TenantId {
        TenantId(self.tenants.intern(if name.is_empty() { NO_TENANT } else { name }))
    }

    /// The id of a data set that was added before.
    pub(crate) fn dataset(&self, name: &str) -> Option<DatasetId> {
        self.datasets.iter().position(|d| d.name == name).map(DatasetId::from)
    }

    /// What is known of a data set.
    pub(crate) fn dataset_at(&self, id: DatasetId) -> Option<&Dataset> {
        self.datasets.get(id.index())
    }

    /// Adds a data set that is not in the list yet.
    pub(crate) fn add_dataset(&mut self, dataset: Dataset) -> DatasetId {
        self.datasets.push(dataset);
        DatasetId::from(self.datasets.len() - 1)
    }

    /// Says in which line of the file the jobs are that are added next.
    pub(crate) fn at_line(&mut self, line: u64) {
        self.line = line;
    }

    /// Adds a job whose profile is right and whose estimate is as given.
    pub(crate) fn push(&mut self, spec: JobSpec, work: f64) {
        self.push_with(spec, Truth::of(work));
    }

    /// Adds a job with all that really happens to it.
    pub(crate) fn push_with(&mut self, spec: JobSpec, truth: Truth) {
        self.jobs.push(ReadJob { spec: Arc::new(spec), truth, line: self.line });
    }

    /// Orders by arrival (those of one instant stay in file order) and numbers through.
    pub(crate) fn finish(self) -> Workload {
        self.finish_with_lines().0
    }

    /// The same with the line of each job.
    pub(crate) fn finish_with_lines(mut self) -> (Workload, Vec<u64>) {
        if !self.jobs.is_sorted_by_key(|job| job.spec.arrival) {
            self.jobs.sort_by_key(|job| job.spec.arrival);
        }
        if self.tenants.names.is_empty() {
            self.tenants.intern(NO_TENANT);
        }
        let mut workload =
            Workload { tenants: self.tenants.names, datasets: self.datasets, ..Workload::default() };
        workload.jobs.reserve_exact(self.jobs.len());
        workload.truths.reserve_exact(self.jobs.len());
        let mut lines = Vec::with_capacity(self.jobs.len());
        for (index, ReadJob { mut spec, truth, line }) in self.jobs.into_iter().enumerate() {
            // Nobody else has it yet, so nothing is copied.
            Arc::make_mut(&mut spec).id = JobId::from(index);
            workload.jobs.push(spec);
            workload.truths.push(truth);
            lines.push(line);
        }
        (workload, lines)
    }
}

impl Names {
    fn intern(&mut self, name: &str) -> u32 {
        if let Some(id) = self.ids.get(name) {
            return *id;
        }
        let id = TenantId::from(self.names.len()).0;
        self.names.push(name.to_owned());
        self.ids.insert(name.to_owned(), id);
        id
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jobs_of_one_instant_stay_in_file_order() {
        let profile = Arc::new(Profile::plain("m", 1.0));
        let mut list = JobList::default();
        for (name, arrival) in [("late", 5), ("first", 0), ("second", 0)] {
            list.push(JobList::plain(name, profile.clone(), 1, 1.0, Time(arrival)), 1.0);
        }
        let workload = list.finish();
        assert_eq!(
            workload.jobs.iter().map(|j| (j.id.0, &*j.name)).collect::<Vec<_>>(),
            [(0, "first"), (1, "second"), (2, "late")]
        );
        assert_eq!((workload.check(), workload.tenants), (Ok(()), vec![NO_TENANT.to_owned()]));
    }
}
