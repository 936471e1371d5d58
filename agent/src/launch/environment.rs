//! The environment of a rank: what the job asked for, then Rota's variables, which take precedence. Of the agent's own
//! environment, only what programs cannot do without.

use std::collections::BTreeMap;
use std::path::Path;

use super::account::Account;
use super::spec::{Attempt, LaunchSpec, Rendezvous};

/// Variables that all jobs inherit from the agent.
const INHERITED: [&str; 4] = ["LANG", "LD_LIBRARY_PATH", "PATH", "TZ"];
/// Variables that jobs inherit from the agent if they run as its user.
const OWN: [&str; 4] = ["HOME", "LOGNAME", "TMPDIR", "USER"];

/// Marks every process of an attempt: survivors can be found even when their shim is gone.
pub const ATTEMPT_VARIABLE: &str = "ROTA_ATTEMPT";

/// Paths and addresses for the processes of a launch.
#[derive(Clone, Copy, Debug)]
pub struct Places<'a> {
    /// The agent's directory: two agents of one host never take each other's processes for their own.
    pub run_dir: &'a Path,
    /// The socket of the job protocol.
    pub job_socket: &'a Path,
    /// Where ranks find each other.
    pub rendezvous: &'a Rendezvous,
}

/// The environment of the `local`th rank of a launch, in order of names.
pub fn of_rank(
    spec: &LaunchSpec,
    local: u32,
    places: &Places<'_>,
    account: Option<&Account>,
) -> BTreeMap<String, String> {
    let mut environment = inherited(&INHERITED);
    match account {
        None => environment.extend(inherited(&OWN)),
        Some(account) => {
            environment.extend(account.environment().map(|(name, value)| (name.to_owned(), value)))
        }
    }
    environment.extend(given(spec, local, places));
    environment
}

/// The same without what is inherited: inside a container, the agent's paths mean nothing.
pub fn given(spec: &LaunchSpec, local: u32, places: &Places<'_>) -> BTreeMap<String, String> {
    let mut environment = spec.environment.clone();
    let threads = (spec.grant.cpu_micro / 1_000_000 / u64::from(spec.gang.n_ranks.max(1))).max(1);
    environment.entry("OMP_NUM_THREADS".to_owned()).or_insert_with(|| threads.to_string());
    environment.extend(rota_variables(spec, local, places).map(|(name, value)| (name.to_owned(), value)));
    environment
}

/// The mark of all processes of an attempt.
pub fn mark(attempt: Attempt, run_dir: &Path) -> String {
    format!("{attempt}@{}", run_dir.display())
}

fn inherited(names: &[&str]) -> BTreeMap<String, String> {
    let known = names.iter().filter_map(|name| Some(((*name).to_owned(), std::env::var(name).ok()?)));
    known.collect()
}

fn rota_variables(
    spec: &LaunchSpec,
    local: u32,
    places: &Places<'_>,
) -> impl Iterator<Item = (&'static str, String)> {
    let (gang, grant) = (&spec.gang, &spec.grant);
    let rank = gang.first_rank + local;
    let gpus: Vec<String> = grant.gpus.as_slice().iter().map(u32::to_string).collect();
    [
        ("RANK", rank.to_string()),
        ("WORLD_SIZE", gang.world_size.to_string()),
        ("LOCAL_RANK", local.to_string()),
        ("LOCAL_WORLD_SIZE", gang.n_ranks.to_string()),
        ("NODE_RANK", gang.node.to_string()),
        ("MASTER_ADDR", places.rendezvous.address.clone()),
        ("MASTER_PORT", places.rendezvous.port.to_string()),
        ("CUDA_DEVICE_ORDER", "PCI_BUS_ID".to_owned()),
        ("CUDA_VISIBLE_DEVICES", gpus.join(",")),
        ("ROTA_JOB", spec.attempt.job.to_string()),
        ("ROTA_INCARNATION", spec.attempt.incarnation.to_string()),
        ("ROTA_EPOCH", spec.epoch.to_string()),
        ("ROTA_JOB_SOCKET", places.job_socket.display().to_string()),
        ("ROTA_ITERATIONS", spec.work.iterations.to_string()),
        ("ROTA_ITERATIONS_DONE", spec.work.done.to_string()),
        ("ROTA_CHECKPOINT_DIR", spec.checkpoint_dir.display().to_string()),
        ("ROTA_DATA_DIR", spec.data_dir.display().to_string()),
        ("ROTA_RUN_DIR", places.run_dir.display().to_string()),
        ("ROTA_NODES", gang.n_nodes.to_string()),
        ("ROTA_GPUS", grant.gpus.len().to_string()),
        ("ROTA_GPU_SHARE", (f64::from(grant.gpu_share_milli) / 1000.0).to_string()),
        ("ROTA_GPU_TYPE", grant.gpu_type.clone()),
        ("ROTA_GPU_MEMORY_BYTES", grant.gpu_mem_bytes.to_string()),
        ("ROTA_CPUS", (grant.cpu_micro as f64 / 1e6).to_string()),
        ("ROTA_CPU_LIST", grant.pinned.to_string()),
        ("ROTA_MEMORY_BYTES", grant.mem_bytes.to_string()),
        ("ROTA_STORAGE_BPS", grant.storage_bps.to_string()),
        (ATTEMPT_VARIABLE, mark(spec.attempt, places.run_dir)),
    ]
    .into_iter()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::launch::tests::{RENDEZVOUS, spec};

    fn places() -> Places<'static> {
        Places {
            run_dir: Path::new("/run/rota"),
            job_socket: Path::new("/run/rota/job.sock"),
            rendezvous: &RENDEZVOUS,
        }
    }

    #[test]
    fn what_rota_says_wins_over_what_the_job_asked_for() {
        let mut spec = spec();
        spec.environment = [("RANK", "77"), ("MINE", "yes"), ("OMP_NUM_THREADS", "3")]
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .into();
        spec.gang.first_rank = 4;
        let environment = of_rank(&spec, 1, &places(), None);
        let value = |name: &str| environment.get(name).map(String::as_str);
        assert_eq!((value("RANK"), value("LOCAL_RANK")), (Some("5"), Some("1")));
        assert_eq!((value("MINE"), value("OMP_NUM_THREADS")), (Some("yes"), Some("3")));
        assert_eq!(value("CUDA_VISIBLE_DEVICES"), Some("0,1"));
        assert_eq!(value("ROTA_ATTEMPT"), Some("7.1@/run/rota"));
    }

    #[test]
    fn a_job_of_an_account_finds_what_a_login_sets_and_nothing_of_the_agents_user() {
        let account = Account {
            name: "ada".to_owned(),
            uid: 2_000,
            gid: 2_000,
            groups: vec![2_000],
            home: "/home/ada".into(),
            shell: "/bin/bash".into(),
        };
        let environment = of_rank(&spec(), 0, &places(), Some(&account));
        let value = |name: &str| environment.get(name).map(String::as_str);
        assert_eq!((value("HOME"), value("SHELL")), (Some("/home/ada"), Some("/bin/bash")));
        assert_eq!((value("USER"), value("LOGNAME")), (Some("ada"), Some("ada")));
        assert_eq!((value("TMPDIR"), value("PATH").is_some()), (None, true));
    }

    #[test]
    fn the_agents_own_environment_stays_with_the_agent() {
        let environment = of_rank(&spec(), 0, &places(), None);
        let foreign = environment.keys().find(|name| name.starts_with("CARGO"));
        assert_eq!(foreign, None, "tests run with many variables of cargo's");
    }
}
