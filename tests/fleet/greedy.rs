//! A person with a certificate who asks for more than is theirs: requests that no command of ours sends.

use rota_core::ids::JobId;
use rota_core::time::{Span, Time};
use rota_head::scribe::Scribe;
use rota_head::{KeepJournal, ProfileText, Record, Rules};
use rota_transport::identity::Credentials;
use rota_transport::message::{
    Container, FromUser, JobChange, JobRequest, JobSelection, Launcher, Mount, Pull, ToUser,
};
use rota_transport::quic::{Channel, Connector, Peer};
use rota_transport::value::{Text, Wait};

use crate::cluster::Cluster;
use crate::roles::ask;

fn text(text: &str) -> Text {
    Text::new(text).expect("a text")
}

fn submit(cluster: &Cluster, user: &str, jobs: Vec<JobRequest>) -> Result<usize, String> {
    let answers = ask(cluster, user, &FromUser::Submit { jobs, key: rand::random() })?;
    match answers.as_slice() {
        [ToUser::Submitted(ids)] => Ok(ids.len()),
        other => panic!("{other:?}"),
    }
}

fn a_job() -> JobRequest {
    let mut job = JobRequest::emulated(1);
    job.start.launcher = Launcher::Process;
    job.start.argv = vec![text("/bin/true")];
    job
}

#[test]
fn nothing_in_a_request_becomes_an_option_of_a_container_client() {
    let cluster = Cluster::start(0, 1, &[]);
    cluster.issue("eve", "submit");
    let good = || Container {
        image: text("registry.site:5000/team/train:2.1"),
        pull: Pull::Missing,
        mounts: Vec::new(),
        network: text("host"),
        gpu_flag: text(""),
    };
    let ask_for = |container: Container| {
        let mut job = a_job();
        job.start.launcher = Launcher::Container(container);
        submit(&cluster, "eve", vec![job])
    };
    assert_eq!(ask_for(good()), Ok(1));
    let mount = |source: &str, target: &str| {
        vec![Mount { source: text(source), target: text(target), is_read_only: false }]
    };
    for (container, says) in [
        (Container { gpu_flag: text("--device=/dev/sda --group-add=6"), ..good() }, "a setting of each node"),
        (Container { image: text("--privileged"), ..good() }, "not the name of an image"),
        (Container { image: text("docker-archive:/srv/image.tar"), ..good() }, "not the name of an image"),
        (Container { network: text("container:rota-1-1-0"), ..good() }, "not the name of a network"),
        (Container { mounts: mount("/", "/x:U"), ..good() }, "whole path, without `:`"),
        (Container { mounts: mount("volume", "/x"), ..good() }, "whole path, without `:`"),
    ] {
        let error = ask_for(container.clone()).expect_err("refused");
        assert!(error.contains(says), "{container:?}: {error}");
    }
}

#[test]
fn one_person_cannot_use_up_the_head_or_keep_gpus_for_ever() {
    let cluster = Cluster::start(0, 1, &["--most-jobs", "5", "--most-grace", "10m"]);
    cluster.issue("eve", "submit");
    cluster.issue("olga", "operate");
    // Without a node, others would be declined at once.
    let held = || {
        let mut job = a_job();
        job.conditions.is_held = true;
        job
    };
    let some = |n: usize| vec![held(); n];
    assert_eq!(submit(&cluster, "eve", some(3)), Ok(3));
    let error = submit(&cluster, "eve", some(3)).expect_err("six");
    assert!(error.contains("3 of yours have not ended") && error.contains("at most 5"), "{error}");
    assert_eq!(submit(&cluster, "eve", some(2)), Ok(2));
    assert_eq!(submit(&cluster, "olga", some(7)), Ok(7), "operators may");
    cluster.try_rota_as("eve", &["cancel", "0-4"]).expect("her own");
    assert_eq!(submit(&cluster, "eve", some(5)), Ok(5), "those that have ended do not count");
    let mut stays = held();
    stays.start.grace = Wait::new(Span::from_secs(601)).expect("a time");
    let error = submit(&cluster, "olga", vec![stays.clone()]).expect_err("too long");
    assert!(error.contains("601 s") && error.contains("600 s"), "{error}");
    stays.start.grace = Wait::new(Span::from_secs(600)).expect("a time");
    assert_eq!(submit(&cluster, "olga", vec![stays]), Ok(1));
    let jobs = JobSelection { ranges: vec![(JobId(0), JobId(1)); 10_001], ..JobSelection::default() };
    let error =
        ask(&cluster, "eve", &FromUser::Change { jobs, change: JobChange::Cancel }).expect_err("too many");
    assert!(error.contains("10001") && error.contains("at most 10000"), "{error}");
}

#[test]
fn a_person_with_many_connections_is_refused_more_and_others_are_answered() {
    let cluster = Cluster::start(0, 1, &[]);
    cluster.issue("eve", "submit");
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .expect("a runtime");
    let folder = cluster.folder.path().join("pki/users/eve");
    let credentials = Credentials::load(&folder).expect("credentials");
    let (_connector, peers) = runtime.block_on(async {
        let connector = Connector::new(&credentials).expect("a connector");
        let mut peers = Vec::new();
        for _ in 0..64 {
            let peer = connector.connect(cluster.address()).await.expect("connected");
            // Answered once, so that the head has counted it.
            let mut channel = peer.open().await.expect("a stream");
            channel.sender.send(&FromUser::Nodes).await.expect("sent");
            // To its end: a stream that is dropped before it costs the connection.
            while channel.receiver.receive::<ToUser>().await.expect("an answer") != Some(ToUser::End) {}
            peers.push(peer);
        }
        (connector, peers)
    });
    let error = cluster.try_rota_as("eve", &["jobs"]).expect_err("one too many");
    assert!(error.contains("eve has 64 connections already"), "{error}");
    assert!(cluster.try_rota(&["jobs"]).is_ok(), "others are answered");
    peers[0].close("done");
    cluster.until("there is room again", |cluster| cluster.try_rota_as("eve", &["jobs"]).is_ok());
}

/// Asks for the journal, and takes the first piece of it.
async fn read_a_little(peer: &Peer) -> Channel {
    let mut channel = peer.open().await.expect("a stream");
    channel.receiver.trust();
    channel.sender.send(&FromUser::Journal).await.expect("sent");
    assert!(channel.receiver.receive::<ToUser>().await.expect("the first piece").is_some());
    channel
}

#[test]
fn a_reader_who_takes_nothing_of_the_journal_holds_nobody_up() {
    let mut cluster = Cluster::start(0, 1, &[]);
    cluster.issue("olga", "operate");
    cluster.kill_head();
    // More than what is under way on a connection.
    let rules = Rules::plain(ProfileText::load("synergy").expect("built in"));
    let state = cluster.folder.path().join("head");
    let mut past = Scribe::open(&state, &rules, KeepJournal::default()).expect("opened");
    for line in 0..15_000 {
        past.record(Time(line), Record::Noted { text: "x".repeat(1_000) });
    }
    past.write().expect("written");
    drop(past);
    cluster.start_head();
    cluster.until("the head is ready", |cluster| cluster.status()["is_ready"] == true);
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .expect("a runtime");
    let credentials = Credentials::load(&cluster.folder.path().join("pki/users/ada")).expect("credentials");
    let (_connector, peer, mut channels) = runtime.block_on(async {
        let connector = Connector::new(&credentials).expect("a connector");
        let peer = connector.connect(cluster.address()).await.expect("connected");
        let mut channels = Vec::new();
        for _ in 0..7 {
            channels.push(read_a_little(&peer).await);
        }
        (connector, peer, channels)
    });
    let mut job = a_job();
    job.conditions.is_held = true;
    assert_eq!(submit(&cluster, "ada", vec![job]), Ok(1));
    cluster.rota(&["cancel", "0"]);
    assert_eq!(cluster.jobs()[0]["state"], "cancelled");
    // The eighth is the last one, and others have theirs.
    channels.push(runtime.block_on(read_a_little(&peer)));
    let error = ask(&cluster, "ada", &FromUser::Journal).expect_err("one too many");
    assert!(error.contains("8 long answers are being sent to ada"), "{error}");
    assert!(cluster.try_rota_as("olga", &["jobs", "--all"]).is_ok(), "others are answered");
    // The reader has not been given up: the rest is there.
    let n_bytes = runtime.block_on(async {
        let mut n_bytes = 0;
        while let Some(ToUser::Text(piece)) =
            channels[0].receiver.receive::<ToUser>().await.expect("the rest")
        {
            n_bytes += piece.as_str().len();
        }
        n_bytes
    });
    assert!(n_bytes > 12_000_000, "{n_bytes}");
}
