//! Certificates without carrying keys: one-time tokens, renewal, a new authority while jobs run, and validity to the second.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use rota_test_support::need;
use rota_transport::identity::Credentials;
use rota_transport::message::{FromUser, ToUser};
use rota_transport::quic::Connector;

use crate::cluster::Cluster;
use crate::roles::ask;

const PATIENCE: Duration = Duration::from_secs(120);

fn token(cluster: &Cluster, args: &[&str]) -> String {
    let pki = cluster.path("pki");
    let all = [&["pki", "token", "--pki", &pki][..], args].concat();
    cluster.rota(&all).trim().to_owned()
}

/// Runs `rota join` into a folder.
fn join(cluster: &Cluster, token: &str, folder: &str) -> Result<String, String> {
    cluster.try_rota(&["join", "--head", cluster.address(), "--credentials", folder, token])
}

#[test]
fn a_token_is_good_for_one_certificate_in_its_time_and_the_key_stays_where_it_is_drawn() {
    let cluster = Cluster::start_joinable(0, 1, &[]);
    let good = token(&cluster, &["--user", "bob", "--role", "operate"]);
    let folder = cluster.path("bob");
    assert!(join(&cluster, &good, &folder).expect("joined").contains("user bob"));
    // With the role of the token, and without a folder at the authority.
    let drained = cluster.try_rota(&["drain", "nowhere", "--credentials", &folder]);
    assert!(drained.is_err_and(|error| error.contains("no such node")), "bob operates");
    assert!(!Path::new(&cluster.path("pki/users/bob")).exists());
    let mode = std::os::unix::fs::PermissionsExt::mode(
        &std::fs::metadata(format!("{folder}/key.pem")).expect("a key").permissions(),
    );
    assert_eq!(mode & 0o777, 0o600);
    // The authority's file of tokens has no secret in it.
    let secret = good.rsplit('-').next().expect("a secret");
    let tokens = std::fs::read_to_string(cluster.path("pki/tokens")).expect("a file of tokens");
    assert!(!tokens.contains(secret) && tokens.contains("bob.user.rota"), "{tokens}");
    let again = join(&cluster, &good, &cluster.path("again")).expect_err("used");
    assert!(again.contains("it was used before"), "{again}");
    let short = token(&cluster, &["--user", "eve", "--expires", "1s"]);
    std::thread::sleep(Duration::from_millis(2_100));
    let late = join(&cluster, &short, &cluster.path("late")).expect_err("expired");
    assert!(late.contains("it has expired"), "{late}");
    let wrong = format!("{}-{}", good.rsplit_once('-').expect("two parts").0, "0".repeat(32));
    let error = join(&cluster, &wrong, &cluster.path("wrong")).expect_err("unknown");
    assert!(error.contains("not a token of this cluster"), "{error}");
    // Another authority's fingerprint: the head is not trusted, and learns no secret.
    let mut parts: Vec<&str> = good.split('-').collect();
    let stranger = "1".repeat(64);
    parts[1] = &stranger;
    let error = join(&cluster, &parts.join("-"), &cluster.path("stranger")).expect_err("another cluster");
    assert!(error.contains("authority"), "{error}");
    let events = cluster.rota(&["events"]);
    for sentence in [
        "user bob at 127.0.0.1 joined with a one-time token",
        "was refused: the token is refused: it was used before",
        "was refused: the token is refused: it has expired",
        "was refused: the token is refused: it is not a token of this cluster",
    ] {
        assert!(events.contains(sentence), "{sentence}:\n{events}");
    }
    // After five refusals in a minute, nobody listens.
    let errors: Vec<String> = (0..4)
        .map(|n| join(&cluster, &wrong, &cluster.path(&format!("guess{n}"))).expect_err("refused"))
        .collect();
    assert!(errors.last().is_some_and(|error| error.contains("too many refused requests")), "{errors:?}");
}

#[test]
fn a_head_without_the_authority_lets_nobody_in_without_a_certificate() {
    let cluster = Cluster::start(0, 1, &[]);
    let token = token(&cluster, &["--user", "bob"]);
    join(&cluster, &token, &cluster.path("bob")).expect_err("no certificate");
    let error = cluster.try_rota(&["join", "--renew"]).expect_err("no issuer");
    assert!(error.contains("started without --pki"), "{error}");
}

#[test]
fn an_agent_joins_with_a_token_and_restarts_without_one() {
    let cluster = Cluster::start_joinable(0, 1, &[]);
    let token = token(&cluster, &["--agent", "fresh"]);
    let start = |token: &str| {
        let mut command = Command::new(need::agent(env!("CARGO_BIN_EXE_rota")));
        command.args([
            "--head",
            cluster.address(),
            "--emulate-gpus",
            "1",
            "--emulate-cpus",
            "4",
            "--memory",
            "8GB",
        ]);
        command.args(["--identity", &cluster.path("fresh-id"), "--run-dir", &cluster.path("fresh")]);
        command.args(["--token", token, "--address", "127.0.0.1"]);
        command.stdin(Stdio::null()).stderr(Stdio::null()).spawn().expect("it starts")
    };
    let is_up = |cluster: &Cluster| {
        cluster.nodes().iter().any(|node| node["name"] == "fresh" && node["state"] == "up")
    };
    for _ in 0..2 {
        let mut agent = start(&token);
        cluster.until("the agent is up", is_up);
        agent.kill().expect("killed");
        agent.wait().expect("ended");
        cluster.until("it is gone", |cluster| !is_up(cluster));
    }
}

#[test]
fn fifty_jobs_run_on_while_certificates_and_the_authority_are_replaced() {
    let cluster = Cluster::start_joinable(2, 32, &["--round", "1s", "--time-scale", "1"]);
    cluster.rota(&["submit", "--emulate", "--gpus", "1", "--time", "1h", "--array", "50"]);
    let all_run = |cluster: &Cluster| {
        let jobs = cluster.jobs();
        jobs.len() == 50 && jobs.iter().all(|job| job["state"] == "running" && job["incarnation"] == 1)
    };
    cluster.until("all run", all_run);
    let pki = cluster.path("pki");
    let certificates =
        || ["node0", "node1"].map(|name| std::fs::read(format!("{pki}/agents/{name}/cert.pem")).ok());
    let rotate = |args: &[&str]| cluster.rota(&[&["pki", "rotate", "--pki", &pki][..], args].concat());
    let status = || rotate(&["--status"]);
    let before = certificates();
    rotate(&["--authority"]);
    let error = cluster.try_rota(&["pki", "rotate", "--pki", &pki, "--finish"]).expect_err("too early");
    assert!(error.contains("only the old authority knows them"), "{error}");
    cluster.until("the agents have renewed", |_| !status().contains("agent "));
    assert_eq!(status(), "user ada\n");
    cluster.rota(&["join", "--renew"]);
    assert_eq!(status(), "nobody needs the old authority any more\n");
    rotate(&["--finish"]);
    assert!(certificates().iter().zip(&before).all(|(now, before)| now != before), "both are new");
    // Everybody is connected with certificates of the new authority.
    cluster.until("the agents are back", |cluster| cluster.nodes().iter().all(|node| node["state"] == "up"));
    rotate(&[]);
    cluster.until("and with the head's next certificate, too", |cluster| {
        cluster.nodes().len() == 2 && cluster.nodes().iter().all(|node| node["state"] == "up")
    });
    cluster.until("all still run", all_run);
    let events = cluster.rota(&["events"]);
    assert!(!events.contains("job-requeued") && !events.contains("job-stopped"), "{events}");
    assert!(events.contains("agent node0 at 127.0.0.1 renewed its certificate"), "{events}");
}

#[test]
fn an_agent_renews_its_certificate_in_the_last_third_of_its_time_and_its_job_runs_on_beyond_it() {
    let cluster = Cluster::start_joinable(1, 1, &["--round", "1s"]);
    cluster.rota(&["submit", "--gpus", "1", "--time", "1h", "--", "/bin/sleep", "600"]);
    let runs_on = |cluster: &Cluster| {
        let (jobs, nodes) = (cluster.jobs(), cluster.nodes());
        nodes.iter().all(|node| node["state"] == "up")
            && jobs.iter().all(|job| job["state"] == "running" && job["incarnation"] == 1)
            && !jobs.is_empty()
    };
    cluster.until("it runs", runs_on);
    let folder = cluster.folder.path().join("pki/agents/node0");
    let ends = || {
        let credentials = Credentials::load(&folder).ok()?;
        credentials.validity().map(|validity| validity.to.unix_timestamp())
    };
    cluster.rota(&["pki", "issue", "--pki", &cluster.path("pki"), "--agent", "node0", "--valid", "24s"]);
    let first = ends().expect("a certificate");
    cluster.until("it was renewed", |_| ends().is_some_and(|end| end != first));
    // For as long again, from the renewal on: the difference is when that was.
    let after_s = ends().expect("a certificate") - first;
    assert!((15..=24).contains(&after_s), "renewed after {after_s} s of 24");
    let now = || {
        std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).expect("a date").as_secs() as i64
    };
    cluster.until("the first one has ended", |_| now() > first + 1);
    cluster.until("the job runs on", runs_on);
    let events = cluster.rota(&["events"]);
    assert!(events.contains("agent node0 at 127.0.0.1 renewed its certificate"), "{events}");
    assert!(!events.contains("job-requeued") && !events.contains("job-stopped"), "{events}");
}

#[test]
fn a_certificate_of_five_seconds_ends_its_connection_and_is_refused_afterwards() {
    let cluster = Cluster::start(0, 1, &[]);
    let begun = Instant::now();
    cluster.rota(&["pki", "issue", "--pki", &cluster.path("pki"), "--user", "eve", "--valid", "5s"]);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let why = runtime.block_on(async {
        let folder = cluster.folder.path().join("pki/users/eve");
        let credentials = Credentials::load(&folder).expect("credentials");
        let connector = Connector::new(&credentials).expect("a connector");
        let peer = connector.connect(cluster.address()).await.expect("connected");
        let mut channel = peer.open().await.expect("a stream");
        channel.sender.send(&FromUser::Nodes).await.expect("sent");
        assert!(channel.receiver.receive::<ToUser>().await.expect("an answer").is_some());
        tokio::time::timeout(PATIENCE, peer.closed()).await.expect("in time")
    });
    let after = begun.elapsed();
    assert!(why.contains("the certificate has expired"), "{why}");
    assert!(after >= Duration::from_secs(4), "not before its time: {after:?}");
    assert!(ask(&cluster, "eve", &FromUser::Nodes).is_err(), "and none is accepted after it");
}
