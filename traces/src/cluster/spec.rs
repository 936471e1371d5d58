//! The cluster specification of Tiresias, ElasticFlow and Chronus: a table of one row, nodes under switches.
//!
//! The type of GPU is not in the file: the originals take it from a flag, here from the caller.

use rota_core::cluster::{Cluster, NodeGroup};
use rota_core::resources::Host;

use super::lay_out;
use crate::error::InputError;
use crate::rows::{BadRows, Rows};
use crate::source::Source;

/// Reads a one-row specification; all its nodes have GPUs of `gpu_type`.
pub fn read(source: &Source, gpu_type: &str) -> Result<Cluster, InputError> {
    let rows = Rows::with_header(source)?;
    let names = ["num_switch", "num_node_p_switch", "num_gpu_p_node", "num_cpu_p_node", "mem_p_node"];
    let columns = names.map(|name| rows.need(&[name]));
    let mut groups = Vec::new();
    rows.each(BadRows::Refuse, |row| {
        if row.index > 0 {
            return Err(InputError::expected(&source.name, "only one row of numbers").at_line(row.line));
        }
        let mut values = [0u32; 5];
        for (value, column) in values.iter_mut().zip(&columns) {
            *value = row.whole(column.clone()?)?;
        }
        let [switches, per_switch, gpus, cpus, mem_gb] = values;
        let count = switches.checked_mul(per_switch).ok_or_else(|| {
            InputError::expected(&source.name, "fewer nodes")
                .at_line(row.line)
                .got(format!("{switches} x {per_switch}"))
        })?;
        groups.push(NodeGroup {
            count,
            racks: switches.max(1),
            gpu_type: gpu_type.to_owned(),
            n_gpus: gpus,
            gpu_mem_bytes: 0,
            host: Host::from_units(f64::from(cpus), f64::from(mem_gb), 0.0),
            cache_bytes: 0,
            fetch_bps: 0,
        });
        Ok(())
    })?;
    lay_out(source, source.stem(), &groups)
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEADER: &str = "num_switch,num_node_p_switch,num_gpu_p_node,num_cpu_p_node,mem_p_node\n";

    #[test]
    fn switches_become_racks() {
        let cluster =
            read(&Source::new("n4g8.csv", format!("{HEADER}2,2,8,64,256")), "A100").expect("a cluster");
        assert_eq!(cluster.nodes().iter().map(|n| n.rack).collect::<Vec<_>>(), [0, 0, 1, 1]);
        assert_eq!((cluster.n_gpus(), cluster.gpu_types()), (32, &["A100".to_owned()][..]));
    }

    #[test]
    fn a_missing_column_or_a_second_row_is_refused() {
        let error =
            read(&Source::new("s.csv", "num_switch,num_node_p_switch\n1,2\n"), "A100").expect_err("columns");
        assert_eq!(
            error.to_string(),
            "s.csv:1: got \"num_switch,num_node_p_switch\", expected a column num_gpu_p_node"
        );
        let error = read(&Source::new("s.csv", format!("{HEADER}1,1,8,64,256\n1,1,8,64,256\n")), "A100")
            .expect_err("rows");
        assert_eq!(error.to_string(), "s.csv:3: expected only one row of numbers");
        let error = read(&Source::new("s.csv", HEADER), "A100").expect_err("no row");
        assert_eq!(error.to_string(), "s.csv: expected at least one GPU");
    }
}
