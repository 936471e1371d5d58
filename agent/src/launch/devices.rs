//! GPU devices that a launch may not open: those of the GPUs it was not given.
//!
//! The environment tells a job which GPUs are its own; the kernel enforces it. Control groups of version 1 have a list of
//! devices, version 2 asks a small program for each device that is opened (`bpf`). Either way everything stays allowed except
//! what is hidden. Containers get their devices from their runtime.

use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::LaunchError;
use super::bpf;

/// All groups are below this one.
const PARENT: &str = "rota";

/// A character device by its numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Device {
    /// Which driver it belongs to.
    pub major: u32,
    /// Which of the driver's devices it is.
    pub minor: u32,
}

impl Device {
    /// The device at a path, if it is one.
    pub fn at(path: &Path) -> Option<Self> {
        let meta = fs::metadata(path).ok().filter(|meta| meta.file_type().is_char_device())?;
        Some(Device { major: rustix::fs::major(meta.rdev()), minor: rustix::fs::minor(meta.rdev()) })
    }
}

impl std::fmt::Display for Device {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}:{}", self.major, self.minor)
    }
}

/// The devices of all NVIDIA GPUs in a folder, `/dev`, but those with these numbers. Devices that all jobs need, such as
/// `nvidiactl`, are not among them.
pub fn gpus_except(folder: &Path, given: &[u32]) -> Vec<Device> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let other = |entry: fs::DirEntry| {
        let number: u32 = entry.file_name().to_str()?.strip_prefix("nvidia")?.parse().ok()?;
        Device::at(&entry.path()).filter(|_| !given.contains(&number))
    };
    let mut found: Vec<Device> = entries.filter_map(other).collect();
    found.sort_unstable();
    found
}

/// Where this machine keeps the list of devices of a control group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Hierarchy {
    /// Version 1: a hierarchy of its own, mounted here.
    Version1(PathBuf),
    /// Version 2, mounted here.
    Version2(PathBuf),
}

impl Hierarchy {
    /// Looks at what is mounted.
    pub fn find() -> Option<Self> {
        Hierarchy::of_mounts(&fs::read_to_string("/proc/self/mountinfo").ok()?)
    }

    fn of_mounts(text: &str) -> Option<Self> {
        let mounts = text.lines().filter_map(|line| {
            let (before, after) = line.split_once(" - ")?;
            let (kind, rest) = after.split_once(' ')?;
            Some((before.split(' ').nth(4)?, kind, rest.rsplit(' ').next()?))
        });
        let mounts: Vec<_> = mounts.collect();
        let version1 = |(_, kind, options): &&(&str, &str, &str)| {
            *kind == "cgroup" && options.split(',').any(|option| option == "devices")
        };
        let first = mounts.iter().find(version1).map(|mount| Hierarchy::Version1(mount.0.into()));
        let second = mounts.iter().find(|mount| mount.1 == "cgroup2");
        first.or_else(|| second.map(|mount| Hierarchy::Version2(mount.0.into())))
    }
}

/// A control group in which some devices cannot be opened.
pub struct DeviceGroup {
    folder: PathBuf,
    /// Whether the folder is this group's own, and not that of the limits.
    is_own: bool,
}

impl DeviceGroup {
    /// Hides devices from a launch. On a machine of version 2 its limits and its devices are one group: `limits`, if there is
    /// one. On failure nothing is left.
    pub fn new(name: &str, hidden: &[Device], limits: Option<&Path>) -> Result<Self, LaunchError> {
        let refused = |why: String| LaunchError::Cgroup { name: name.to_owned(), why };
        let hierarchy = Hierarchy::find()
            .ok_or_else(|| refused("this machine has no control groups for devices".to_owned()))?;
        DeviceGroup::within(&hierarchy, name, hidden, limits)
            .map_err(|error| refused(format!("devices cannot be hidden: {error}")))
    }

    /// The same in a hierarchy of one's choice.
    pub fn within(
        hierarchy: &Hierarchy,
        name: &str,
        hidden: &[Device],
        limits: Option<&Path>,
    ) -> io::Result<Self> {
        let (root, limits) = match hierarchy {
            Hierarchy::Version1(root) => (root, None),
            Hierarchy::Version2(root) => (root, limits.filter(|folder| folder.starts_with(root))),
        };
        let folder = limits.map_or_else(|| root.join(PARENT).join(name), Path::to_owned);
        if limits.is_none() {
            fs::create_dir_all(&folder)?;
        }
        let group = DeviceGroup { folder, is_own: limits.is_none() };
        let set = match hierarchy {
            Hierarchy::Version1(_) => hidden.iter().try_for_each(|device| {
                fs::write(group.folder.join("devices.deny"), format!("c {device} rwm"))
            }),
            Hierarchy::Version2(_) => bpf::hide(&group.folder, hidden),
        };
        match set {
            Ok(()) => Ok(group),
            Err(error) => {
                group.remove();
                Err(error)
            }
        }
    }

    /// The file by which a process joins: it writes a 0. None if it joins by that of the limits.
    pub fn gate(&self) -> Result<Option<OwnedFd>, LaunchError> {
        if !self.is_own {
            return Ok(None);
        }
        let path = self.folder.join("cgroup.procs");
        let file = fs::OpenOptions::new().write(true).open(&path);
        file.map(|file| Some(OwnedFd::from(file))).map_err(|source| LaunchError::File { path, source })
    }

    /// Removes the group; nothing may be in it any more.
    pub fn remove(self) {
        if self.is_own {
            // A group that cannot be removed holds no process of ours, and is gone after a reboot.
            let _ = fs::remove_dir(&self.folder);
        }
    }
}

/// Whether devices can be hidden on this machine: by which version of control groups, or why not.
pub fn support() -> Result<&'static str, LaunchError> {
    // No driver has this number: nothing is hidden by it.
    let nothing = [Device { major: 0, minor: 0 }];
    DeviceGroup::new(&format!("device-trial-{}", std::process::id()), &nothing, None)?.remove();
    Ok(match Hierarchy::find() {
        Some(Hierarchy::Version1(_)) => "version 1",
        _ => "version 2",
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hierarchy_of_devices_is_found_among_what_is_mounted() {
        let v1 = "30 25 0:26 / /sys/fs/cgroup/cpu rw,relatime - cgroup cgroup rw,cpu\n\
                  31 25 0:27 / /sys/fs/cgroup/devices rw,relatime shared:9 - cgroup cgroup rw,devices\n";
        let v2 = "32 25 0:28 / /sys/fs/cgroup/unified rw,relatime shared:1 - cgroup2 cgroup2 rw,nsdelegate\n";
        let devices = Some(Hierarchy::Version1("/sys/fs/cgroup/devices".into()));
        assert_eq!(Hierarchy::of_mounts(&format!("{v2}{v1}")), devices);
        assert_eq!(Hierarchy::of_mounts(v2), Some(Hierarchy::Version2("/sys/fs/cgroup/unified".into())));
        assert_eq!(Hierarchy::of_mounts("25 1 0:24 / /sys rw - sysfs sysfs rw\n"), None);
    }

    #[test]
    fn devices_of_other_gpus_are_found_by_name_and_control_devices_are_left_alone() {
        let folder = tempfile::tempdir().expect("a folder");
        for (name, device) in [
            ("nvidia0", "/dev/null"),
            ("nvidia1", "/dev/zero"),
            ("nvidiactl", "/dev/full"),
            ("nvidia-uvm", "/dev/full"),
        ] {
            std::os::unix::fs::symlink(device, folder.path().join(name)).expect("linked");
        }
        fs::write(folder.path().join("nvidia2"), "a file").expect("written");
        assert_eq!(gpus_except(folder.path(), &[0]), [Device { major: 1, minor: 5 }]);
        assert_eq!(gpus_except(folder.path(), &[]).len(), 2);
        assert_eq!(gpus_except(Path::new("/no/such/folder"), &[]), []);
    }
}
