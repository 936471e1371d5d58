//! What a policy is asked: GPU types, jobs, speeds of pairs. What it answers: the part of the time of each row on each type.

use std::collections::BTreeMap;
use std::fmt;

use rota_solvers::gavel_shares::{TimeMember, TimeRow, TimeShares};
use smallvec::SmallVec;

/// One number for each GPU type, in the alphabetical order of their names.
pub type ByType = SmallVec<[f64; 4]>;

/// A job, or two that share GPUs, by their numbers; the smaller one first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RowId {
    /// The job, or the first of two.
    pub first: u32,
    /// The second, if two share.
    pub second: Option<u32>,
}

impl RowId {
    /// A job alone.
    #[must_use]
    pub fn single(job: u32) -> Self {
        RowId { first: job, second: None }
    }

    /// Two jobs that share.
    #[must_use]
    pub fn pair(a: u32, b: u32) -> Self {
        RowId { first: a.min(b), second: Some(a.max(b)) }
    }

    /// The jobs in it.
    pub fn jobs(self) -> impl Iterator<Item = u32> + Clone {
        std::iter::once(self.first).chain(self.second)
    }

    /// Whether a job is in it.
    #[must_use]
    pub fn has(self, job: u32) -> bool {
        self.first == job || self.second == Some(job)
    }
}

impl fmt::Display for RowId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.second {
            None => write!(f, "{}", self.first),
            Some(second) => write!(f, "({}, {second})", self.first),
        }
    }
}

/// The part of the time of each row on each type; rows that are not there have none.
pub type Shares = BTreeMap<RowId, ByType>;

/// Speeds of two jobs that share GPUs.
pub trait PairSpeeds {
    /// Steps in a second of both, on each type; nothing where they were not measured.
    fn pair(&self, first: u32, second: u32) -> Option<SmallVec<[[f64; 2]; 4]>>;
}

/// What a policy is asked.
pub struct Call<'a> {
    /// When it is asked.
    pub now_s: f64,
    /// Names of the GPU types, in alphabetical order.
    pub types: &'a [String],
    /// How many GPUs there are of each.
    pub gpus: &'a [u32],
    /// The jobs that are there, in the order of their arrival.
    pub jobs: Vec<CallJob>,
    /// Speeds of pairs.
    pub pairs: &'a dyn PairSpeeds,
    /// What a GPU of each type costs; empty: the same.
    pub prices: &'a [f64],
    /// Groups of jobs with a weight of their own.
    pub entities: &'a [Entity],
}

/// A job in a call.
#[derive(Clone, Debug, PartialEq)]
pub struct CallJob {
    /// Its number.
    pub id: u32,
    /// GPUs that it runs on.
    pub gpus: u32,
    /// Its weight.
    pub weight: f64,
    /// Steps in a second on each type.
    pub rates: ByType,
    /// Steps left.
    pub left: f64,
    /// Seconds since it arrived.
    pub waited_s: f64,
    /// Seconds until it must have ended.
    pub slo_s: Option<f64>,
}

/// Jobs with a weight in common, as a tenant has.
#[derive(Clone, Debug, PartialEq)]
pub struct Entity {
    /// Its weight.
    pub weight: f64,
    /// How its weight is divided among its jobs.
    pub rule: EntityRule,
    /// Its jobs, by number.
    pub jobs: Vec<u32>,
}

/// How an entity's weight is divided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EntityRule {
    /// By the jobs' weights.
    Fairness,
    /// The first job that is not satisfied has all of it.
    Fifo,
}

impl Call<'_> {
    /// GPUs of all types.
    pub(super) fn n_gpus(&self) -> u32 {
        self.gpus.iter().sum()
    }

    /// The models' view of the call: rows are the jobs and, if two may share, the pairs of equal GPU count. With `speeds`, a job's
    /// own speeds are replaced.
    pub(super) fn time_shares(
        &self,
        packs: bool,
        speeds: impl Fn(&CallJob) -> Vec<f64>,
    ) -> (TimeShares, Vec<RowId>) {
        let mut ids = Vec::new();
        let mut rows = Vec::new();
        for (at, job) in self.jobs.iter().enumerate() {
            let members = vec![TimeMember { job: at, rates: speeds(job) }];
            rows.push(TimeRow { gpus: f64::from(job.gpus), members });
            ids.push(RowId::single(job.id));
        }
        if packs {
            for (a, first) in self.jobs.iter().enumerate() {
                for (b, second) in
                    self.jobs.iter().enumerate().skip(a + 1).filter(|(_, job)| job.gpus == first.gpus)
                {
                    let Some(rates) = self.pairs.pair(first.id, second.id) else { continue };
                    let of = |job: usize, member: usize| TimeMember {
                        job,
                        rates: rates.iter().map(|rates| f64::from(rates[member] as f32)).collect(),
                    };
                    rows.push(TimeRow { gpus: f64::from(first.gpus), members: vec![of(a, 0), of(b, 1)] });
                    ids.push(RowId::pair(first.id, second.id));
                }
            }
        }
        let capacity = self.gpus.iter().map(|gpus| f64::from(*gpus)).collect();
        (TimeShares { capacity, n_jobs: self.jobs.len(), rows }, ids)
    }
}
