//! Jobs that bear witness. They hold a lock while they live, which the kernel releases when they die: a job that finds it held
//! is a second live launch of the same job. The log they append to is the oracle.

use crate::cluster::Cluster;

/// Submits jobs that run so many seconds and write down when they begin and end, and if they are not alone.
pub(crate) fn submit_witnesses(cluster: &Cluster, n_jobs: u32, seconds: u32) {
    try_submit_witnesses(cluster, n_jobs, seconds)
        .unwrap_or_else(|error| panic!("{error}\n{}", cluster.head_log()));
}

/// The same; the numbers of jobs that were acknowledged.
pub(crate) fn try_submit_witnesses(cluster: &Cluster, n_jobs: u32, seconds: u32) -> Result<Vec<u64>, String> {
    let folder = cluster.folder.path().display();
    let script = format!(
        "flock -n -E 99 {folder}/$ROTA_JOB.lock sh -c \
         'echo begin $ROTA_JOB $ROTA_INCARNATION >> {folder}/oracle; sleep {seconds}; echo end $ROTA_JOB >> {folder}/oracle'; \
         code=$?; [ $code -ne 99 ] || echo double $ROTA_JOB >> {folder}/oracle; exit $code"
    );
    let (array, time) = (n_jobs.to_string(), format!("{seconds}s"));
    let asks = ["submit", "--json", "--gpus", "1", "--grace", "1s", "--time", &time, "--array", &array];
    let said = cluster.try_rota(&[&asks[..], &["--", "/bin/sh", "-c", &script]].concat())?;
    serde_json::from_str(&said).map_err(|error| format!("{said}: {error}"))
}

pub(crate) fn oracle(cluster: &Cluster) -> String {
    std::fs::read_to_string(cluster.folder.path().join("oracle")).unwrap_or_default()
}

/// How many launches of a job began.
pub(crate) fn n_begun(cluster: &Cluster, job: u64) -> usize {
    oracle(cluster).lines().filter(|line| line.starts_with(&format!("begin {job} "))).count()
}

/// Whether a job has ended by itself.
pub(crate) fn has_ended(cluster: &Cluster, job: u64) -> bool {
    oracle(cluster).contains(&format!("end {job}\n"))
}

pub(crate) fn assert_no_doubles(cluster: &Cluster, n_jobs: usize) {
    let oracle = oracle(cluster);
    assert!(!oracle.contains("double"), "two live launches of one job:\n{oracle}");
    for job in 0..n_jobs {
        assert!(oracle.contains(&format!("end {job}\n")), "job {job} never ended:\n{oracle}");
    }
}
