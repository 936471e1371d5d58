//! Rota's own cluster file: groups of like nodes, values with units, unknown fields refused.

use rota_core::cluster::{Cluster, NodeGroup};
use rota_core::resources::{GB, Host, MB_PER_S};
use serde::Deserialize;

use super::lay_out;
use crate::error::InputError;
use crate::source::Source;
use crate::units::{Bytes, BytesPerSecond};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    format: u32,
    name: Option<String>,
    nodes: Vec<Group>,
}

/// One `[[nodes]]` table. Only the count, the GPUs, the CPUs and the memory are required.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Group {
    count: u32,
    #[serde(default = "one")]
    racks: u32,
    #[serde(default)]
    gpu_type: String,
    gpus: u32,
    #[serde(default)]
    gpu_mem: Bytes,
    cpus: f64,
    mem: Bytes,
    #[serde(default)]
    storage: BytesPerSecond,
    #[serde(default)]
    cache: Bytes,
    #[serde(default)]
    fetch: BytesPerSecond,
}

fn one() -> u32 {
    1
}

/// Reads Rota's cluster file.
pub fn read(source: &Source) -> Result<Cluster, InputError> {
    let file = source.toml(|file: &File| file.format)?;
    let groups = file.nodes.iter().enumerate().map(|(i, group)| node_group(source, i, group));
    let groups = groups.collect::<Result<Vec<_>, _>>()?;
    lay_out(source, file.name.unwrap_or_else(|| source.stem()), &groups)
}

fn node_group(source: &Source, index: usize, group: &Group) -> Result<NodeGroup, InputError> {
    if !(group.cpus.is_finite() && (0.0..=1e6).contains(&group.cpus)) {
        return Err(InputError::expected(&source.name, "CPUs between 0 and a million")
            .at_name(format!("cpus of the nodes table {}", index + 1))
            .got(group.cpus.to_string()));
    }
    let exact = Host { mem_bytes: group.mem.0, storage_bps: group.storage.0, ..Host::NONE };
    let cpus = Host::from_units(group.cpus, 0.0, 0.0);
    Ok(NodeGroup {
        count: group.count,
        racks: group.racks,
        gpu_type: group.gpu_type.clone(),
        n_gpus: group.gpus,
        gpu_mem_bytes: group.gpu_mem.0,
        host: Host { cpu_micro: cpus.cpu_micro, ..exact },
        cache_bytes: group.cache.0,
        fetch_bps: group.fetch.0,
    })
}

/// Writes a cluster as Rota's file: neighbours that are alike become one group.
pub fn write(cluster: &Cluster) -> String {
    use std::fmt::Write as _;
    let mut text = format!("format = 1\nname = {}\n", toml::Value::from(cluster.name.as_str()));
    let alike = |a: &rota_core::cluster::Node, b: &rota_core::cluster::Node| {
        let key = |n: &rota_core::cluster::Node| {
            (n.rack, n.gpu_type, n.n_gpus, n.gpu_mem_bytes, n.host, n.cache_bytes, n.fetch_bps)
        };
        key(a) == key(b)
    };
    for group in cluster.nodes().chunk_by(alike) {
        let [node, ..] = group else { continue };
        let gpu_type = cluster.gpu_types().get(node.gpu_type.index()).map_or("", String::as_str);
        let gb = |bytes: u64| format!("\"{}GB\"", bytes as f64 / GB as f64);
        let rate = |bps: u64| format!("\"{}MB/s\"", bps as f64 / MB_PER_S as f64);
        // Writing to a String cannot fail.
        let _ = write!(
            text,
            "\n[[nodes]]\ncount = {}\ngpu_type = {}\ngpus = {}\ngpu_mem = {}\ncpus = {:?}\nmem = {}\nstorage = {}\ncache = {}\nfetch = {}\n",
            group.len(),
            toml::Value::from(gpu_type),
            node.n_gpus,
            gb(node.gpu_mem_bytes),
            node.host.cpus(),
            gb(node.host.mem_bytes),
            rate(node.host.storage_bps),
            gb(node.cache_bytes),
            rate(node.fetch_bps),
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    const TWO_KINDS: &str = "format = 1\nname = \"two\"\n\
        [[nodes]]\ncount = 4\nracks = 2\ngpu_type = \"A100\"\ngpus = 8\ngpu_mem = \"80GB\"\ncpus = 96\nmem = \"1TB\"\nstorage = \"2GB/s\"\n\
        [[nodes]]\ncount = 2\ngpu_type = \"T4\"\ngpus = 4\ncpus = 24.5\nmem = \"256GB\"\ncache = \"1TB\"\nfetch = \"1Gbit/s\"\n";

    #[test]
    fn groups_are_laid_out_with_their_units() {
        let cluster = read(&Source::new("two.toml", TWO_KINDS)).expect("a cluster");
        assert_eq!((cluster.nodes().len(), cluster.n_gpus()), (6, 40));
        assert_eq!(cluster.nodes().iter().map(|n| n.rack).collect::<Vec<_>>(), [0, 0, 1, 1, 2, 2]);
        assert_eq!(cluster.nodes()[5].host.cpu_micro, 24_500_000);
        assert_eq!(cluster.nodes()[5].fetch_bps, 125_000_000);
        assert_eq!(cluster.gpu_types(), ["A100", "T4"]);
    }

    #[test]
    fn a_written_cluster_reads_back_the_same() {
        let cluster = read(&Source::new("two.toml", TWO_KINDS)).expect("a cluster");
        let again = read(&Source::new("again.toml", write(&cluster))).expect("our own file");
        assert_eq!(again, cluster);
    }

    #[test]
    fn mistakes_are_named_with_line_and_column() {
        let cases = [
            (
                "format = 2\nnodes = []\n",
                "c.toml, format: got \"2\", expected format = 1, the only one this version reads",
            ),
            ("format = 1\nnodes = []\n", "c.toml: expected at least one GPU"),
            (
                "format = 1\n[[nodes]]\ncount = 1\ngpus = 8\ncpus = 24\nmem = \"lots\"\n",
                "c.toml:6, column 7: got \"lots\", expected an amount of data such as \"500GB\"",
            ),
            (
                "format = 1\n[[nodes]]\ncount = 1\ngpus = 65\ncpus = 24\nmem = \"1GB\"\n",
                "c.toml: got \"65\", expected at most 64 GPUs in a node",
            ),
            (
                "format = 1\n[[nodes]]\ncount = 1\ngpus = 1\ncpus = -1\nmem = \"1GB\"\n",
                "c.toml, cpus of the nodes table 1: got \"-1\", expected CPUs between 0 and a million",
            ),
        ];
        for (text, message) in cases {
            assert_eq!(read(&Source::new("c.toml", text)).expect_err(text).to_string(), message);
        }
        let unknown =
            read(&Source::new("c.toml", "format = 1\ngpu = 3\nnodes = []\n")).expect_err("unknown field");
        assert!(
            unknown.to_string().starts_with("c.toml:2, column 1: got \"gpu\", unknown field `gpu`"),
            "{unknown}"
        );
    }
}
