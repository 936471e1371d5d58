//! Networks that fail between real processes: cut for less and for more than a lease, slow, losing packets; and all of
//! it in turn with heads and agents that are killed.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use rand::rngs::ChaCha8Rng;
use rand::{RngExt as _, SeedableRng as _};
use rota_test_support::need;

use crate::cluster::Cluster;
use crate::oracle::{assert_no_doubles, oracle, submit_witnesses, try_submit_witnesses};
use crate::relay::Relay;

const SHORT_LEASE: [&str; 8] =
    ["--round", "1s", "--lease", "3s", "--heartbeat", "500ms", "--when-lost", "stop"];
/// What is the default apart from the lease: jobs of nodes that cannot be reached go on.
const KEEPING: [&str; 6] = ["--round", "1s", "--lease", "3s", "--heartbeat", "500ms"];
const LONG_LEASE: [&str; 8] =
    ["--round", "1s", "--lease", "60s", "--heartbeat", "500ms", "--policy", "fifo+proportional"];

fn begun(cluster: &Cluster) -> usize {
    oracle(cluster).matches("begin").count()
}

fn state_of(cluster: &Cluster, index: usize) -> String {
    let name = format!("node{index}");
    let nodes = cluster.nodes();
    let node = nodes.iter().find(|node| node["name"] == *name);
    node.and_then(|node| node["state"].as_str()).unwrap_or_default().to_owned()
}

fn are_all(cluster: &Cluster, n_agents: usize, state: &str) -> bool {
    (0..n_agents).all(|index| state_of(cluster, index) == state)
}

fn assert_launched_once(cluster: &Cluster) {
    for job in cluster.jobs() {
        assert_eq!(job["incarnation"], 1, "{job:#}");
    }
}

#[test]
fn a_cut_shorter_than_the_lease_is_not_noticed_by_jobs() {
    let cluster = Cluster::start_behind_relays(2, 2, &LONG_LEASE);
    submit_witnesses(&cluster, 4, 6);
    cluster.until("all run", |cluster| begun(cluster) == 4);
    (0..2).for_each(|index| cluster.relay(index).cut());
    cluster.until("both are silent", |cluster| are_all(cluster, 2, "silent"));
    (0..2).for_each(|index| cluster.relay(index).mend());
    cluster.until("both are back", |cluster| are_all(cluster, 2, "up"));
    cluster.until_all_finished(4);
    assert_launched_once(&cluster);
    assert_no_doubles(&cluster, 4);
}

#[test]
fn a_cut_of_most_of_the_lease_stops_nothing_even_where_jobs_stop_with_it() {
    let lease = ["--round", "1s", "--lease", "12s", "--heartbeat", "500ms", "--when-lost", "stop"];
    let cluster = Cluster::start_behind_relays(1, 2, &lease);
    // A grace as long as the lease: it is no part of it.
    let script = format!("trap 'echo told >> {}/oracle' TERM; sleep 16", cluster.folder.path().display());
    let asks = ["submit", "--grace", "12s", "--array", "2", "--", "/bin/sh", "-c", &script];
    cluster.rota(&asks);
    cluster.until("both run", |cluster| cluster.jobs().iter().all(|job| job["state"] == "running"));
    cluster.relay(0).cut();
    let cut = Instant::now();
    std::thread::sleep(Duration::from_secs(10));
    cluster.relay(0).mend();
    let lasted = cut.elapsed();
    cluster.until_all_finished(2);
    // On a machine that is too slow to mend it in time, nothing can be said.
    if lasted < Duration::from_millis(10_500) {
        assert_eq!(oracle(&cluster), "", "nobody was told to stop");
        assert_launched_once(&cluster);
    }
}

#[test]
fn by_default_jobs_of_a_node_that_cannot_be_reached_go_on_and_run_nowhere_else() {
    let cluster = Cluster::start_behind_relays(2, 1, &KEEPING);
    let folder = cluster.folder.path().display().to_string();
    let script = format!(
        "echo begin $ROTA_JOB >> {folder}/oracle; while [ ! -e {folder}/end ]; do sleep 0.1; done; echo end $ROTA_JOB >> {folder}/oracle"
    );
    cluster.rota(&["submit", "--time", "1h", "--", "/bin/sh", "-c", &script]);
    cluster.until("it runs", |cluster| begun(cluster) == 1);
    let node = cluster.jobs()[0]["nodes"][0].as_str().expect("a node").to_owned();
    let index: usize = node.trim_start_matches("node").parse().expect("a number");
    cluster.relay(index).cut();
    cluster.until("it cannot be reached", |cluster| state_of(cluster, index) == "unreachable");
    // The other node is free, and takes new jobs.
    submit_witnesses(&cluster, 1, 1);
    cluster.until("another job is finished", |cluster| cluster.jobs()[1]["state"] == "finished");
    assert_eq!(cluster.jobs()[0]["state"], "running");
    assert_eq!(cluster.jobs()[0]["reason"], format!("{node} cannot be reached"));
    // It ends with success while its node is away.
    std::fs::write(format!("{folder}/end"), "").expect("written");
    cluster.until("it has ended", |cluster| oracle(cluster).contains("end 0"));
    cluster.relay(index).mend();
    cluster.until("it is known to be finished", |cluster| cluster.jobs()[0]["state"] == "finished");
    assert_launched_once(&cluster);
    cluster.until("its node is back", |cluster| state_of(cluster, index) == "up");
}

#[test]
fn a_node_that_is_given_up_or_away_for_too_long_loses_its_jobs_to_others() {
    let limit = [&KEEPING[..], &["--give-up-after", "8s"]].concat();
    for (args, gives_up) in [(&KEEPING[..], true), (&limit[..], false)] {
        let cluster = Cluster::start_behind_relays(2, 1, args);
        submit_witnesses(&cluster, 1, 1_000);
        cluster.until("it runs", |cluster| begun(cluster) == 1);
        let node = cluster.jobs()[0]["nodes"][0].as_str().expect("a node").to_owned();
        let index: usize = node.trim_start_matches("node").parse().expect("a number");
        let sure = ["give-up", &node, "--nothing-runs-there"];
        let error = cluster.try_rota(&sure).expect_err("it is connected");
        assert!(error.contains("rota drain"), "{error}");
        if gives_up {
            // Nothing runs there any more: the agent is gone, and so is the job.
            cluster.relay(index).cut();
            cluster.until("it cannot be reached", |cluster| state_of(cluster, index) == "unreachable");
            let error = cluster.try_rota(&["give-up", &node]).expect_err("nobody said that he is sure");
            assert!(error.contains("run twice"), "{error}");
            cluster.kill_job(index, "0.1");
            cluster.rota(&sure);
            assert_eq!(state_of(&cluster, index), "lost");
        } else {
            cluster.relay(index).cut();
        }
        cluster.until("it runs elsewhere", |cluster| begun(cluster) == 2);
        let job = &cluster.jobs()[0];
        assert_ne!(job["nodes"][0], *node, "{job:#}");
        assert!(!oracle(&cluster).contains("double"), "{}", oracle(&cluster));
    }
}

#[test]
fn a_launch_that_nobody_knows_any_more_is_stopped_and_named() {
    let cluster = Cluster::start_behind_relays(2, 1, &KEEPING);
    // Two launches of it may be alive at the same time, because its operator says that the first is not.
    let script = format!("echo $$ >> {}; exec sleep 1000", cluster.path("processes"));
    cluster.rota(&["submit", "--grace", "1s", "--", "/bin/sh", "-c", &script]);
    let processes = |cluster: &Cluster| -> Vec<String> {
        let text = std::fs::read_to_string(cluster.path("processes")).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    };
    let lives = |process: &String| {
        std::fs::read_to_string(format!("/proc/{process}/cmdline")).is_ok_and(|c| c.contains("sleep"))
    };
    cluster
        .until("it runs", |cluster| processes(cluster).iter().filter(|process| lives(process)).count() == 1);
    let first = processes(&cluster).remove(0);
    let node = cluster.jobs()[0]["nodes"][0].as_str().expect("a node").to_owned();
    let index: usize = node.trim_start_matches("node").parse().expect("a number");
    cluster.relay(index).cut();
    cluster.until("it cannot be reached", |cluster| state_of(cluster, index) == "unreachable");
    cluster.rota(&["give-up", &node, "--nothing-runs-there"]);
    cluster.until("it runs elsewhere", |cluster| processes(cluster).len() == 2);
    assert!(lives(&first), "the operator was wrong");
    cluster.relay(index).mend();
    cluster.until("the old launch is gone", |_| !lives(&first));
    let second = processes(&cluster).remove(1);
    assert!(lives(&second) && cluster.jobs()[0]["state"] == "running", "{:#?}", cluster.jobs());
    let events = cluster.rota(&["events"]);
    assert!(events.contains("job 0 launch 1 runs on") && events.contains("is stopped, because"), "{events}");
}

#[test]
fn a_node_cut_off_for_longer_than_its_lease_has_stopped_its_jobs_before_another_takes_them_over() {
    let cluster = Cluster::start_behind_relays(2, 2, &SHORT_LEASE);
    submit_witnesses(&cluster, 2, 5);
    cluster.until("both run", |cluster| begun(cluster) == 2);
    let node = cluster.jobs()[0]["nodes"][0].as_str().expect("a node").to_owned();
    let index = node.trim_start_matches("node").parse().expect("a number");
    cluster.relay(index).cut();
    cluster.until("it is lost", |cluster| state_of(cluster, index) == "lost");
    cluster.until_all_finished(2);
    assert!(cluster.jobs()[0]["incarnation"].as_u64() > Some(1), "it ran on the other node");
    assert_no_doubles(&cluster, 2);
    cluster.relay(index).mend();
    cluster.until("it is back", |cluster| state_of(cluster, index) == "up");
}

#[test]
fn a_head_cut_off_from_all_for_longer_than_the_lease_loses_and_doubles_nothing() {
    let cluster = Cluster::start_behind_relays(2, 2, &SHORT_LEASE);
    submit_witnesses(&cluster, 4, 4);
    cluster.until("all run", |cluster| begun(cluster) == 4);
    (0..2).for_each(|index| cluster.relay(index).cut());
    cluster.until("both are lost", |cluster| are_all(cluster, 2, "lost"));
    // Users are not behind the cut: what they are told now holds.
    submit_witnesses(&cluster, 2, 1);
    (0..2).for_each(|index| cluster.relay(index).mend());
    cluster.until_all_finished(6);
    assert_no_doubles(&cluster, 6);
}

#[test]
fn one_packet_in_five_lost_and_the_others_late_loses_no_node() {
    let cluster = Cluster::start_behind_relays(2, 2, &LONG_LEASE);
    (0..2).for_each(|index| cluster.relay(index).spoil(20, 60));
    for _ in 0..3 {
        submit_witnesses(&cluster, 4, 1);
    }
    cluster.until_all_finished(12);
    assert_launched_once(&cluster);
    assert_no_doubles(&cluster, 12);
    let events = cluster.rota(&["events"]);
    assert!(!events.contains("node-lost"), "{events}");
}

/// What happens to a cluster, and for how many milliseconds.
#[derive(Clone, Copy, Debug)]
enum Fault {
    HeadKilled(u64),
    AgentKilled(usize, u64),
    OneCut(usize, u64),
    AllCut(u64),
    BadWeather(u64),
}

const N_AGENTS: usize = 3;

impl Fault {
    fn draw(random: &mut ChaCha8Rng) -> Self {
        // Shorter than the lease of 3 s, and longer than lease and grace.
        let long_ms = if random.random_bool(0.5) { 300..2_000 } else { 4_000..8_000 };
        let (agent, long_ms) = (random.random_range(0..N_AGENTS), random.random_range(long_ms));
        match random.random_range(0..6) {
            0 | 1 => Fault::HeadKilled(random.random_range(0..1_500)),
            2 => Fault::AgentKilled(agent, long_ms),
            3 => Fault::OneCut(agent, long_ms),
            4 => Fault::AllCut(long_ms),
            _ => Fault::BadWeather(long_ms),
        }
    }

    /// Lets it happen and pass.
    fn strike(self, cluster: &mut Cluster) {
        let lasts = |ms| std::thread::sleep(Duration::from_millis(ms));
        let all = |cluster: &Cluster, act: fn(&Relay)| {
            (0..N_AGENTS).for_each(|index| act(cluster.relay(index)));
        };
        match self {
            Fault::HeadKilled(ms) => {
                cluster.kill_head();
                lasts(ms);
                cluster.start_head();
            }
            Fault::AgentKilled(index, ms) => {
                cluster.kill_agent(index);
                lasts(ms);
                cluster.start_agent(index, 2);
            }
            Fault::OneCut(index, ms) => {
                cluster.relay(index).cut();
                lasts(ms);
                cluster.relay(index).mend();
            }
            Fault::AllCut(ms) => {
                all(cluster, Relay::cut);
                lasts(ms);
                all(cluster, Relay::mend);
            }
            Fault::BadWeather(ms) => {
                all(cluster, |relay| relay.spoil(20, 100));
                lasts(ms);
                all(cluster, Relay::mend);
            }
        }
    }
}

#[test]
fn faults_of_all_kinds_in_turn_lose_no_acknowledged_job_and_double_none() {
    let n_faults = if need::is_long_tier() { 30 } else { 4 };
    let seed = std::env::var("ROTA_SEED").ok().and_then(|text| text.parse().ok()).unwrap_or(7);
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    let mut cluster = Cluster::start_behind_relays(N_AGENTS, 2, &SHORT_LEASE);
    let (mut acknowledged, mut faults) = (BTreeSet::new(), Vec::new());
    for _ in 0..n_faults {
        // A head that is just starting may not answer; what it does answer holds.
        acknowledged.extend(try_submit_witnesses(&cluster, 2, random.random_range(1..4)).unwrap_or_default());
        let fault = Fault::draw(&mut random);
        faults.push(fault);
        fault.strike(&mut cluster);
    }
    eprintln!("seed {seed}: {} jobs acknowledged over {faults:?}", acknowledged.len());
    cluster.until("all that was acknowledged is finished, and all that was not", |cluster| {
        let jobs = cluster.jobs();
        let is_known = |id: &u64| jobs.iter().any(|job| job["id"] == *id);
        acknowledged.iter().all(is_known) && jobs.iter().all(|job| job["state"] == "finished")
    });
    let n_jobs = cluster.jobs().len();
    assert!(!acknowledged.is_empty() && acknowledged.len() <= n_jobs, "seed {seed}: {acknowledged:?}");
    assert_no_doubles(&cluster, n_jobs);
}
