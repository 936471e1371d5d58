//! One identity, two agents; an agent that has lost its run directory; a launch whose record is damaged. What may be alive is not
//! started again.

use crate::cluster::Cluster;
use crate::oracle::{assert_no_doubles, n_begun, oracle, submit_witnesses};

const SHORT_LEASE: [&str; 8] = ["--round", "1s", "--lease", "8s", "--heartbeat", "1s", "--when-lost", "stop"];
const REFUSED: &str = "another agent with the identity node0";

fn both_run(cluster: &Cluster) -> bool {
    oracle(cluster).matches("begin").count() == 2
}

#[test]
fn a_second_agent_with_the_same_identity_is_refused_until_the_lease_of_the_first_is_over() {
    let mut cluster = Cluster::start(1, 2, &SHORT_LEASE);
    submit_witnesses(&cluster, 2, 20);
    cluster.until("both run", both_run);
    cluster.start_twin(0, 2, "twin");
    cluster.until("the second is refused", |cluster| cluster.log("twin").contains(REFUSED));
    let told = |cluster: &Cluster| {
        cluster.head_log().contains(REFUSED) && cluster.rota(&["events"]).contains(REFUSED)
    };
    assert!(told(&cluster), "{}", cluster.head_log());
    assert!(
        !cluster.agent_log(0).contains("connecting again"),
        "the first is not disturbed: {}",
        cluster.agent_log(0)
    );
    assert_eq!(cluster.jobs()[0]["incarnation"], 1);
    cluster.kill_agent(0);
    cluster.until("the second is taken in", |cluster| cluster.log("twin").contains("connected to the head"));
    cluster.until_all_finished(2);
    assert_no_doubles(&cluster, 2);
    let log = cluster.head_log();
    assert!(log.contains("node0 has a new run directory: the lease of the agent before it is over"), "{log}");
}

#[test]
fn an_agent_with_a_new_run_directory_frees_nothing_before_the_lease_is_over() {
    let mut cluster = Cluster::start(1, 2, &SHORT_LEASE);
    submit_witnesses(&cluster, 2, 20);
    cluster.until("both run", both_run);
    cluster.kill_agent(0);
    // The shims of the first agent and their jobs live on.
    cluster.start_twin(0, 2, "fresh");
    cluster.until("it is there", |cluster| cluster.log("fresh").contains("connected to the head"));
    cluster.until_all_finished(2);
    assert_no_doubles(&cluster, 2);
    assert_eq!(
        (n_begun(&cluster, 0), n_begun(&cluster, 1)),
        (2, 2),
        "begun again once:\n{}",
        oracle(&cluster)
    );
}

#[test]
fn a_new_run_directory_frees_nothing_either_when_the_head_was_restarted_too() {
    let mut cluster = Cluster::start(1, 2, &SHORT_LEASE);
    submit_witnesses(&cluster, 2, 20);
    cluster.until("both run", both_run);
    cluster.kill_agent(0);
    cluster.kill_head();
    cluster.start_twin(0, 2, "fresh");
    cluster.start_head();
    cluster.until_all_finished(2);
    assert_no_doubles(&cluster, 2);
    assert!(cluster.log("fresh").contains(REFUSED), "{}", cluster.log("fresh"));
}

#[test]
fn a_launch_whose_record_cannot_be_read_keeps_its_gpus_until_it_ends() {
    let mut cluster = Cluster::start(1, 2, &["--round", "1s"]);
    submit_witnesses(&cluster, 2, 10);
    cluster.until("both run", both_run);
    cluster.kill_agent(0);
    let record = cluster.folder.path().join("node0/attempts/0.1/launch.json");
    std::fs::write(&record, "not what was here").expect("written");
    cluster.start_agent(0, 2);
    cluster.until("an operator is told", |cluster| {
        cluster
            .try_rota(&["events"])
            .is_ok_and(|events| events.contains("launch 0.1 cannot be read and may be alive"))
    });
    assert!(record.exists(), "it is not deleted");
    cluster.until_all_finished(2);
    assert_no_doubles(&cluster, 2);
    assert_eq!((n_begun(&cluster, 0), n_begun(&cluster, 1)), (1, 1), "{}", oracle(&cluster));
}
