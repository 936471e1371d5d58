//! A digest over everything that happened and was ordered: two runs with one digest took the same decisions.

use xxhash_rust::xxh3::Xxh3;

use crate::allocation::Allocation;
use crate::event::{Command, Event, StopCause};
use crate::time::Time;

/// A running digest.
#[derive(Clone, Default)]
pub struct Digest {
    hasher: Xxh3,
}

impl Digest {
    /// Takes in an event.
    pub fn event(&mut self, now: Time, event: &Event) {
        match event {
            Event::JobSubmitted(spec) => self.line(1, now, spec.id.0, spec.estimated_work.to_bits()),
            Event::JobProgressed { job, done, .. } => self.line(2, now, job.0, done.to_bits()),
            Event::JobStopped { job, done, .. } => self.line(3, now, job.0, done.to_bits()),
            Event::JobCorrected(spec) => self.line(12, now, spec.id.0, spec.profile.base_rate.to_bits()),
            Event::JobFinished { job, incarnation } => self.line(4, now, job.0, incarnation.0.into()),
            Event::JobCancelled { job } => self.line(5, now, job.0, 0),
            Event::JobRequeued { job, done, .. } => self.line(10, now, job.0, done.to_bits()),
            Event::NodeJoined { name, group, .. } => {
                self.line(11, now, group.n_gpus, name.len() as u64);
                self.hasher.update(name.as_bytes());
            }
            Event::NodeLost { node } => self.line(6, now, node.0, 0),
            Event::NodeReturned { node } => self.line(7, now, node.0, 0),
            Event::GpuLost { node, gpu } => self.line(10, now, node.0, (*gpu).into()),
            Event::GpuReturned { node, gpu } => self.line(11, now, node.0, (*gpu).into()),
            Event::DataCached { node, dataset } => self.line(8, now, node.0, dataset.0.into()),
            Event::DataEvicted { node, dataset } => self.line(9, now, node.0, dataset.0.into()),
        }
    }

    /// Takes in a command.
    pub fn command(&mut self, now: Time, command: &Command) {
        match command {
            Command::Admit { job } => self.line(20, now, job.0, 0),
            Command::Decline { job, reason } => {
                self.line(21, now, job.0, reason.len() as u64);
                self.hasher.update(reason.as_bytes());
            }
            Command::Stop { job, incarnation, cause } => {
                let cause = match cause {
                    StopCause::Preempted => 0,
                    StopCause::NodeLost => 1,
                    StopCause::Cancelled => 2,
                };
                self.line(22, now, job.0, u64::from(incarnation.0) << 2 | cause);
            }
            Command::Resize { job, incarnation, allocation } => {
                self.line(23, now, job.0, incarnation.0.into());
                self.allocation(allocation);
            }
            Command::Start { job, incarnation, allocation } => {
                self.line(24, now, job.0, incarnation.0.into());
                self.allocation(allocation);
            }
        }
    }

    /// The digest so far, as 32 hexadecimal digits.
    pub fn hex(&self) -> String {
        format!("{:032x}", self.hasher.digest128())
    }

    fn line(&mut self, tag: u8, now: Time, subject: u32, detail: u64) {
        let mut bytes = [0; 21];
        bytes[0] = tag;
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
