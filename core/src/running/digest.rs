//! A digest over everything that happened and was ordered: two runs with one digest took the same decisions.

use xxhash_rust::xxh3::Xxh3;

use crate::allocation::Allocation;
use crate::event::{Command, Event, StopCause};
use crate::time::Time;

/// What a line of the digest is about. The compiler refuses two kinds with one number; a number, once used, keeps its
/// meaning, or digests could no longer be compared with those of earlier runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
enum Tag {
    JobSubmitted = 1,
    JobProgressed = 2,
    JobStopped = 3,
    JobFinished = 4,
    JobCancelled = 5,
    NodeLost = 6,
    NodeReturned = 7,
    DataCached = 8,
    DataEvicted = 9,
    JobRequeued = 10,
    NodeJoined = 11,
    JobCorrected = 12,
    GpuLost = 13,
    GpuReturned = 14,
    JobWithdrawn = 15,
    JobReturned = 16,
    NodeClosed = 17,
    NodeOpened = 18,
    JobFailed = 19,
    Admit = 20,
    Decline = 21,
    Stop = 22,
    Resize = 23,
    Start = 24,
}

/// A running digest.
#[derive(Clone, Default)]
pub struct Digest {
    hasher: Xxh3,
}

impl Digest {
    /// Adds an event.
    pub fn event(&mut self, now: Time, event: &Event) {
        match event {
            Event::JobSubmitted(spec) => {
                self.line(Tag::JobSubmitted, now, spec.id.0, spec.estimated_work.to_bits())
            }
            Event::JobProgressed { job, done, .. } => {
                self.line(Tag::JobProgressed, now, job.0, done.to_bits())
            }
            Event::JobStopped { job, done, .. } => self.line(Tag::JobStopped, now, job.0, done.to_bits()),
            Event::JobCorrected(spec) => {
                self.line(Tag::JobCorrected, now, spec.id.0, spec.profile.base_rate.to_bits())
            }
            Event::JobFinished { job, incarnation } => {
                self.line(Tag::JobFinished, now, job.0, incarnation.0.into())
            }
            Event::JobFailed { job, incarnation, end } => {
                self.line(Tag::JobFailed, now, job.0, u64::from(incarnation.0) << 2 | *end as u64);
            }
            Event::JobCancelled { job } => self.line(Tag::JobCancelled, now, job.0, 0),
            Event::JobRequeued { job, done, .. } => self.line(Tag::JobRequeued, now, job.0, done.to_bits()),
            Event::NodeJoined { name, group, .. } => {
                self.line(Tag::NodeJoined, now, group.n_gpus, name.len() as u64);
                self.hasher.update(name.as_bytes());
            }
            Event::NodeLost { node } => self.line(Tag::NodeLost, now, node.0, 0),
            Event::NodeReturned { node } => self.line(Tag::NodeReturned, now, node.0, 0),
            Event::GpuLost { node, gpu } => self.line(Tag::GpuLost, now, node.0, (*gpu).into()),
            Event::GpuReturned { node, gpu } => self.line(Tag::GpuReturned, now, node.0, (*gpu).into()),
            Event::DataCached { node, dataset } => self.line(Tag::DataCached, now, node.0, dataset.0.into()),
            Event::DataEvicted { node, dataset } => {
                self.line(Tag::DataEvicted, now, node.0, dataset.0.into())
            }
            Event::JobWithdrawn { job } => self.line(Tag::JobWithdrawn, now, job.0, 0),
            Event::JobReturned { spec, kept } => {
                self.line(Tag::JobReturned, now, spec.id.0, kept.incarnation.0.into());
            }
            Event::NodeClosed { node } => self.line(Tag::NodeClosed, now, node.0, 0),
            Event::NodeOpened { node } => self.line(Tag::NodeOpened, now, node.0, 0),
        }
    }

    /// Adds a command.
    pub fn command(&mut self, now: Time, command: &Command) {
        match command {
            Command::Admit { job } => self.line(Tag::Admit, now, job.0, 0),
            Command::Decline { job, reason } => {
                self.line(Tag::Decline, now, job.0, reason.len() as u64);
                self.hasher.update(reason.as_bytes());
            }
            Command::Stop { job, incarnation, cause } => {
                let cause = match cause {
                    StopCause::Preempted => 0,
                    StopCause::NodeLost => 1,
                    StopCause::Cancelled => 2,
                    StopCause::Withdrawn => 3,
                };
                self.line(Tag::Stop, now, job.0, u64::from(incarnation.0) << 2 | cause);
            }
            Command::Resize { job, incarnation, allocation } => {
                self.line(Tag::Resize, now, job.0, incarnation.0.into());
                self.allocation(allocation);
            }
            Command::Start { job, incarnation, allocation } => {
                self.line(Tag::Start, now, job.0, incarnation.0.into());
                self.allocation(allocation);
            }
        }
    }

    /// The digest so far, as 32 hexadecimal digits.
    pub fn hex(&self) -> String {
        format!("{:032x}", self.hasher.digest128())
    }

    fn line(&mut self, tag: Tag, now: Time, subject: u32, detail: u64) {
        let mut bytes = [0; 21];
        bytes[0] = tag as u8;
        bytes[1..9].copy_from_slice(&now.0.to_le_bytes());
        bytes[9..13].copy_from_slice(&subject.to_le_bytes());
        bytes[13..].copy_from_slice(&detail.to_le_bytes());
        self.hasher.update(&bytes);
    }

    fn allocation(&mut self, allocation: &Allocation) {
        for slice in &allocation.slices {
            let mut bytes = [0; 38];
            bytes[..4].copy_from_slice(&slice.node.0.to_le_bytes());
            bytes[4..12].copy_from_slice(&slice.gpus.0.to_le_bytes());
            bytes[12..14].copy_from_slice(&slice.share.to_le_bytes());
            bytes[14..22].copy_from_slice(&slice.host.cpu_micro.to_le_bytes());
            bytes[22..30].copy_from_slice(&slice.host.mem_bytes.to_le_bytes());
            bytes[30..].copy_from_slice(&slice.host.storage_bps.to_le_bytes());
            self.hasher.update(&bytes);
        }
    }
}

impl std::fmt::Debug for Digest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.hex())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::sync::Arc;

    use super::*;
    use crate::cluster::NodeGroup;
    use crate::event::KeptJob;
    use crate::ids::{DatasetId, Incarnation, JobId, NodeId};
    use crate::job::{Deadline, GpuRequest, JobSpec};
    use crate::profile::Profile;
    use crate::resources::Host;
    use crate::workload::RecordedEnd;

    fn spec() -> Arc<JobSpec> {
        Arc::new(JobSpec {
            id: JobId(0),
            name: "job".into(),
            tenant: crate::ids::TenantId(0),
            priority: 0,
            profile: Arc::new(Profile::plain("plain", 0.0)),
            batch: 0,
            gpus: GpuRequest::fixed(0),
            gpu_type: None,
            estimated_work: 0.0,
            arrival: Time::ZERO,
            deadline: Deadline::None,
            dataset: None,
            costs: None,
        })
    }

    /// One event and one command of every kind, all with zeros inside: only the kind can tell them apart.
    fn one_of_each() -> (Vec<Event>, Vec<Command>) {
        let (job, node, gpu, dataset) = (JobId(0), NodeId(0), 0, DatasetId(0));
        let (incarnation, done) = (Incarnation(0), 0.0);
        let group = NodeGroup {
            count: 1,
            racks: 1,
            gpu_type: "V100".into(),
            n_gpus: 0,
            gpu_mem_bytes: 0,
            host: Host::NONE,
            cache_bytes: 0,
            fetch_bps: 0,
        };
        let allocation = Allocation::default();
        let events = vec![
            Event::JobSubmitted(spec()),
            Event::JobProgressed { job, incarnation, done },
            Event::JobCorrected(spec()),
            Event::JobStopped { job, incarnation, done },
            Event::JobFinished { job, incarnation },
            Event::JobFailed { job, incarnation, end: RecordedEnd::Unknown },
            Event::JobRequeued { job, incarnation, done },
            Event::JobCancelled { job },
            Event::NodeJoined { name: "".into(), rack: 0, group: Arc::new(group) },
            Event::NodeLost { node },
            Event::NodeReturned { node },
            Event::GpuLost { node, gpu },
            Event::GpuReturned { node, gpu },
            Event::DataCached { node, dataset },
            Event::DataEvicted { node, dataset },
            Event::JobWithdrawn { job },
            Event::JobReturned { spec: spec(), kept: KeptJob::default() },
            Event::NodeClosed { node },
            Event::NodeOpened { node },
        ];
        let commands = vec![
            Command::Admit { job },
            Command::Decline { job, reason: "".into() },
            Command::Stop { job, incarnation, cause: StopCause::Preempted },
            Command::Resize { job, incarnation, allocation: allocation.clone() },
            Command::Start { job, incarnation, allocation },
        ];
        (events, commands)
    }

    #[test]
    fn no_two_kinds_of_events_or_commands_share_a_tag() {
        let (events, commands) = one_of_each();
        let mut kind_of: BTreeMap<String, String> = BTreeMap::new();
        let mut seen = |digest: Digest, kind: String| {
            let other = kind_of.insert(digest.hex(), kind.clone());
            assert_eq!(other, None, "{kind} has the same line as another kind");
        };
        for event in &events {
            let mut digest = Digest::default();
            digest.event(Time::ZERO, event);
            seen(digest, format!("{event:?}"));
        }
        for command in &commands {
            let mut digest = Digest::default();
            digest.command(Time::ZERO, command);
            seen(digest, format!("{command:?}"));
        }
    }
}
