//! Real containers, through podman: end, output, environment, stop, adoption, limits.
//!
//! Needs podman, runc and a static busybox to make an image from; tests are skipped where they are missing.

mod common;

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

use clap::Parser as _;
use common::{AGENT, Launched, eventually, measure_spec, spec};
use rota_agent::launch::account::RunAs;
use rota_agent::launch::gpu_flag;
use rota_agent::launch::spec::{ContainerSpec, LaunchSpec, LauncherKind, Limits, Mount, Pull};
use rota_agent::options::LaunchOptions;
use rota_agent::shim::control::ToShim;
use rota_agent::shim::record::{ExitCause, ExitHow, ShimPhase};
use rota_test_support::accounts::Accounts;
use rota_test_support::need::{self, Lack, Thing};
use rota_transport::measure::{MeasureContainer, MeasureResources, MeasureSpec};

const CLIENT: [&str; 4] = ["podman", "--runtime=runc", "--cgroup-manager=cgroupfs", "--log-level=error"];
const IMAGE: &str = "localhost/rota-test-busybox";

/// What podman printed, or why it failed.
fn podman(words: &[&str]) -> Result<String, String> {
    let (program, options) = CLIENT.split_first().expect("a program");
    let output = Command::new(program).args(options).args(words).stdin(Stdio::null()).output();
    let output = output.map_err(|error| error.to_string())?;
    let last_line = || String::from_utf8_lossy(&output.stderr).trim().lines().last().unwrap_or("").to_owned();
    if !output.status.success() {
        return Err(last_line());
    }
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

/// Makes the image and runs it once: whether containers run on this machine is found out by trying.
fn has_podman() -> bool {
    static MADE: OnceLock<Result<(), Lack>> = OnceLock::new();
    need::found(Thing::Podman, MADE.get_or_init(make_image).clone()).is_some()
}

fn make_image() -> Result<(), Lack> {
    for program in [CLIENT[0], "runc"] {
        let starts = Command::new(program).arg("--version").stdout(Stdio::null()).status();
        starts.map_err(|_| Lack::Missing(format!("{program} is not installed")))?;
    }
    let busybox = ["/bin/busybox", "/usr/bin/busybox"].into_iter().find(|path| Path::new(path).exists());
    let busybox = busybox.ok_or_else(|| Lack::Missing("a static busybox is not installed".to_owned()))?;
    let folder = tempfile::tempdir().expect("a folder");
    let root = folder.path().join("root");
    for name in ["bin", "tmp", "etc", "dev", "proc", "sys"] {
        std::fs::create_dir_all(root.join(name)).expect("a folder");
    }
    std::fs::copy(busybox, root.join("bin/busybox")).expect("a copy");
    for name in ["sh", "sleep", "echo", "env", "cat", "trap", "nproc", "printenv"] {
        std::os::unix::fs::symlink("busybox", root.join("bin").join(name)).expect("a link");
    }
    let archive = folder.path().join("root.tar");
    let made = Command::new("tar").arg("-C").arg(&root).arg("-cf").arg(&archive).arg(".").status();
    assert!(made.expect("tar starts").success());
    let refused = |why: String| Lack::Refused(format!("podman cannot run containers here: {why}"));
    podman(&["import", archive.to_str().expect("text"), IMAGE]).map_err(refused)?;
    podman(&[
        "run",
        "--rm",
        "--network=host",
        "--ulimit=nofile=1024:1024",
        "--ulimit=nproc=1024:1024",
        IMAGE,
        "/bin/echo",
        "x",
    ])
    .map(drop)
    .map_err(refused)
}

fn in_container(script: &str) -> LaunchSpec {
    let mut launch = spec(script);
    // Containers of parallel tests and earlier runs must not share a name.
    launch.attempt.job = std::process::id();
    launch.launcher = LauncherKind::Container(ContainerSpec {
        client: CLIENT.map(str::to_owned).to_vec(),
        image: IMAGE.to_owned(),
        pull: Pull::Never,
        mounts: Vec::new(),
        network: "host".to_owned(),
        gpu_flag: String::new(),
        options: vec!["--ulimit=nofile=1024:1024".to_owned(), "--ulimit=nproc=1024:1024".to_owned()],
    });
    launch
}

/// Names of the containers a launch has left.
fn left(launched: &Launched) -> String {
    left_by(launched.run_dir.path())
}

/// Names of the containers that launches of an agent have left.
fn left_by(run_dir: &Path) -> String {
    let mark = run_dir
        .as_os_str()
        .as_encoded_bytes()
        .iter()
        .fold(0x811c_9dc5_u32, |hash, byte| (hash ^ u32::from(*byte)).wrapping_mul(0x0100_0193));
    podman(&["ps", "--all", "--format={{.Names}}", &format!("--filter=name={mark:08x}")]).unwrap_or_default()
}

#[test]
fn a_container_has_its_environment_and_leaves_code_and_output() {
    if !has_podman() {
        return;
    }
    let mut launch = in_container("echo rank $RANK gpus $CUDA_VISIBLE_DEVICES secret $SECRET; exit 7");
    launch.environment.insert("SECRET".to_owned(), "several words\nand lines".to_owned());
    let mut launched = Launched::new(launch);
    let (exit, _) = launched.end();
    assert_eq!((exit.how, exit.cause), (ExitHow::Code(7), ExitCause::Itself), "{}", launched.log());
    assert_eq!(launched.log(), "rank 0 gpus 0 secret several words and lines\n");
    assert_eq!(left(&launched), "", "no container is left");
}

#[test]
fn a_container_runs_as_its_account_and_mounts_only_what_the_account_can_reach() {
    if !has_podman() {
        return;
    }
    let Some(accounts) = Accounts::make(2) else { return };
    let (uid, gid) = accounts.ids(0);
    let as_account = |script: &str, mount: PathBuf| {
        let mut launch = in_container(script);
        launch.run_as = RunAs::Account { name: accounts.name(0).to_owned(), is_listed: false };
        launch.directory = accounts.home(0);
        launch.makes_checkpoint_dir = true;
        if let LauncherKind::Container(container) = &mut launch.launcher {
            container.mounts.push(Mount { host: mount, container: "/mounted".into(), is_read_only: false });
        }
        launch
    };
    let script =
        "busybox id -u; busybox id -g; cat /proc/self/status | busybox grep NoNewPrivs; echo x > made";
    let mut launched = Launched::new(as_account(script, accounts.home(0)));
    let (exit, _) = launched.end();
    let log = launched.log();
    assert_eq!(
        (exit.how, log.as_str()),
        (ExitHow::Code(0), format!("{uid}\n{gid}\nNoNewPrivs:\t1\n").as_str())
    );
    let made = std::fs::metadata(accounts.home(0).join("made")).expect("written on the host");
    assert_eq!(std::os::unix::fs::MetadataExt::uid(&made), uid);
    // A runtime of root's could mount what lies behind a closed door.
    let open = accounts.home(1).join("open");
    std::fs::create_dir(&open).expect("made");
    let mut launched = Launched::new(as_account("busybox ls /mounted", open));
    let (exit, _) = launched.end();
    let ExitHow::NotStarted(why) = exit.how else { panic!("{exit:?} {}", launched.log()) };
    assert!(why.as_str().contains("cannot be used as"), "{why}");
}

#[test]
fn a_container_is_stopped_by_its_runtime_and_not_by_its_client() {
    if !has_podman() {
        return;
    }
    let mut launched =
        Launched::new(in_container("trap 'echo bye; exit 3' TERM; echo up; while true; do sleep 0.1; done"));
    eventually("output", || (launched.log() == "up\n").then_some(()));
    launched.control().send(&ToShim::Stop { grace_ms: 60_000, keep_work: true });
    let (exit, _) = launched.end();
    assert_eq!((exit.how, exit.cause), (ExitHow::Code(3), ExitCause::Ordered), "{}", launched.log());
    assert_eq!(left(&launched), "");
}

#[test]
fn a_container_that_does_not_listen_is_killed() {
    if !has_podman() {
        return;
    }
    let mut launched = Launched::new(in_container("trap '' TERM; echo up; while true; do sleep 1; done"));
    eventually("output", || (launched.log() == "up\n").then_some(()));
    launched.control().send(&ToShim::Stop { grace_ms: 500, keep_work: false });
    let (exit, _) = launched.end();
    assert_eq!((exit.how, exit.cause), (ExitHow::Signal(9), ExitCause::Ordered));
    assert_eq!(left(&launched), "");
}

#[test]
fn a_container_outlives_its_shim_and_is_adopted() {
    if !has_podman() {
        return;
    }
    let script = "echo up; while [ ! -e go ]; do sleep 0.1; done; echo went; exit 5";
    let mut launched = Launched::new(in_container(script));
    eventually("output", || (launched.log() == "up\n").then_some(()));
    launched.shim.kill().expect("killed");
    launched.shim.wait().expect("ended");
    assert!(!left(&launched).is_empty(), "the container lives on");
    launched.adopt();
    eventually("its second shim", || {
        launched.state().filter(|state| state.phase == ShimPhase::Running && state.shim.is_alive())
    });
    std::fs::write(launched.run_dir.path().join("go"), "").expect("written");
    let (exit, _) = launched.end();
    assert_eq!((exit.how, exit.cause), (ExitHow::Code(5), ExitCause::Itself), "{}", launched.log());
    assert!(launched.log().starts_with("up\n"));
    assert_eq!(left(&launched), "");
}

#[test]
fn a_container_that_ended_without_a_shim_tells_the_next_one_how() {
    if !has_podman() {
        return;
    }
    let mut launched = Launched::new(in_container("echo up; while [ ! -e go ]; do sleep 0.1; done; exit 8"));
    eventually("output", || (launched.log() == "up\n").then_some(()));
    launched.shim.kill().expect("killed");
    launched.shim.wait().expect("ended");
    let name = left(&launched);
    std::fs::write(launched.run_dir.path().join("go"), "").expect("written");
    eventually("its end", || {
        podman(&["inspect", "--format={{.State.Running}}", &name]).ok().filter(|said| said == "false")
    });
    launched.adopt();
    assert_eq!(launched.end().0.how, ExitHow::Code(8));
    assert_eq!(left(&launched), "");
}

#[test]
fn limits_reach_the_container() {
    if !has_podman() {
        return;
    }
    let mut launch = in_container("while [ ! -e go ]; do sleep 0.1; done");
    launch.grant.limits = Limits::Enforced;
    launch.grant.mem_bytes = 100_000_000;
    launch.grant.cpu_micro = 500_000;
    launch.grant.pinned = "0".parse().expect("a CPU");
    let mut launched = Launched::new(launch);
    launched.until(&ShimPhase::Running);
    let format = "--format={{.HostConfig.Memory}} {{.HostConfig.NanoCpus}} {{.HostConfig.CpusetCpus}}";
    let said = eventually("limits", || podman(&["inspect", format, &left(&launched)]).ok());
    assert_eq!(said, "100000000 500000000 0");
    std::fs::write(launched.run_dir.path().join("go"), "").expect("written");
    launched.end();
}

#[test]
fn an_image_that_is_not_here_and_must_not_be_pulled_is_named() {
    if !has_podman() {
        return;
    }
    let mut launch = in_container("true");
    if let LauncherKind::Container(container) = &mut launch.launcher {
        container.image = "localhost/rota-no-such-image".to_owned();
    }
    let ExitHow::NotStarted(why) = Launched::new(launch).end().0.how else { panic!("it started") };
    assert!(
        why.as_str().contains("rota-no-such-image") && why.as_str().contains("not on this node"),
        "{why}"
    );
}

#[test]
fn a_measured_run_sees_its_mounts_and_limits_and_leaves_no_container() {
    if !has_podman() {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("data"), "of the host\n").expect("written");
    let script = "cat /mnt/here/data; while true; do sleep 0.1; done";
    let spec = MeasureSpec {
        number: std::process::id(),
        environment: Default::default(),
        gpus: 0,
        mem_bytes: 100_000_000,
        iterations: 10.0,
        container: Some(MeasureContainer {
            client: CLIENT.map(str::to_owned).to_vec(),
            image: IMAGE.to_owned(),
            mounts: vec![(folder.path().to_owned(), PathBuf::from("/mnt/here"))],
            gpu_flag: String::new(),
            options: vec!["--ulimit=nofile=1024:1024".to_owned(), "--ulimit=nproc=1024:1024".to_owned()],
        }),
        resources: MeasureResources::Held,
        // It writes a line once, and then nothing.
        silence_limit_s: 3.0,
        grace_s: 0.5,
        ..measure_spec(&folder, &["/bin/sh", "-c", script])
    };
    let mut command = Command::new(AGENT);
    let mut child =
        command.arg("measure").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("starts");
    let line = serde_json::to_string(&spec).expect("JSON") + "\n";
    let mut input = child.stdin.take().expect("a pipe");
    input.write_all(line.as_bytes()).expect("heard");
    let output = child.wait_with_output().expect("ended");
    drop(input);
    let told = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(told.contains("of the host"), "{told}");
    assert!(told.contains("silent"), "{told}");
    assert_eq!(left_by(folder.path()), "", "no container is left");
}

#[test]
fn a_client_without_the_option_gpus_is_found_out_and_given_devices_otherwise() {
    if !has_podman() {
        return;
    }
    let words = ["rota-agent", "--container-client", &CLIENT.join(" ")];
    let options = Wrapped::parse_from(words).launch;
    let way = gpu_flag::find(&options, false);
    // The old default, on the client itself: podman has the option from version 5 on.
    let named = format!("rota-gpus-{}", std::process::id());
    let mut create = Command::new(CLIENT[0]);
    create.args(&CLIENT[1..]).args(["create", "--gpus=device=0", "--name", &named, IMAGE, "true"]);
    let refusal = create.output().expect("podman starts");
    let _ = podman(&["rm", "--force", &named]);
    let is_unknown = String::from_utf8_lossy(&refusal.stderr).contains("unknown flag");
    assert_eq!(is_unknown, !way.flag.contains("--gpus"), "{way:?}");
    if !is_unknown || way.flag.contains("nvidia.com") {
        return;
    }
    // A device that every machine has stands for the GPU's.
    let mut launch = in_container("test -c /dev/null && exit 0");
    launch.grant.gpus = "0".parse().expect("a GPU");
    if let LauncherKind::Container(container) = &mut launch.launcher {
        container.gpu_flag = way.flag.replace("/dev/nvidia{gpu}", "/dev/null");
    }
    assert_eq!(Launched::new(launch).end().0.how, ExitHow::Code(0));
}

/// The options of an agent that are about starting jobs.
#[derive(clap::Parser)]
struct Wrapped {
    #[command(flatten)]
    launch: LaunchOptions,
}
