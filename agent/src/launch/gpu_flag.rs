//! How a container client gives GPUs to a container. Docker has `--gpus`; podman has it from version 5 on, so the one of Debian 12 does not.
//! The client is asked, not assumed: without `--gpus`, devices are named by CDI where the node has a description of them, else as files.

use std::path::Path;
use std::process::{Command, Stdio};

use crate::options::LaunchOptions;

/// The client is asked.
const AUTO: &str = "auto";
/// What clients with the option understand.
const BY_GPUS: &str = "--gpus=\"device={gpus}\"";
/// What clients understand that know the Container Device Interface.
const BY_CDI: &str = "--device=nvidia.com/gpu={gpu}";
/// Folders with descriptions of devices for CDI.
const CDI_FOLDERS: [&str; 2] = ["/etc/cdi", "/var/run/cdi"];
/// Files that every program on an NVIDIA GPU opens, besides that of the GPU itself.
const SHARED_FILES: [&str; 3] = ["/dev/nvidiactl", "/dev/nvidia-uvm", "/dev/nvidia-uvm-tools"];

/// A way to give containers GPUs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GpuWay {
    /// Options of the client, separated by spaces; `{gpu}` and `{gpus}` stand for numbers.
    pub flag: String,
    /// The way in words, as in `GPUs are given …`.
    pub how: String,
    /// What an operator can do to get a better one; empty if nothing.
    pub advice: String,
}

/// The way that the options name, or one that this node's client has.
pub fn find(options: &LaunchOptions, is_emulated: bool) -> GpuWay {
    let way = |flag: &str, how: &str, advice: &str| {
        let (flag, how, advice) = (flag.to_owned(), how.to_owned(), advice.to_owned());
        GpuWay { flag, how, advice }
    };
    match options.container_gpu_flag.as_str() {
        AUTO => {}
        "" => return way("", "not at all, as the settings say", ""),
        flag => return way(flag, &format!("by {flag}, as the settings say"), ""),
    }
    if is_emulated {
        return way("", "not at all: they are emulated", "");
    }
    if has_gpus_option(&options.container_client) {
        return way(BY_GPUS, "by --gpus", "");
    }
    if CDI_FOLDERS.iter().any(|folder| describes_nvidia(Path::new(folder))) {
        return way(BY_CDI, "by CDI: the client has no --gpus", "");
    }
    let shared = SHARED_FILES.iter().filter(|path| Path::new(path).exists());
    let options: Vec<_> = shared.map(|path| format!("--device={path}")).collect();
    let flag = format!("{} --device=/dev/nvidia{{gpu}}", options.join(" "));
    let advice = "the driver's libraries must be in the image; better: `nvidia-ctk cdi generate --output=/etc/cdi/nvidia.yaml`";
    way(flag.trim(), "as device files: the client has no --gpus, and no CDI description was found", advice)
}

/// Whether a client lists the option `--gpus` in its help for `create`.
fn has_gpus_option(client: &str) -> bool {
    let mut words = client.split_whitespace();
    let Some(program) = words.next() else { return false };
    let help = Command::new(program).args(words).args(["create", "--help"]).stdin(Stdio::null()).output();
    help.is_ok_and(|help| {
        let text = String::from_utf8_lossy(&help.stdout).into_owned();
        text.lines().any(|line| line.split_whitespace().any(|word| word == "--gpus"))
    })
}

fn describes_nvidia(folder: &Path) -> bool {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    entries.map(|entry| entry.path()).any(|path| {
        let is_description = path.extension().is_some_and(|end| end == "yaml" || end == "json");
        is_description && std::fs::read_to_string(&path).is_ok_and(|text| text.contains("nvidia.com/gpu"))
    })
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;
    use crate::options::LimitOption;

    fn options(client: &str, flag: &str) -> LaunchOptions {
        LaunchOptions {
            limits: LimitOption::Never,
            container_client: client.to_owned(),
            container_gpu_flag: flag.to_owned(),
            container_option: Vec::new(),
            address: None,
        }
    }

    /// A client that prints this help.
    fn client(folder: &Path, help: &str) -> String {
        let path = folder.join("client");
        std::fs::write(&path, format!("#!/bin/sh\necho '{help}'\n")).expect("written");
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).expect("executable");
        path.display().to_string()
    }

    #[test]
    fn a_client_is_asked_whether_it_has_the_option() {
        let folder = tempfile::tempdir().expect("a folder");
        let with = client(folder.path(), "      --gpus gpu-request   GPU devices to add");
        assert_eq!(find(&options(&with, AUTO), false).flag, BY_GPUS);
        let without = client(folder.path(), "      --group-add strings   Add groups");
        let way = find(&options(&without, AUTO), false);
        assert!(!way.flag.contains("--gpus") && way.flag.contains("{gpu}"), "{way:?}");
    }

    #[test]
    fn what_the_settings_say_is_taken_and_emulated_gpus_are_not_given() {
        assert_eq!(find(&options("docker", "--device=x{gpu}"), false).flag, "--device=x{gpu}");
        assert_eq!(find(&options("docker", AUTO), true).flag, "");
    }
}
