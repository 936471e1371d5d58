//! Jobs under the accounts of their submitters, with real accounts: rights, groups, environment, folders, and refusals.
//!
//! Needs root, who can make accounts; tests are skipped for others.

mod common;

use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::Path;
use std::process::Command;

use common::{Launched, spec};
use rota_agent::launch::account::RunAs;
use rota_agent::launch::spec::LaunchSpec;
use rota_agent::shim::record::{ExitCause, ExitHow};
use rota_test_support::accounts::Accounts;

/// A launch as an account of this machine.
fn as_account(name: &str, script: &str) -> LaunchSpec {
    let mut launch = spec(script);
    launch.run_as = RunAs::Account { name: name.to_owned(), is_listed: false };
    launch.directory = "/".into();
    launch.makes_checkpoint_dir = true;
    launch
}

fn run(launch: LaunchSpec) -> (ExitHow, ExitCause, String, Launched) {
    let mut launched = Launched::new(launch);
    let (exit, _) = launched.end();
    (exit.how, exit.cause, launched.log(), launched)
}

#[test]
fn a_job_has_its_accounts_rights_groups_and_environment_and_no_more() {
    let Some(accounts) = Accounts::make(2) else { return };
    let (name, other) = (accounts.name(0), accounts.name(1));
    let (uid, gid) = accounts.ids(0);
    let joined = Command::new("usermod").args(["--append", "--groups", other, name]).status();
    assert!(joined.expect("usermod runs").success());
    let (_, other_gid) = accounts.ids(1);
    let script = "id -u; id -g; id -G; pwd; echo $HOME $USER $LOGNAME $SHELL; umask; touch mine
        grep -E 'NoNewPrivs|CapEff|CapPrm' /proc/self/status | tr '\\t' ' '
        echo to the terminal > /dev/stderr
        touch $ROTA_CHECKPOINT_DIR/kept && [ -w $ROTA_JOB_SOCKET ] && echo reaches both
        ls $ROTA_RUN_DIR || ls $ROTA_RUN_DIR/attempts || cat $ROTA_RUN_DIR/attempts/7.1/launch.json";
    let mut launch = as_account(name, script);
    launch.directory = accounts.home(0);
    let (how, cause, log, launched) = run(launch);
    assert_eq!((how, cause), (ExitHow::Code(1), ExitCause::Itself), "{log}");
    let home = accounts.home(0);
    let shown = home.display();
    let expected = format!(
        "{uid}\n{gid}\n{gid} {other_gid}\n{shown}\n{shown} {name} {name} /bin/sh\n0022\n\
         CapPrm: 0000000000000000\nCapEff: 0000000000000000\nNoNewPrivs: 1\nto the terminal\nreaches both\n"
    );
    assert!(log.starts_with(&expected), "{log}\nshould begin with\n{expected}");
    assert_eq!(log.matches("Permission denied").count(), 3, "{log}");
    for path in [home.join("mine"), launched.run_dir.path().join("checkpoints/kept")] {
        assert_eq!(std::fs::metadata(&path).expect("there").uid(), uid, "{}", path.display());
    }
    let checkpoints = std::fs::metadata(launched.run_dir.path().join("checkpoints")).expect("there");
    assert_eq!((checkpoints.uid(), checkpoints.permissions().mode() & 0o777), (uid, 0o700));
}

#[test]
fn a_job_without_an_account_is_refused_and_nothing_runs_as_root() {
    let Some(_root) = Accounts::make(1) else { return };
    for (name, word) in [("no-such-account", "there is no account"), ("root", "no job runs as root")] {
        let (how, cause, log, _launched) = run(as_account(name, "id -u"));
        let ExitHow::NotStarted(why) = how else { panic!("{name}: {how:?} {log}") };
        assert_eq!(cause, ExitCause::Refused, "{why}");
        assert!(why.as_str().contains(word) && log.is_empty(), "{why} {log}");
    }
    // The agent's rules, such as its table, refuse in the same way.
    let mut launch = spec("id -u");
    launch.run_as = RunAs::Nobody { why: "eve has no account on this node".to_owned() };
    let (how, cause, _, _launched) = run(launch);
    assert_eq!(cause, ExitCause::Refused, "{how:?}");
}

#[test]
fn a_folder_that_the_account_may_not_enter_is_named_and_not_entered() {
    let Some(accounts) = Accounts::make(2) else { return };
    for folder in [accounts.home(1), "/no/such/folder".into()] {
        let mut launch = as_account(accounts.name(0), "pwd; ls");
        launch.directory.clone_from(&folder);
        let (how, cause, log, _launched) = run(launch);
        let ExitHow::NotStarted(why) = how else { panic!("{how:?} {log}") };
        let named = format!("{}: cannot be used as `{}`", folder.display(), accounts.name(0));
        assert!(why.as_str().contains(&named) && cause == ExitCause::Itself, "{why}");
        assert!(!Path::new("/no").exists(), "and nothing is made as root");
    }
}

#[test]
fn a_copied_checkpoint_becomes_the_accounts_and_one_of_another_account_stays_closed() {
    let Some(accounts) = Accounts::make(2) else { return };
    let shared = tempfile::tempdir().expect("a folder");
    std::fs::set_permissions(shared.path(), std::fs::Permissions::from_mode(0o711)).expect("set");
    let folder = shared.path().join("7");
    std::fs::create_dir_all(folder.join("deep")).expect("made");
    std::fs::write(folder.join("deep/step"), "41").expect("written");
    let secret = shared.path().join("secret");
    std::fs::write(&secret, "root's").expect("written");
    std::os::unix::fs::symlink(&secret, folder.join("link")).expect("linked");
    let launch = |index: usize| {
        let mut launch = as_account(
            accounts.name(index),
            "cd $ROTA_CHECKPOINT_DIR && echo 42 > deep/step && cat deep/step",
        );
        launch.checkpoint_dir.clone_from(&folder);
        launch
    };
    let (how, _, log, _launched) = run(launch(0));
    assert_eq!((how, log.as_str()), (ExitHow::Code(0), "42\n"));
    assert_eq!(std::fs::metadata(&secret).expect("there").uid(), 0, "links are not followed");
    let (how, _, log, _launched) = run(launch(1));
    let ExitHow::NotStarted(why) = how else { panic!("{how:?} {log}") };
    assert!(why.as_str().contains("belongs to account"), "{why}");
}

#[test]
fn ranks_of_an_account_die_with_their_shim() {
    let Some(accounts) = Accounts::make(1) else { return };
    let mut launched = Launched::new(as_account(accounts.name(0), "echo up; exec sleep 600"));
    common::eventually("the rank runs", || launched.log().contains("up").then_some(()));
    let mark = format!("7.1@{}", launched.run_dir.path().canonicalize().expect("there").display());
    let alive = || rota_agent::launch::survivors::marked(&mark).len();
    assert_eq!(alive(), 1);
    launched.shim.kill().expect("killed");
    launched.shim.wait().expect("ended");
    common::eventually("nothing is left", || (alive() == 0).then_some(()));
}
