//! Synergy's cluster file: one `[CLUSTER]` section of whole numbers, defaults for what it leaves out.
//!
//! The original numbers the nodes of every rack from 0, and therefore works with one rack only; here numbers go on from
//! rack to rack. Its other sections (`policy`, `lease_time`) never had an effect and have none here.

use rota_core::cluster::{Cluster, NodeGroup};
use rota_core::resources::Host;

use super::lay_out;
use crate::error::InputError;
use crate::source::Source;

/// The keys of `[CLUSTER]` with the original's defaults; gigabytes, megabytes and gigabits per second.
const KEYS: [(&str, u32); 7] = [
    ("racks", 1),
    ("servers_per_rack", 4),
    ("gpus_per_server", 8),
    ("cpus_per_server", 24),
    ("dram_per_server", 500),
    ("sspeed_per_server", 300),
    ("net_per_server", 40),
];

/// Reads Synergy's cluster file.
pub fn read(source: &Source) -> Result<Cluster, InputError> {
    let mut values = KEYS.map(|(_, default)| default);
    let mut is_cluster = false;
    for (number, line) in source.text.lines().enumerate() {
        let line_number = number as u64 + 1;
        let line = line.trim();
        if line.is_empty() || line.starts_with(['#', ';']) {
            continue;
        }
        if let Some(section) = line.strip_prefix('[') {
            let name = section.strip_suffix(']').ok_or_else(|| {
                InputError::expected(&source.name, "a section such as [CLUSTER]")
                    .at_line(line_number)
                    .got(line)
            })?;
            is_cluster = name.eq_ignore_ascii_case("cluster");
            continue;
        }
        let (key, value) = line.split_once(['=', ':']).ok_or_else(|| {
            InputError::expected(&source.name, "key = value").at_line(line_number).got(line)
        })?;
        if is_cluster {
            set(source, &mut values, line_number, key.trim(), value.trim())?;
        }
    }
    build(source, values)
}

fn set(source: &Source, values: &mut [u32; 7], line: u64, key: &str, value: &str) -> Result<(), InputError> {
    let lower = key.to_ascii_lowercase();
    let Some(at) = KEYS.iter().position(|(known, _)| *known == lower) else {
        // The original takes every key containing "policy" as text and uses none of them.
        if lower.contains("policy") {
            return Ok(());
        }
        let known = KEYS.map(|(name, _)| name).join(", ");
        return Err(InputError::expected(&source.name, format!("one of {known}")).at_line(line).got(key));
    };
    let number = value.parse().map_err(|_| {
        InputError::expected(&source.name, "a whole number").at_line(line).at_name(lower).got(value)
    })?;
    if let Some(slot) = values.get_mut(at) {
        *slot = number;
    }
    Ok(())
}

fn build(source: &Source, values: [u32; 7]) -> Result<Cluster, InputError> {
    let [racks, per_rack, gpus, cpus, mem_gb, storage_mb, net_gbit] = values;
    let count = racks.checked_mul(per_rack).ok_or_else(|| {
        InputError::expected(&source.name, "fewer servers").got(format!("{racks} x {per_rack}"))
    })?;
    let group = NodeGroup {
        count,
        racks: racks.max(1),
        gpu_type: "V100".into(),
        n_gpus: gpus,
        gpu_mem_bytes: 0,
        host: Host::from_units(f64::from(cpus), f64::from(mem_gb), f64::from(storage_mb)),
        cache_bytes: 0,
        fetch_bps: u64::from(net_gbit) * 125_000_000,
    };
    lay_out(source, source.stem(), &[group])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cluster(text: &str) -> Result<Cluster, InputError> {
        read(&Source::new("some.ini", text))
    }

    #[test]
    fn keys_may_be_of_any_case_and_missing_ones_have_defaults() {
        let read =
            cluster("[CLUSTER]\t\n# 112 GPUs\nRacks = 1\nSERVERS_per_rack: 16\n[SCHEDULER]\npolicy = FIFO\n")
                .expect("ini");
        assert_eq!((read.nodes().len(), read.n_gpus(), read.name.as_str()), (16, 128, "some"));
        assert_eq!(read.nodes()[0].host, Host::from_units(24.0, 500.0, 300.0));
        assert_eq!(cluster("").expect("all defaults").n_gpus(), 32);
    }

    #[test]
    fn racks_number_their_nodes_through() {
        let read = cluster("[CLUSTER]\nracks = 2\nservers_per_rack = 3\n").expect("ini");
        assert_eq!(
            read.nodes().iter().map(|n| (n.id.0, n.rack)).collect::<Vec<_>>(),
            [(0, 0), (1, 0), (2, 0), (3, 1), (4, 1), (5, 1)]
        );
    }

    #[test]
    fn mistakes_are_named() {
        for (text, message) in [
            ("[CLUSTER]\nracks = two\n", "some.ini:2, racks: got \"two\", expected a whole number"),
            ("[CLUSTER]\nracks\n", "some.ini:2: got \"racks\", expected key = value"),
            ("[CLUSTER]\ngpus_per_server = 0\n", "some.ini: expected at least one GPU"),
            ("[CLUSTER\n", "some.ini:1: got \"[CLUSTER\", expected a section such as [CLUSTER]"),
        ] {
            assert_eq!(cluster(text).expect_err(text).to_string(), message);
        }
        let unknown = cluster("[CLUSTER]\ngpus = 8\n").expect_err("unknown key").to_string();
        assert!(
            unknown.starts_with("some.ini:2: got \"gpus\", expected one of racks, servers_per_rack,"),
            "{unknown}"
        );
    }
}
