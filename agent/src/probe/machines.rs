//! Synergy's machine list: one line for each server in the order of the cluster, `ip,port,first GPU,first CPU,NUMA`.

use std::net::IpAddr;
use std::path::PathBuf;

use rota_core::ids::NodeId;

/// One server of the list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Machine {
    /// The address at which the other servers reach it.
    pub address: IpAddr,
    /// The port of its worker; rank 0 listens above it in the original.
    pub port: u16,
    /// The number of its first GPU: lower ones are left to other programs.
    pub first_gpu: u32,
    /// The number of its first CPU.
    pub first_cpu: u32,
    /// Whether CPUs are assigned by NUMA node.
    pub is_numa_aware: bool,
}

/// A list that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MachinesError {
    /// A file that cannot be read.
    #[error("{}: {why}", path.display())]
    File {
        /// The machine list.
        path: PathBuf,
        /// The error of reading it.
        why: String,
    },
    /// A line that cannot be read.
    #[error(
        "line {line}: `{text}`: expected {expected}, as in `10.0.0.4,16000,0,0,1` (ip,port,first GPU,first CPU,NUMA)"
    )]
    Line {
        /// The line's number, from 1.
        line: usize,
        /// The line as it is in the file.
        text: String,
        /// The form it should have.
        expected: &'static str,
    },
    /// Two servers with one address and port.
    #[error("line {line}: {address} port {port} is listed twice")]
    Twice {
        /// The line of the second server, from 1.
        line: usize,
        /// The address of both servers.
        address: IpAddr,
        /// The port of both servers.
        port: u16,
    },
    /// Not as many as the cluster has.
    #[error(
        "{n_machines} machines are listed, the cluster has {n_nodes} servers: one line for each is needed"
    )]
    Count {
        /// Servers in the machine list.
        n_machines: usize,
        /// Servers in the cluster file.
        n_nodes: u64,
    },
    /// The cluster file cannot be read.
    #[error("the cluster file: {why}")]
    Cluster {
        /// The file and what is wrong with it.
        why: String,
    },
    /// A server that is not listed.
    #[error("server {node} is not listed: there are {n_machines}, numbered from 0")]
    NotListed {
        /// The line that `--machine` names, from 0.
        node: NodeId,
        /// Servers in the machine list.
        n_machines: usize,
    },
}

/// Reads a list. Empty lines and lines that begin with `#` do not count.
pub fn read(text: &str) -> Result<Vec<Machine>, MachinesError> {
    let mut machines: Vec<Machine> = Vec::new();
    let lines = text.lines().enumerate().map(|(at, line)| (at + 1, line.trim()));
    for (line, text) in lines.filter(|(_, text)| !text.is_empty() && !text.starts_with('#')) {
        let machine = machine(text).map_err(|expected| MachinesError::Line {
            line,
            text: text.to_owned(),
            expected,
        })?;
        if machines.iter().any(|m| (m.address, m.port) == (machine.address, machine.port)) {
            return Err(MachinesError::Twice { line, address: machine.address, port: machine.port });
        }
        machines.push(machine);
    }
    Ok(machines)
}

fn machine(text: &str) -> Result<Machine, &'static str> {
    let fields: Vec<&str> = text.split(',').map(str::trim).collect();
    let [address, port, first_gpu, first_cpu, numa] = fields.as_slice() else { return Err("five fields") };
    Ok(Machine {
        address: address.parse().map_err(|_| "an IP address in the first field")?,
        port: port.parse().map_err(|_| "a port in the second field")?,
        first_gpu: first_gpu.parse().map_err(|_| "the number of a GPU in the third field")?,
        first_cpu: first_cpu.parse().map_err(|_| "the number of a CPU in the fourth field")?,
        is_numa_aware: match *numa {
            "0" => false,
            "1" => true,
            _ => return Err("0 or 1 in the fifth field"),
        },
    })
}

/// Checks that there is a machine for each server of a cluster file, in Rota's format or the original's.
pub fn check_count(machines: &[Machine], cluster: &str) -> Result<(), MachinesError> {
    let n_nodes = count_nodes(cluster)?;
    match machines.len() as u64 == n_nodes {
        true => Ok(()),
        false => Err(MachinesError::Count { n_machines: machines.len(), n_nodes }),
    }
}

/// The machine of a server.
pub fn of_node(machines: &[Machine], node: NodeId) -> Result<&Machine, MachinesError> {
    machines.get(node.index()).ok_or(MachinesError::NotListed { node, n_machines: machines.len() })
}

fn count_nodes(cluster: &str) -> Result<u64, MachinesError> {
    let wrong = |why: String| MachinesError::Cluster { why };
    // The original's file is an INI, and its numbers have defaults; it is not TOML.
    if cluster.lines().any(|line| line.trim().eq_ignore_ascii_case("[cluster]")) {
        let number = |name: &str, default: u64| {
            let pairs = cluster.lines().filter_map(|line| line.split_once(['=', ':']));
            let mut values =
                pairs.filter(|(key, _)| key.trim().eq_ignore_ascii_case(name)).map(|(_, v)| v.trim());
            values.next().map_or(Ok(default), |v| v.parse().map_err(|_| wrong(format!("{name} is `{v}`"))))
        };
        let (racks, per_rack): (u64, u64) = (number("racks", 1)?, number("servers_per_rack", 4)?);
        return Ok(racks.saturating_mul(per_rack));
    }
    let table: toml::Table =
        cluster.parse().map_err(|error: toml::de::Error| wrong(error.message().to_owned()))?;
    let groups = table.get("nodes").and_then(toml::Value::as_array);
    let groups = groups.ok_or_else(|| wrong("it has no [[nodes]]".to_owned()))?;
    let count = |group: &toml::Value| group.get("count").map_or(Some(1), toml::Value::as_integer);
    let counts: Option<Vec<i64>> = groups.iter().map(count).collect();
    let sum = counts.map(|counts| counts.iter().sum::<i64>()).and_then(|sum| u64::try_from(sum).ok());
    sum.ok_or_else(|| wrong("a count of [[nodes]] is not a number".to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers_are_read_in_their_order() {
        let machines = read("# mine\n10.0.0.4,16000,0,0,1\n\n10.0.0.4, 16001, 4, 12, 0\n").expect("a list");
        assert_eq!(machines.len(), 2);
        let second = of_node(&machines, NodeId(1)).expect("listed");
        assert_eq!(
            (second.port, second.first_gpu, second.first_cpu, second.is_numa_aware),
            (16001, 4, 12, false)
        );
        assert!(of_node(&machines, NodeId(2)).expect_err("two").to_string().contains("server 2"));
    }

    #[test]
    fn mistakes_name_the_line_and_the_field() {
        for (text, part) in [
            ("10.0.0.4,16000,0,0", "line 1: `10.0.0.4,16000,0,0`: expected five fields"),
            ("\nnode3,16000,0,0,0", "line 2: `node3,16000,0,0,0`: expected an IP address"),
            ("10.0.0.4,99999,0,0,0", "a port"),
            ("10.0.0.4,1,-1,0,0", "a GPU"),
            ("10.0.0.4,1,0,0,yes", "0 or 1"),
            ("10.0.0.4,1,0,0,0\n10.0.0.4,1,4,0,0", "line 2: 10.0.0.4 port 1 is listed twice"),
        ] {
            let error = read(text).expect_err(text).to_string();
            assert!(error.contains(part), "{error}");
        }
    }

    #[test]
    fn the_count_is_compared_with_the_cluster() {
        let machines = read("10.0.0.4,1,0,0,0\n10.0.0.4,2,4,0,0").expect("a list");
        let cluster = "format = 1\n[[nodes]]\ncount = 1\n[[nodes]]\ncount = 1\n";
        assert_eq!(check_count(&machines, cluster), Ok(()));
        assert_eq!(check_count(&machines, "[CLUSTER]\nracks = 1\nservers_per_rack: 2\n"), Ok(()));
        let error = check_count(&machines, "[[nodes]]\ncount = 16\n").expect_err("too few");
        assert_eq!(error, MachinesError::Count { n_machines: 2, n_nodes: 16 });
        assert!(check_count(&machines, "name = 3").is_err());
    }
}
