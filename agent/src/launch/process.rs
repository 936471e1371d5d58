//! Ranks as children of the shim.

use std::ffi::{CStr, OsStr};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

use rota_transport::value::Text;
use rustix::fs::{Mode, OFlags};
use rustix::process::{Pid, PidfdFlags, Signal, WaitStatus};
use rustix::thread::CpuSet;

use super::account::{Account, Change};
use super::cgroup::Cgroup;
use super::devices::DeviceGroup;
use super::environment::{self, Places};
use super::spec::{LaunchSpec, Limits, Rendezvous};
use super::{LaunchError, Launcher, Rank, Workplace, make_folders, survivors};
use crate::shim::record::ExitHow;

/// As the program of a command, this name means the agent's own binary.
const OWN_NAME: &str = "rota-agent";

/// The launcher of plain processes.
pub struct Process {
    spec: LaunchSpec,
    place: Workplace,
    cgroup: Option<Cgroup>,
    devices: Option<DeviceGroup>,
    account: Option<Account>,
}

impl Process {
    /// Nothing is made or started yet.
    pub fn new(spec: LaunchSpec, place: Workplace) -> Self {
        Process { spec, place, cgroup: None, devices: None, account: None }
    }

    fn command(&self, local: u32, rendezvous: &Rendezvous) -> Result<Command, LaunchError> {
        let (program, arguments) = self.spec.command.split_first().ok_or(LaunchError::NoCommand)?;
        let mut command = match (program.as_str(), std::env::current_exe()) {
            (OWN_NAME, Ok(own)) => Command::new(own),
            _ => Command::new(program),
        };
        let job_socket = self.place.job_socket(&self.spec.run_as);
        let places = Places { run_dir: &self.place.run_dir, job_socket: &job_socket, rendezvous };
        command
            .args(arguments)
            .env_clear()
            .envs(environment::of_rank(&self.spec, local, &places, self.account.as_ref()))
            .stdin(Stdio::null())
            .process_group(0);
        if self.account.is_none() {
            command.current_dir(&self.spec.directory);
        }
        Ok(command)
    }
}

impl Launcher for Process {
    fn run_as(&mut self, account: Account) {
        self.account = Some(account);
    }

    fn prepare(&mut self) -> Result<(), LaunchError> {
        make_folders(&self.spec, self.account.as_ref())?;
        let name = format!("{}-{}", self.spec.attempt, std::process::id());
        if self.spec.grant.limits == Limits::Enforced {
            self.cgroup = Some(Cgroup::new(&name, &self.spec.grant)?);
        }
        if !self.spec.grant.hidden.is_empty() {
            let limits = self.cgroup.as_ref().and_then(Cgroup::folder);
            self.devices = Some(DeviceGroup::new(&name, &self.spec.grant.hidden, limits.as_deref())?);
        }
        Ok(())
    }

    fn start(&mut self, rendezvous: &Rendezvous, output: BorrowedFd<'_>) -> Result<Vec<Rank>, LaunchError> {
        let mut ranks = Vec::new();
        for local in 0..self.spec.gang.n_ranks {
            let mut command = self.command(local, rendezvous)?;
            let program = command.get_program().to_string_lossy().into_owned();
            let failed = |source: std::io::Error| LaunchError::Start { program: program.clone(), source };
            let copy = || output.try_clone_to_owned().map_err(failed);
            command.stdout(copy()?).stderr(copy()?);
            let mut gates = self.cgroup.as_ref().map_or(Ok(Vec::new()), Cgroup::gates)?;
            gates.extend(self.devices.as_ref().map_or(Ok(None), DeviceGroup::gate)?);
            let account = self.account.as_ref();
            let change = account.map(|account| account.change(&self.spec.directory)).transpose()?;
            bind_before_exec(&mut command, gates, cpu_set(self.spec.grant.pinned.as_slice()), change);
            let started = command.spawn().map_err(failed);
            match started.map(|child| Pid::from_child(&child)) {
                Ok(pid) => {
                    let ended = rustix::process::pidfd_open(pid, PidfdFlags::empty()).ok();
                    ranks.push(Rank { local, pid, ended });
                }
                Err(error) => {
                    self.kill(&ranks);
                    return Err(error);
                }
            }
        }
        Ok(ranks)
    }

    fn adopt(&mut self, _output: BorrowedFd<'_>) -> Result<Vec<Rank>, LaunchError> {
        Err(LaunchError::NothingToAdopt)
    }

    fn ask_to_stop(&mut self, ranks: &[Rank]) {
        for rank in ranks {
            // It is no error if the group is gone.
            let _ = rustix::process::kill_process_group(rank.pid, Signal::TERM);
        }
    }

    fn kill(&mut self, ranks: &[Rank]) {
        for rank in ranks {
            let _ = rustix::process::kill_process_group(rank.pid, Signal::KILL);
        }
        survivors::kill_children();
    }

    fn exit_of(&self, _rank: &Rank, status: WaitStatus) -> ExitHow {
        match (status.exit_status(), status.terminating_signal()) {
            (Some(code), _) => ExitHow::Code(code),
            (None, Some(signal)) => ExitHow::Signal(signal),
            (None, None) => ExitHow::Unknown(Text::cut("neither a code nor a signal")),
        }
    }

    fn was_over_limit(&self) -> bool {
        self.cgroup.as_ref().is_some_and(Cgroup::was_over_memory)
    }

    fn resize(&mut self, cpu_micro: u64, mem_bytes: u64) -> Result<(), LaunchError> {
        self.cgroup.as_ref().map_or(Ok(()), |cgroup| cgroup.resize(cpu_micro, mem_bytes))
    }

    fn clear(&mut self) {
        if let Some(devices) = self.devices.take() {
            devices.remove();
        }
        if let Some(cgroup) = self.cgroup.take() {
            cgroup.remove();
        }
    }
}

/// The CPUs to bind to; none when the grant names none.
fn cpu_set(cpus: &[u32]) -> Option<CpuSet> {
    if cpus.is_empty() {
        return None;
    }
    let mut set = CpuSet::new();
    for cpu in cpus.iter().map(|cpu| *cpu as usize).filter(|cpu| *cpu < CpuSet::MAX_CPU) {
        set.set(cpu);
    }
    Some(set)
}

/// What decides whom the kernel kills first when memory runs out; negative for those that it should spare.
const OOM_SCORE: &CStr = c"/proc/self/oom_score_adj";

/// Whether the kernel should spare this process when memory runs out, as the unit of the agent asks. Its jobs inherit that, and
/// must not keep it: they are what uses memory.
fn is_spared() -> bool {
    let score = std::fs::read_to_string(OsStr::from_bytes(OOM_SCORE.to_bytes())).unwrap_or_default();
    score.trim().parse::<i32>().is_ok_and(|score| score < 0)
}

/// Between fork and exec the child joins its control groups, binds to its CPUs, takes its turn when memory runs out, becomes
/// its account and ties its life to the shim's.
#[expect(
    unsafe_code,
    reason = "nothing else runs code between fork and exec; only system calls are made there"
)]
pub(super) fn bind_before_exec(
    command: &mut Command,
    gates: Vec<OwnedFd>,
    cpus: Option<CpuSet>,
    change: Option<Change>,
) {
    let is_spared = is_spared();
    let bind = move || {
        if is_spared {
            // Before it is another account, which may not write there. A system without such a file spares nobody.
            let score = rustix::fs::open(OOM_SCORE, OFlags::WRONLY | OFlags::CLOEXEC, Mode::empty());
            let _ = score.map(|score| rustix::io::write(score, b"0"));
        }
        for gate in &gates {
            // To a control group, 0 is the process that writes it.
            rustix::io::write(gate.as_fd(), b"0")?;
        }
        if let Some(cpus) = &cpus {
            rustix::thread::sched_setaffinity(None, cpus)?;
        }
        if let Some(change) = &change {
            change.carry_out()?;
        }
        // Last: the kernel forgets it when a process changes its user.
        Ok(rustix::process::set_parent_process_death_signal(Some(Signal::KILL))?)
    };
    // SAFETY: the closure only makes system calls on memory that was prepared before the fork: it neither allocates
    // nor takes locks.
    unsafe { command.pre_exec(bind) };
}
