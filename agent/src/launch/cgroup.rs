//! Control groups around a launch: its CPUs, its share of CPU time, its memory. Version 1 and 2 alike.
//!
//! Containers have none from here: their runtime makes its own.

use std::fs;
use std::os::fd::OwnedFd;
use std::path::PathBuf;

use cgroups_rs::cpu::CpuController;
use cgroups_rs::cpuset::CpuSetController;
use cgroups_rs::memory::MemController;
use cgroups_rs::{Cgroup as Inner, hierarchies};

use super::LaunchError;
use super::spec::Grant;

/// All groups are below this one.
const PARENT: &str = "rota";
const CONTROLLERS: [&str; 3] = ["cpu", "cpuset", "memory"];
/// CPU time is limited in periods of this many microseconds.
const PERIOD_US: u64 = 100_000;
/// The least CPU time the kernel accepts in a period.
const LEAST_QUOTA_US: i64 = 1_000;

/// A control group with limits.
pub struct Cgroup {
    inner: Inner,
    name: String,
}

impl Cgroup {
    /// Makes a group with the limits of a grant. On failure nothing is left.
    pub fn new(name: &str, grant: &Grant) -> Result<Self, LaunchError> {
        let path = format!("{PARENT}/{name}");
        let controllers = CONTROLLERS.map(str::to_owned).to_vec();
        let made = Inner::new_with_specified_controllers(hierarchies::auto(), &path, Some(controllers));
        let inner =
            made.map_err(|error| LaunchError::Cgroup { name: name.to_owned(), why: chain(&error) })?;
        let group = Cgroup { inner, name: name.to_owned() };
        match group.set_cpus(grant).and_then(|()| group.resize(grant.cpu_micro, grant.mem_bytes)) {
            Ok(()) => Ok(group),
            Err(error) => {
                group.remove();
                Err(error)
            }
        }
    }

    fn set_cpus(&self, grant: &Grant) -> Result<(), LaunchError> {
        if grant.pinned.is_empty() {
            return Ok(());
        }
        let cpuset = self.inner.controller_of::<CpuSetController>().ok_or_else(|| self.missing("cpuset"))?;
        cpuset.set_cpus(&grant.pinned.to_string()).map_err(|error| self.refused(&error))
    }

    /// Sets CPU time and memory; 0 leaves them unlimited.
    pub fn resize(&self, cpu_micro: u64, mem_bytes: u64) -> Result<(), LaunchError> {
        let cpu = self.inner.controller_of::<CpuController>().ok_or_else(|| self.missing("cpu"))?;
        let quota = i64::try_from(cpu_micro.saturating_mul(PERIOD_US) / 1_000_000).unwrap_or(i64::MAX);
        let quota = if cpu_micro == 0 { -1 } else { quota.max(LEAST_QUOTA_US) };
        cpu.set_cfs_quota_and_period(Some(quota), Some(PERIOD_US)).map_err(|error| self.refused(&error))?;
        let memory = self.inner.controller_of::<MemController>().ok_or_else(|| self.missing("memory"))?;
        let most = if mem_bytes == 0 { -1 } else { i64::try_from(mem_bytes).unwrap_or(i64::MAX) };
        memory.set_limit(most).map_err(|error| self.refused(&error))
    }

    /// The files by which a process joins: it writes a 0 to each.
    pub fn gates(&self) -> Result<Vec<OwnedFd>, LaunchError> {
        let open = |folder: PathBuf| {
            let path = folder.join("cgroup.procs");
            let file = fs::OpenOptions::new().write(true).open(&path);
            file.map(OwnedFd::from).map_err(|source| LaunchError::File { path, source })
        };
        self.folders().into_iter().map(open).collect()
    }

    /// Whether the kernel killed something in here for lack of memory.
    pub fn was_over_memory(&self) -> bool {
        let counts = |text: &str| {
            text.lines().any(|line| {
                line.strip_prefix("oom_kill ").is_some_and(|n| n.trim().parse::<u64>().is_ok_and(|n| n > 0))
            })
        };
        let texts = self.folders().into_iter().flat_map(|folder| {
            ["memory.oom_control", "memory.events"].map(|file| fs::read_to_string(folder.join(file)))
        });
        texts.flatten().any(|text| counts(&text))
    }

    /// Removes the group; nothing may be in it any more.
    pub fn remove(self) {
        // A group that cannot be removed holds no process of ours, costs a few kilobytes and is gone after a reboot.
        let _ = self.inner.delete();
    }

    /// The folder of the group, if all of its limits are in one.
    pub fn folder(&self) -> Option<PathBuf> {
        self.folders().into_iter().next().filter(|_| self.inner.v2())
    }

    fn folders(&self) -> Vec<PathBuf> {
        let controllers = self.inner.subsystems().iter().map(|subsystem| subsystem.to_controller());
        let mut folders: Vec<_> = controllers
            .filter(|controller| CONTROLLERS.contains(&controller.control_type().to_string().as_str()))
            .map(|controller| controller.path().to_owned())
            .collect();
        folders.sort_unstable();
        folders.dedup();
        folders
    }

    fn missing(&self, controller: &str) -> LaunchError {
        let why = format!("this machine has no controller `{controller}`");
        LaunchError::Cgroup { name: self.name.clone(), why }
    }

    fn refused(&self, error: &cgroups_rs::error::Error) -> LaunchError {
        LaunchError::Cgroup { name: self.name.clone(), why: chain(error) }
    }
}

/// What this machine can limit: the version of control groups, or why there are none.
pub fn support() -> Result<&'static str, LaunchError> {
    let nothing = Grant {
        gpus: Default::default(),
        gpu_share_milli: 1000,
        gpu_type: String::new(),
        gpu_mem_bytes: 0,
        cpu_micro: 1_000_000,
        pinned: Default::default(),
        mem_bytes: 1 << 30,
        storage_bps: 0,
        limits: super::spec::Limits::Enforced,
        hidden: Vec::new(),
    };
    let trial = Cgroup::new(&format!("trial-{}", std::process::id()), &nothing)?;
    let version = if trial.inner.v2() { "version 2" } else { "version 1" };
    trial.remove();
    Ok(version)
}

fn chain(error: &dyn std::error::Error) -> String {
    let causes = std::iter::successors(error.source(), |cause| cause.source());
    causes.fold(error.to_string(), |text, cause| format!("{text}: {cause}"))
}
