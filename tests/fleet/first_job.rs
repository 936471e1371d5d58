//! docs/first-job.md, followed by an operator and an ordinary user with certificates and accounts of their own. Commands come from
//! the document; only names, the head's address and the GPUs, which are emulated, are replaced.

use std::os::unix::fs::{PermissionsExt as _, chown};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rota_test_support::accounts::Accounts;
use rota_test_support::need;
use rota_test_support::ports::free_port;

const PATIENCE: Duration = Duration::from_secs(120);
const TRAIN: &str = "import os, pwd\n\
    print(pwd.getpwuid(os.getuid()).pw_name, os.getcwd(), 'rank', os.environ['RANK'], 'of', os.environ['WORLD_SIZE'])\n";

/// The commands of a section, as the document has them.
fn commands(section: &str) -> Vec<String> {
    let text = include_str!("../../docs/first-job.md");
    let (_, after) = text.split_once(&format!("\n## {section}")).expect("the section");
    let part = after.split("\n## ").next().unwrap_or_default();
    let block = part.split("```").nth(1).expect("a block of commands");
    block.lines().map(str::trim).filter(|line| !line.is_empty()).map(str::to_owned).collect()
}

/// A shell in a folder, as root or as an account.
fn shell(folder: &Path, account: Option<(u32, u32)>, command: &str) -> Command {
    let programs = Path::new(env!("CARGO_BIN_EXE_rota")).parent().expect("a folder");
    let mut shell = Command::new("/bin/sh");
    shell.args(["-c", command]).current_dir(folder).stdin(Stdio::null()).env_clear();
    shell.env("PATH", format!("{}:/usr/local/bin:/usr/bin:/bin", programs.display())).env("HOME", folder);
    if let Some((uid, gid)) = account {
        shell.uid(uid).gid(gid);
    }
    shell
}

fn run(folder: &Path, account: Option<(u32, u32)>, command: &str) -> Result<String, String> {
    let output = shell(folder, account, command).output().expect("a shell");
    let said = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    match output.status.success() {
        true => Ok(said(&output.stdout)),
        false => Err(format!("{command}: {}{}", said(&output.stdout), said(&output.stderr))),
    }
}

/// Daemons that end with the test.
struct Daemons(Vec<Child>);

impl Daemons {
    fn start(&mut self, folder: &Path, command: &str) {
        let log = std::fs::File::options().create(true).append(true).open(folder.join("log")).expect("a log");
        let errors = log.try_clone().expect("a log");
        let mut shell = shell(folder, None, &format!("exec {command}"));
        self.0.push(shell.stdout(log).stderr(errors).spawn().expect("it starts"));
    }
}

impl Drop for Daemons {
    fn drop(&mut self) {
        for child in &mut self.0 {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let limit = Instant::now() + PATIENCE;
    while !holds() {
        assert!(Instant::now() < limit, "timed out waiting for: {what}");
        std::thread::sleep(Duration::from_millis(100));
    }
}

/// Copies a folder of credentials as `scp -p` would, for its owner.
fn copy_credentials(from: &Path, to: &Path, owner: (u32, u32)) {
    std::fs::create_dir_all(to).expect("made");
    for entry in std::fs::read_dir(from).expect("issued").flatten() {
        let path = to.join(entry.file_name());
        std::fs::copy(entry.path(), &path).expect("copied");
        chown(&path, Some(owner.0), Some(owner.1)).expect("owned");
    }
    for folder in to.ancestors().take(3) {
        chown(folder, Some(owner.0), Some(owner.1)).expect("owned");
    }
}

#[test]
fn the_first_job_of_an_ordinary_user_runs_under_their_account_and_an_operator_looks_after_it() {
    let Some(accounts) = Accounts::make(2) else { return };
    if need::python().is_none() {
        return;
    }
    let (ada, olga) = (accounts.name(0), accounts.name(1));
    let address = format!("127.0.0.1:{}", free_port());
    let here = |text: &str| text.replace("ada", ada).replace("olga", olga).replace("head:4433", &address);
    let server = tempfile::tempdir().expect("a folder");
    let folder = server.path();
    std::fs::set_permissions(folder, std::fs::Permissions::from_mode(0o711)).expect("set");
    for command in commands("2. Certificates") {
        run(folder, None, &here(&command)).expect("certificates");
    }
    let mut daemons = Daemons(Vec::new());
    for command in commands("4. The head") {
        daemons.start(folder, &format!("{command} --listen {address} --round 1s"));
    }
    // What the unit file starts, with emulated GPUs.
    let agent = |name: &str| {
        format!(
            "--head {address} --identity pki/agents/{name} --run-dir {name} --emulate-gpus 2 --emulate-cpus 4 --memory 8GB"
        )
    };
    for name in ["gpu1", "gpu2"] {
        for command in commands("3. Is each server ready?") {
            let check = here(&command).replace(&format!("--head {address}"), &agent(name));
            until("the server is ready", || run(folder, None, &check).is_ok());
            let verdicts = run(folder, None, &check).expect("ready");
            assert!(verdicts.contains("jobs run as the accounts of their submitters"), "{verdicts}");
        }
        daemons.start(folder, &format!("rota-agent {} --address 127.0.0.1", agent(name)));
    }
    for (index, name) in [ada, olga].into_iter().enumerate() {
        let credentials = Path::new("pki/users").join(name);
        let home = accounts.home(index);
        copy_credentials(&folder.join(&credentials), &home.join(&credentials), accounts.ids(index));
    }
    let home = accounts.home(0);
    std::fs::write(home.join("train.py"), TRAIN).expect("written");
    let known = |name: &str| format!("export ROTA_HEAD={address} ROTA_CREDENTIALS=pki/users/{name};");
    let as_ada = |command: &str| run(&home, Some(accounts.ids(0)), &format!("{} {command}", known(ada)));
    let as_olga =
        |command: &str| run(&accounts.home(1), Some(accounts.ids(1)), &format!("{} {command}", known(olga)));
    until("both servers are up", || {
        as_ada("rota nodes").is_ok_and(|nodes| nodes.matches(" up").count() == 2)
    });
    let block = commands("6. The first job").join("\n");
    let said = run(&home, Some(accounts.ids(0)), &here(&block)).expect("the first job");
    for rank in ["rank 0 of 2", "rank 1 of 2"] {
        assert!(said.contains(&format!("{ada} {} {rank}", home.display())), "{rank}: {said}");
    }
    // The operator sees the job and may drain; its owner sees it, and may not.
    assert!(as_olga("rota jobs --all").expect("listed").contains(ada));
    let refused = as_ada("rota drain gpu1").expect_err("only operators drain");
    assert!(refused.contains("the role operate is needed"), "{refused}");
    as_olga("rota drain gpu1").expect("drained");
    assert!(as_ada("rota nodes").expect("nodes").contains("drain"));
}
