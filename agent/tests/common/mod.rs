//! A launch under a real shim, for tests: written to a directory, started, spoken to, waited for.

#![expect(dead_code, reason = "every test file uses some of it")]

use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rota_agent::launch::account::RunAs;
use rota_agent::launch::spec::*;
use rota_agent::launch::{environment, survivors};
use rota_agent::shim::control::ToShim;
use rota_agent::shim::record::{AttemptDir, Exit, ShimPhase, State};
use rota_transport::measure::{MeasureResources, MeasureSpec};

/// The agent's binary.
pub(crate) const AGENT: &str = env!("CARGO_BIN_EXE_rota-agent");

/// Longer than anything takes on a busy machine.
pub(crate) const LIMIT: Duration = Duration::from_secs(60);

/// Waits until something holds, and fails by name when it never does.
pub(crate) fn eventually<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let until = Instant::now() + LIMIT;
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(Instant::now() < until, "timed out waiting for: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// One launch and the folder of the agent it belongs to.
pub(crate) struct Launched {
    pub(crate) run_dir: tempfile::TempDir,
    pub(crate) dir: AttemptDir,
    pub(crate) shim: Child,
}

/// A launch of one rank that runs a shell script with one GPU.
pub(crate) fn spec(script: &str) -> LaunchSpec {
    LaunchSpec {
        attempt: Attempt { job: 7, incarnation: 1 },
        launch_id: 1,
        epoch: 1,
        command: ["/bin/sh", "-c", script].map(str::to_owned).to_vec(),
        environment: Default::default(),
        directory: PathBuf::from("/tmp"),
        gang: Gang { node: 0, n_nodes: 1, first_rank: 0, n_ranks: 1, world_size: 1 },
        grant: Grant {
            gpus: [0].into_iter().collect(),
            gpu_share_milli: 1000,
            gpu_type: "V100".to_owned(),
            gpu_mem_bytes: 0,
            cpu_micro: 1_000_000,
            pinned: Default::default(),
            mem_bytes: 0,
            storage_bps: 0,
            limits: Limits::Told,
            hidden: Vec::new(),
        },
        work: Work { iterations: 100.0, done: 0.0, rate: 0.0, delay_s: 0.0, time_scale: 1.0 },
        checkpoint_dir: PathBuf::from("/tmp"),
        data_dir: PathBuf::from("/tmp"),
        launcher: LauncherKind::Process,
        on_head_lost: OnHeadLost::Stop,
        lease_until_ms: None,
        grace_ms: 2_000,
        waits_for_go: false,
        keeps_progress: false,
        run_as: RunAs::Agent,
        makes_directory: false,
        makes_checkpoint_dir: false,
        log: LogCaps::default(),
        origin: None,
    }
}

impl Launched {
    /// Starts a shim for a launch.
    pub(crate) fn new(spec: LaunchSpec) -> Self {
        Launched::under(&[AGENT], spec)
    }

    /// The same, by a command that ends with the agent's program.
    pub(crate) fn under(program: &[&str], mut spec: LaunchSpec) -> Self {
        let run_dir = tempfile::tempdir().expect("a folder");
        let path = run_dir.path().join("attempts").join(spec.attempt.to_string());
        std::fs::create_dir_all(&path).expect("made");
        if spec.directory == Path::new("/tmp") {
            spec.directory = run_dir.path().to_owned();
        }
        if spec.checkpoint_dir == Path::new("/tmp") {
            spec.checkpoint_dir = run_dir.path().join("checkpoints");
        }
        if spec.run_as != RunAs::Agent {
            // As the agent prepares its run directory for jobs that have accounts of their own.
            rota_transport::private::passage(run_dir.path()).expect("a passage");
            rota_transport::private::folder(&run_dir.path().join("attempts")).expect("private");
            rota_transport::private::passage(&run_dir.path().join("sockets")).expect("a passage");
        }
        let dir = AttemptDir::new(path);
        dir.set_launch(&spec).expect("written");
        let shim = start_shim(program, &dir, &[]);
        Launched { run_dir, dir, shim }
    }

    /// Starts another shim that takes over.
    pub(crate) fn adopt(&mut self) {
        self.shim = start_shim(&[AGENT], &self.dir, &["--adopt"]);
    }

    /// A connection to the shim, as the agent has it.
    pub(crate) fn control(&self) -> Control {
        let path = self.dir.control_socket();
        let stream = eventually("a control socket", || UnixStream::connect(&path).ok());
        stream.set_read_timeout(Some(LIMIT)).expect("set");
        Control { reader: BufReader::new(stream.try_clone().expect("cloned")), stream }
    }

    /// The state as written down.
    pub(crate) fn state(&self) -> Option<State> {
        self.dir.state().expect("readable")
    }

    /// Waits until the launch has entered a phase.
    pub(crate) fn until(&self, phase: &ShimPhase) -> State {
        eventually(&format!("{phase:?}"), || self.state().filter(|state| state.phase == *phase))
    }

    /// Waits for the end.
    pub(crate) fn end(&mut self) -> (Exit, State) {
        let ended = eventually("the end of the launch", || match self.state() {
            Some(State { phase: ShimPhase::Ended(exit), .. }) => Some((exit, self.state().expect("there"))),
            _ => None,
        });
        let status = self.shim.wait().expect("the shim ends");
        assert!(status.success(), "{status}: {}", self.shim_log());
        ended
    }

    /// What the job wrote.
    pub(crate) fn log(&self) -> String {
        rota_agent::shim::log::tail(&self.dir.log(), 1 << 20)
    }

    /// What the shim itself said.
    pub(crate) fn shim_log(&self) -> String {
        std::fs::read_to_string(self.dir.shim_log()).unwrap_or_default()
    }
}

impl Drop for Launched {
    fn drop(&mut self) {
        // A failed test leaves nothing running.
        let _ = self.shim.kill();
        let _ = self.shim.wait();
        let mark = self.dir.launch().map(|spec| environment::mark(spec.attempt, self.run_dir.path()));
        for pid in mark.map(|mark| survivors::marked(&mark)).unwrap_or_default() {
            let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
        }
    }
}

fn start_shim(program: &[&str], dir: &AttemptDir, options: &[&str]) -> Child {
    let log = std::fs::File::create(dir.shim_log()).expect("made");
    let mut command = Command::new(program[0]);
    command.args(&program[1..]).arg("shim").arg(dir.path()).args(options);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log);
    command.spawn().expect("the shim starts")
}

/// The agent's end of a control socket.
pub(crate) struct Control {
    reader: BufReader<UnixStream>,
    stream: UnixStream,
}

impl Control {
    /// Sends a message to the shim.
    pub(crate) fn send(&mut self, message: &ToShim) {
        let line = serde_json::to_string(message).expect("writes");
        writeln!(self.stream, "{line}").expect("sent");
    }

    /// The next state that the shim reports.
    pub(crate) fn hear(&mut self) -> State {
        let mut line = String::new();
        self.reader.read_line(&mut line).expect("heard in time");
        serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line}"))
    }

    /// Listens until a state is as wanted.
    pub(crate) fn hear_until(&mut self, mut is_wanted: impl FnMut(&State) -> bool) -> State {
        loop {
            let state = self.hear();
            if is_wanted(&state) {
                return state;
            }
        }
    }
}

/// A command to measure on one GPU that it is only told of, with limits that it does not reach.
pub(crate) fn measure_spec(folder: &tempfile::TempDir, command: &[&str]) -> MeasureSpec {
    MeasureSpec {
        number: 1,
        command: command.iter().map(|word| (*word).to_owned()).collect(),
        environment: [("ROTA_REPORT_EVERY_S".to_owned(), "0.02".to_owned())].into(),
        directory: folder.path().to_owned(),
        run_dir: folder.path().to_owned(),
        gpus: 1,
        gpu_type: String::new(),
        cpu_micro: 1_000_000,
        mem_bytes: 0,
        storage_bps: 0,
        iterations: 1e9,
        done: 0.0,
        data_dir: folder.path().to_owned(),
        checkpoint_dir: folder.path().join("checkpoints"),
        container: None,
        resources: MeasureResources::Told,
        time_limit_s: 60.0,
        silence_limit_s: 60.0,
        grace_s: 5.0,
    }
}
