//! Clusters from files: Rota's TOML, Synergy's `.ini`, the Tiresias family's one-row table; and the built-in ones.
//!
//! How a cluster behaves is defined in the core; which nodes are up is known to the simulator.

pub mod ini;
pub mod spec;
pub mod toml;

use rota_core::cluster::{Cluster, ClusterError, MAX_GPUS_PER_NODE, NodeGroup};

use crate::error::InputError;
use crate::source::Source;

/// The built-in clusters: name and file, in the order they are listed to people.
pub const BUILT_IN: [(&str, &str); 16] = [
    ("default", include_str!("../../../configs/clusters/default.toml")),
    ("philly", include_str!("../../../configs/clusters/philly.toml")),
    ("small", include_str!("../../../configs/clusters/small.toml")),
    ("cpu4", include_str!("../../../configs/clusters/cpu4.toml")),
    ("cpu5", include_str!("../../../configs/clusters/cpu5.toml")),
    ("cpu6", include_str!("../../../configs/clusters/cpu6.toml")),
    ("a100", include_str!("../../../configs/clusters/a100.toml")),
    ("a100-4", include_str!("../../../configs/clusters/a100-4.toml")),
    ("a100-8", include_str!("../../../configs/clusters/a100-8.toml")),
    ("a100-32", include_str!("../../../configs/clusters/a100-32.toml")),
    ("chronus", include_str!("../../../configs/clusters/chronus.toml")),
    ("a100-64", include_str!("../../../configs/clusters/a100-64.toml")),
    ("a100-128", include_str!("../../../configs/clusters/a100-128.toml")),
    ("t4", include_str!("../../../configs/clusters/t4.toml")),
    ("mixed", include_str!("../../../configs/clusters/mixed.toml")),
    ("data", include_str!("../../../configs/clusters/data.toml")),
];

/// What nodes have where neither their file nor the caller says: what ElasticFlow's flag defaults to.
const UNSAID_GPU_TYPE: &str = "A100";

/// A built-in cluster by name, or a cluster file.
pub fn load(name_or_path: &str) -> Result<Cluster, InputError> {
    load_with(name_or_path, UNSAID_GPU_TYPE)
}

/// The same; nodes of a file that does not say what GPUs they have get those of `gpu_type`.
pub fn load_with(name_or_path: &str, gpu_type: &str) -> Result<Cluster, InputError> {
    let source = Source::find(name_or_path, &BUILT_IN, "cluster", "cluster", "clusters")?;
    let is_built_in = BUILT_IN.iter().any(|(name, _)| *name == name_or_path);
    if is_built_in { toml::read(&source) } else { read_with(&source, gpu_type) }
}

/// Reads a cluster in the format that the name and the first line show.
pub fn read(source: &Source) -> Result<Cluster, InputError> {
    read_with(source, UNSAID_GPU_TYPE)
}

fn read_with(source: &Source, gpu_type: &str) -> Result<Cluster, InputError> {
    if source.has_extension("ini") {
        ini::read(source)
    } else if source.has_extension("toml") {
        toml::read(source)
    } else if source.text.lines().next().is_some_and(|line| line.contains("num_gpu_p_node")) {
        spec::read(source, gpu_type)
    } else {
        let what = "a cluster: Rota's .toml, Synergy's .ini, or a .csv with the columns num_switch, num_node_p_switch, …";
        Err(InputError::expected(&source.name, what))
    }
}

/// Past this the sums over all nodes could leave 64 bits.
const MOST_IN_ALL: u64 = u64::MAX / 4;

fn lay_out(source: &Source, name: String, groups: &[NodeGroup]) -> Result<Cluster, InputError> {
    let total = |of: fn(&NodeGroup) -> u64| {
        groups
            .iter()
            .try_fold(0u64, |sum, g| of(g).checked_mul(u64::from(g.count))?.checked_add(sum))
            .filter(|s| *s < MOST_IN_ALL)
    };
    let fits =
        total(|g| g.host.cpu_micro).and(total(|g| g.host.mem_bytes)).and(total(|g| g.host.storage_bps));
    if fits.and(total(|g| u64::from(g.n_gpus)).filter(|n| *n <= u64::from(u32::MAX))).is_none() {
        return Err(InputError::expected(
            &source.name,
            "a smaller cluster: its resources cannot be added up",
        ));
    }
    if let Some(group) = groups.iter().find(|g| g.racks > g.count.max(1)) {
        let what = format!("at most as many racks as nodes ({})", group.count);
        return Err(InputError::expected(&source.name, what).at_name("racks").got(group.racks.to_string()));
    }
    Cluster::new(name, groups).map_err(|error| match error {
        ClusterError::Empty => InputError::expected(&source.name, "at least one GPU"),
        ClusterError::TooManyGpus { n_gpus } => {
            InputError::expected(&source.name, format!("at most {MAX_GPUS_PER_NODE} GPUs in a node"))
                .got(n_gpus.to_string())
        }
        ClusterError::TooManyNodes { n_nodes } => {
            InputError::expected(&source.name, "at most ten million nodes").got(n_nodes.to_string())
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_built_in_cluster_is_what_its_name_says() {
        let shape = |name: &str| {
            let cluster = load(name).expect(name);
            assert_eq!(cluster.name, name);
            (cluster.nodes().len(), cluster.n_gpus(), cluster.nodes()[0].host.cpus())
        };
        assert_eq!(shape("default"), (16, 128, 24.0));
        assert_eq!(shape("philly"), (64, 512, 24.0));
        assert_eq!(shape("small"), (4, 32, 24.0));
        assert_eq!((shape("cpu4").2, shape("cpu5").2, shape("cpu6").2), (32.0, 40.0, 48.0));
        assert_eq!(load("mixed").expect("mixed").gpu_types().len(), 2);
        assert!(load("data").expect("data").nodes().iter().all(|n| n.cache_bytes > 0 && n.fetch_bps > 0));
        for (name, _) in BUILT_IN {
            load(name).expect(name);
        }
    }

    #[test]
    fn a_name_that_is_nothing_lists_what_there_is() {
        let error = load("defualt").expect_err("typo").to_string();
        assert!(error.starts_with("cluster: got \"defualt\", expected a cluster file or one of the built-in clusters default, philly"), "{error}");
    }

    #[test]
    fn absurd_sizes_are_refused_before_anything_is_built() {
        let text = "format = 1\n[[nodes]]\ncount = 4294967295\ngpus = 8\ncpus = 24\nmem = \"900TB\"\n";
        assert!(read(&Source::new("x.toml", text)).is_err());
        let text =
            "format = 1\n[[nodes]]\ncount = 2\nracks = 4000000000\ngpus = 8\ncpus = 24\nmem = \"1GB\"\n";
        assert!(read(&Source::new("x.toml", text)).is_err());
    }
}
