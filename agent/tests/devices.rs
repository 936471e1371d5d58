//! Devices hidden from a launch by control groups, tried with devices that every machine has: what `/dev/nvidia1` is to a job
//! that was given GPU 0, `/dev/urandom` is here.
//!
//! Needs control groups for devices that this user may change; tests are skipped where the kernel refuses.

mod common;

use std::os::fd::AsFd as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use common::{Launched, spec};
use rota_agent::launch::devices::{self, Device, DeviceGroup, Hierarchy};
use rota_agent::launch::spec::Limits;
use rota_agent::shim::record::ExitHow;
use rota_test_support::need::{self, Lack, Thing};

/// Opens three devices; only those that are not hidden answer.
const SCRIPT: &str = "for device in urandom zero null; do head -c 0 /dev/$device && echo $device; done; true";

fn random() -> Device {
    Device::at(Path::new("/dev/urandom")).expect("a device")
}

fn can_hide() -> bool {
    let support = devices::support();
    need::found(Thing::Cgroups, support.map_err(|why| Lack::Refused(format!("no devices: {why}")))).is_some()
}

#[test]
fn a_launch_opens_its_own_devices_and_not_the_hidden_ones() {
    if !can_hide() {
        return;
    }
    for limits in [Limits::Told, Limits::Enforced] {
        let mut launch = spec(SCRIPT);
        launch.grant.hidden = vec![random()];
        launch.grant.limits = limits;
        let mut launched = Launched::new(launch);
        let (exit, _) = launched.end();
        let log = launched.log();
        assert_eq!(exit.how, ExitHow::Code(0), "{log}");
        assert!(log.contains("zero\n") && log.contains("null\n") && !log.contains("urandom\n"), "{log}");
        assert!(log.contains("not permitted"), "{log}");
    }
    // Nothing is left of the groups.
    let Some(Hierarchy::Version1(root) | Hierarchy::Version2(root)) = Hierarchy::find() else { return };
    let left: Vec<_> = std::fs::read_dir(root.join("rota")).into_iter().flatten().flatten().collect();
    assert!(!left.iter().any(|entry| entry.file_name().to_string_lossy().starts_with("7.1-")), "{left:?}");
}

#[test]
fn version_2_asks_a_program_which_says_no_to_hidden_devices_alone() {
    let mounts = std::fs::read_to_string("/proc/self/mountinfo").expect("mounts");
    let root = mounts.lines().find_map(|line| {
        let (before, after) = line.split_once(" - ")?;
        after.starts_with("cgroup2 ").then(|| PathBuf::from(before.split(' ').nth(4).unwrap_or_default()))
    });
    let root = root.ok_or_else(|| Lack::Refused("no control groups of version 2 are mounted".to_owned()));
    let Some(root) = need::found(Thing::Cgroups, root) else { return };
    let name = format!("test-{}", std::process::id());
    let others = Device { major: random().major, minor: 250 };
    let group = DeviceGroup::within(&Hierarchy::Version2(root), &name, &[others, random()], None);
    let group = group.map_err(|why| Lack::Refused(format!("the kernel takes no device program: {why}")));
    let Some(group) = need::found(Thing::Cgroups, group) else { return };
    let gate = group.gate().expect("a gate").expect("its own");
    let mut command = Command::new("/bin/sh");
    command.args(["-c", SCRIPT]);
    let join = move || {
        rustix::io::write(gate.as_fd(), b"0")?;
        Ok(())
    };
    #[expect(unsafe_code, reason = "nothing else runs code between fork and exec")]
    // SAFETY: one system call on memory that was there before the fork.
    unsafe {
        command.pre_exec(join)
    };
    let output = command.output().expect("it runs");
    let (out, errors) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert_eq!(out, "zero\nnull\n", "{errors}");
    assert!(errors.contains("not permitted"), "{errors}");
    group.remove();
}
