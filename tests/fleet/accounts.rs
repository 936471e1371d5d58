//! Jobs under their submitters' accounts, from `rota submit` to their output: real accounts, a head and agents of root's.

use std::os::unix::fs::MetadataExt as _;

use rota_test_support::accounts::Accounts;

use crate::cluster::Cluster;

fn log_of(cluster: &Cluster, job: &str) -> String {
    cluster.try_rota(&["logs", job]).unwrap_or_default()
}

#[test]
fn jobs_run_as_their_submitters_and_a_user_without_an_account_is_refused_once() {
    let Some(accounts) = Accounts::make(2) else { return };
    let (anna, bert) = (accounts.name(0), accounts.name(1));
    // No machine that this runs on has an account of this name, whoever else works there.
    let nobody = "rota-test-without-account";
    let folder = tempfile::tempdir().expect("a folder");
    let table = folder.path().join("accounts");
    std::fs::write(&table, format!("carl {bert}\ndora none\n")).expect("written");
    let cluster = Cluster::start_with_accounts(2, 2, &["--accounts", table.to_str().expect("a path")]);
    for user in [anna, "carl", "dora", nobody] {
        cluster.issue(user, "submit");
    }
    let home = accounts.home(0).display().to_string();
    let run = |user: &str, args: &[&str]| {
        cluster.try_rota_as(user, &[&["submit"][..], args].concat()).expect("submitted")
    };
    let script = "id -un; pwd; echo $HOME; echo secret; echo mine > made; exec sleep 600";
    run(anna, &["--workdir", &home, "--", "/bin/sh", "-c", script]);
    cluster.until("anna's job has written", |cluster| log_of(cluster, "0").contains("secret"));
    assert_eq!(log_of(&cluster, "0"), format!("{anna}\n{home}\n{home}\nsecret\n"));
    let made = std::fs::metadata(accounts.home(0).join("made")).expect("written");
    assert_eq!((made.uid(), made.gid()), accounts.ids(0));
    // Another user's job reads neither her output, nor the agents' folders, nor the home.
    let (node0, node1) = (cluster.path("node0"), cluster.path("node1"));
    let look = format!(
        "id -un; cat {node0}/attempts/0.1/log {node1}/attempts/0.1/log; ls {node0} {node1} {home}; \
         cat {node0}/fence.jsonl; kill -9 $(pgrep -u {anna}) ; true"
    );
    run("carl", &["--workdir", "/", "--wait", "--", "/bin/sh", "-c", &look]);
    let seen = log_of(&cluster, "1");
    assert!(seen.starts_with(&format!("{bert}\n")) && !seen.contains("secret"), "{seen}");
    assert!(seen.matches("Permission denied").count() >= 6, "{seen}");
    assert_eq!(cluster.jobs()[0]["state"], "running", "and cannot end her job");
    // Emulated jobs are processes, too: under the account, with its folders.
    run("carl", &["--emulate", "--gpus", "1", "--iterations", "1", "--wait"]);
    // Whoever has no account is refused at once, once, and told why; gangs as well.
    let unknown = format!("there is no account `{nobody}`");
    for (user, word) in [(nobody, unknown.as_str()), ("dora", "dora has no account on this node")] {
        for gpus in ["1", "3"] {
            let args = ["submit", "--workdir", "/", "--gpus", gpus, "--wait", "--", "/bin/sh", "-c", "id -u"];
            let error = cluster.try_rota_as(user, &args).expect_err("refused");
            assert!(error.contains(word), "{error}");
            let jobs = cluster.jobs();
            let last = jobs.last().expect("a job");
            assert_eq!(
                (&last["state"], last["incarnation"].as_u64()),
                (&"failed".into(), Some(1)),
                "{last:#}"
            );
        }
    }
    let explained = cluster.try_rota_as(nobody, &["explain", "3"]).expect("explained");
    assert!(explained.contains(&unknown), "{explained}");
}
