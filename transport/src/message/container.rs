//! What a job's owner may ask for in a container. The client of the container runtime runs as the agent's user, often root: nothing
//! that an owner wrote may reach it as an option, as part of another field, or as another kind of thing. The head refuses it when a job
//! is submitted; the agent looks again, because it trusts no order.

use super::Container;

/// Something about a container that is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ContainerFault {
    /// Not the name of an image in a registry or on the node.
    #[error("`{0}` is not the name of an image, such as registry.site:5000/team/train:2.1")]
    Image(String),
    /// Not the name of a network.
    #[error("`{0}` is not the name of a network: letters, digits, `_`, `.` and `-`")]
    Network(String),
    /// A folder that is not named by its whole path, or with a character that separates the parts of a mount.
    #[error("the mount of `{0}`: a folder is named by its whole path, without `:`")]
    Mount(String),
    /// An option for GPUs.
    #[error("asks for GPUs by the option `{0}`: how containers get GPUs is a setting of each node's agent")]
    GpuFlag(String),
}

impl Container {
    /// Whether all of it can be handed to the client of a container runtime.
    pub fn check(&self) -> Result<(), ContainerFault> {
        let image = self.image.as_str();
        if !is_image(image) {
            return Err(ContainerFault::Image(image.to_owned()));
        }
        let network = self.network.as_str();
        if !network.is_empty() && !is_word(network) {
            return Err(ContainerFault::Network(network.to_owned()));
        }
        let mut folders = self.mounts.iter().flat_map(|mount| [&mount.source, &mount.target]);
        if let Some(folder) = folders.find(|folder| !is_mountable(folder.as_str())) {
            return Err(ContainerFault::Mount(folder.to_string()));
        }
        match self.gpu_flag.as_str() {
            "" => Ok(()),
            flag => Err(ContainerFault::GpuFlag(flag.to_owned())),
        }
    }
}

/// Whether a folder can be mounted: the parts of a mount are separated by colons, and other things than paths are volumes.
pub fn is_mountable(folder: &str) -> bool {
    folder.starts_with('/') && !folder.contains(':')
}

/// Letters, digits, `_`, `.` and `-`, beginning with a letter or a digit, so that it is no option.
fn is_word(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphanumeric())
        && text.chars().all(|c| c.is_ascii_alphanumeric() || "_.-".contains(c))
}

/// `[REGISTRY[:PORT]/]PATH/NAME[:TAG][@DIGEST]`. Runtimes read other things as images, too: options, archives and folders of the
/// node, to which the agent's user has access and the job's owner has not.
fn is_image(text: &str) -> bool {
    let text = text.strip_prefix("docker://").unwrap_or(text);
    let (name, digest) = text.split_once('@').map_or((text, None), |(name, digest)| (name, Some(digest)));
    let is_digest = |digest: &str| {
        digest.split_once(':').is_some_and(|(kind, hash)| {
            is_word(kind) && !hash.is_empty() && hash.chars().all(|c| c.is_ascii_hexdigit())
        })
    };
    let (path, last) = name.rsplit_once('/').map_or((None, name), |(path, last)| (Some(path), last));
    let (last, tag) = last.split_once(':').map_or((last, None), |(last, tag)| (last, Some(tag)));
    let is_tag = |tag: &str| is_word(tag.strip_prefix('_').unwrap_or(tag));
    let is_path = |path: &str| {
        path.split('/').enumerate().all(|(place, part)| match part.split_once(':') {
            None => is_word(part),
            Some((host, port)) => place == 0 && is_word(host) && port.parse::<u16>().is_ok(),
        })
    };
    digest.is_none_or(is_digest) && tag.is_none_or(is_tag) && is_word(last) && path.is_none_or(is_path)
}

#[cfg(test)]
mod tests {
    use super::super::{Mount, Pull};
    use super::*;
    use crate::value::Text;

    fn container() -> Container {
        let text = |text: &str| Text::new(text).expect("a text");
        Container {
            image: text("alpine"),
            pull: Pull::Missing,
            mounts: Vec::new(),
            network: text(""),
            gpu_flag: text(""),
        }
    }

    #[test]
    fn images_are_names_and_neither_options_nor_archives_of_the_node() {
        let hash = "a3ed95caeb02ffe68cdd9fd84406680ae93d633cb16422d00e8a7c22955b46d4";
        for good in [
            "alpine",
            "pytorch/pytorch:2.5.1-cuda12.4",
            "localhost/rota-test",
            "registry.site:5000/team/train:_x",
            "docker://nvcr.io/nvidia/pytorch:24.10-py3",
            &format!("alpine@sha256:{hash}"),
            &format!("sha256:{hash}"),
        ] {
            assert!(is_image(good), "{good}");
        }
        for bad in [
            "",
            "--privileged",
            "-v",
            "dir:/srv/image",
            "docker-archive:/srv/image.tar",
            "/srv/image",
            "./image",
            "a b",
            "a\n",
            "a/",
            "site:port/image",
            "alpine:",
            "alpine@",
            "alpine:a:b",
            "../x",
        ] {
            assert!(!is_image(bad), "{bad}");
        }
    }

    #[test]
    fn nothing_of_it_can_be_read_as_something_else() {
        assert_eq!(container().check(), Ok(()));
        let text = |text: &str| Text::new(text).expect("a text");
        let mount = |source: &str, target: &str| {
            let mounts = vec![Mount { source: text(source), target: text(target), is_read_only: false }];
            Container { mounts, ..container() }.check()
        };
        assert_eq!(mount("/home/ada/data", "/data"), Ok(()));
        // `:U` makes podman give the folder to the container's user.
        for (source, target) in
            [("/", "/data:U"), ("/data:/etc", "/x"), ("volume", "/data"), ("/data", "data"), ("", "/x")]
        {
            assert!(matches!(mount(source, target), Err(ContainerFault::Mount(_))), "{source} {target}");
        }
        for network in ["container:other", "ns:/proc/1/ns/net", "host --privileged", "-", "a,b"] {
            let refused = Container { network: text(network), ..container() }.check();
            assert_eq!(refused, Err(ContainerFault::Network(network.to_owned())));
        }
        assert_eq!(Container { network: text("host"), ..container() }.check(), Ok(()));
        let flag = Container { gpu_flag: text("--device=/dev/sda --group-add=6"), ..container() }.check();
        assert!(matches!(flag, Err(ContainerFault::GpuFlag(_))), "{flag:?}");
    }
}
