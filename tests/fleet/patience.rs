//! Commands that give up in time, and say with whom and after how long.

use std::net::UdpSocket;
use std::time::{Duration, Instant};

use rota_transport::identity::Credentials;
use rota_transport::quic::Listener;

use crate::cluster::Cluster;

/// What a command of ada complains about when the head is somewhere else.
fn complaint(cluster: &Cluster, head: &str, args: &[&str]) -> String {
    let since = Instant::now();
    let (command, rest) = args.split_at(1);
    let limit = ["--head", head, "--timeout", "1s"];
    let error = cluster.try_rota(&[command, &limit, rest].concat()).expect_err("no answer");
    assert!(since.elapsed() < Duration::from_secs(60), "it took {:?}: {error}", since.elapsed());
    assert!(error.contains(head) && error.contains("1 s"), "{error}");
    error
}

#[test]
fn every_command_gives_up_on_a_head_that_is_not_there_or_never_answers() {
    let cluster = Cluster::start(0, 1, &[]);
    // Nothing answers here, though the port is taken.
    let nobody = UdpSocket::bind("127.0.0.1:0").expect("a port");
    let nobody = nobody.local_addr().expect("an address").to_string();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .expect("a runtime");
    let credentials = Credentials::load(&cluster.folder.path().join("pki/head")).expect("credentials");
    let listener = runtime.block_on(async {
        Listener::bind("127.0.0.1:0".parse().expect("an address"), credentials).expect("it listens")
    });
    let mute = listener.address().expect("an address").to_string();
    runtime.spawn(async move {
        let mut peers = Vec::new();
        // Accepts everybody, and never says a word.
        while let Some(arrival) = listener.accept().await {
            peers.push(arrival.admit().await);
        }
    });
    let commands: [&[&str]; 6] = [
        &["jobs"],
        &["top", "--once"],
        &["submit", "--", "/bin/true"],
        &["events", "--follow"],
        &["drain", "node0"],
        &["whatif", "-p", "fifo"],
    ];
    for command in commands {
        let error = complaint(&cluster, &nobody, command);
        assert!(error.contains("cannot be reached"), "{command:?}: {error}");
        let error = complaint(&cluster, &mute, command);
        assert!(error.contains("has not answered"), "{command:?}: {error}");
    }
}
