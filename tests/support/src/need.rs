//! Things that a machine may lack: each function returns what it found, or records that the calling test did not run.
//!
//! A test asks first and returns when there is nothing:
//!
//! ```ignore
//! let Some(shared) = need::shared() else { return };
//! ```
//!
//! A skip is one line in the file named by `ROTA_SKIPS`; `./dev test` sets it and lists the lines at the end. With
//! `ROTA_REQUIRE=all`, or a list such as `podman,numpy` or `all,-shared`, a required thing that is missing fails the test.
//! What is there but refused by the sandbox (containers without namespaces, say) is always a skip, with the reason that
//! trying it gave: nothing that can be installed would help.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::skips;

/// Something a test needs, by the name that `ROTA_REQUIRE` uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Thing {
    /// Traces and golden cases of the original programs, which are not part of this repository.
    Shared,
    /// podman, runc and a static busybox.
    Podman,
    /// munged, slurmctld, slurmd and the commands that go with them.
    Slurm,
    /// A browser.
    Chromium,
    /// Python 3.
    Python,
    /// Python 3 with numpy.
    Numpy,
    /// Python 3 with pandas and polars, what notebooks read tables with.
    Dataframes,
    /// A generator of Python clients from OpenAPI documents.
    OpenapiClient,
    /// Prometheus and its promtool.
    Prometheus,
    /// A C compiler.
    Compiler,
    /// Control groups that this user may create.
    Cgroups,
    /// Root, who can make accounts with useradd.
    Accounts,
    /// Two CPUs.
    Cpus,
    /// Minutes: the long tier, `ROTA_FULL=1`. Not part of `ROTA_REQUIRE=all`.
    Time,
}

impl Thing {
    /// Every thing there is.
    pub const ALL: [Thing; 14] = [
        Thing::Shared,
        Thing::Podman,
        Thing::Slurm,
        Thing::Chromium,
        Thing::Python,
        Thing::Numpy,
        Thing::Dataframes,
        Thing::OpenapiClient,
        Thing::Prometheus,
        Thing::Compiler,
        Thing::Cgroups,
        Thing::Accounts,
        Thing::Cpus,
        Thing::Time,
    ];

    /// As `ROTA_REQUIRE` has it.
    pub fn name(self) -> &'static str {
        match self {
            Thing::Shared => "shared",
            Thing::Podman => "podman",
            Thing::Slurm => "slurm",
            Thing::Chromium => "chromium",
            Thing::Python => "python",
            Thing::Numpy => "numpy",
            Thing::Dataframes => "dataframes",
            Thing::OpenapiClient => "openapi-client",
            Thing::Prometheus => "prometheus",
            Thing::Compiler => "compiler",
            Thing::Cgroups => "cgroups",
            Thing::Accounts => "accounts",
            Thing::Cpus => "cpus",
            Thing::Time => "time",
        }
    }
}

/// Why a thing cannot be used, in words that fit after "the test did not run:".
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Lack {
    /// It is not there, and could be.
    Missing(String),
    /// It is there, was tried, and this machine does not allow it.
    Refused(String),
}

/// What was found; otherwise records the skip, or fails the test when the thing is required.
///
/// # Panics
/// If the thing is missing and `ROTA_REQUIRE` asks for it.
pub fn found<T>(thing: Thing, result: Result<T, Lack>) -> Option<T> {
    match result {
        Ok(found) => Some(found),
        Err(Lack::Missing(why)) => {
            assert!(!skips::is_required(thing), "ROTA_REQUIRE asks for {}, but {why}", thing.name());
            skips::record(&why);
            None
        }
        Err(Lack::Refused(why)) => {
            skips::record(&why);
            None
        }
    }
}

/// The folder of public traces and golden cases: `$ROTA_SHARED`, else `shared` next to the checkout.
pub fn shared() -> Option<PathBuf> {
    found(Thing::Shared, shared_folder())
}

/// A file or folder in [`shared`].
pub fn shared_path(path: &str) -> Option<PathBuf> {
    let there = shared_folder().map(|folder| folder.join(path)).and_then(|found| {
        if found.exists() {
            Ok(found)
        } else {
            Err(Lack::Missing(format!("{path} is not in the folder of public files (ROTA_SHARED)")))
        }
    });
    found(Thing::Shared, there)
}

fn shared_folder() -> Result<PathBuf, Lack> {
    let next_to_checkout = || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared");
    let folder = std::env::var_os("ROTA_SHARED").map_or_else(next_to_checkout, PathBuf::from);
    match folder.canonicalize() {
        Ok(folder) if folder.is_dir() => Ok(folder),
        _ => Err(Lack::Missing(
            "the public traces and golden cases are not here (ROTA_SHARED, default ../shared)".to_owned(),
        )),
    }
}

/// A browser: `$CHROMIUM`, or one of the usual names.
pub fn chromium() -> Option<PathBuf> {
    let named = std::env::var_os("CHROMIUM").map(PathBuf::from);
    let usual = ["chromium", "chromium-browser", "google-chrome"].map(PathBuf::from);
    let browser = named.into_iter().chain(usual).find(|path| succeeds(Command::new(path).arg("--version")));
    found(Thing::Chromium, browser.ok_or_else(|| Lack::Missing("Chromium is not installed".to_owned())))
}

/// Python 3: `$ROTA_PYTHON`, or `python3`.
pub fn python() -> Option<String> {
    let python = python_name();
    let works = succeeds(Command::new(&python).arg("--version"));
    found(
        Thing::Python,
        if works { Ok(python) } else { Err(Lack::Missing("python3 is not installed".to_owned())) },
    )
}

/// The same with numpy. Debian's package is for the system's Python, which need not be the first on the path.
pub fn numpy() -> Option<String> {
    let has_numpy = |python: &String| succeeds(Command::new(python).args(["-c", "import numpy"]));
    let python = [python_name(), "/usr/bin/python3".to_owned()].into_iter().find(has_numpy);
    let missing = || Lack::Missing("Python has no numpy (ROTA_PYTHON names another Python)".to_owned());
    found(Thing::Numpy, python.ok_or_else(missing))
}

/// The same with pandas, pyarrow and polars: the environment that `./dev setup tests` makes, or any Python that has them.
pub fn dataframes() -> Option<String> {
    let made = made_environment().join("bin/python").display().to_string();
    let has_them =
        |python: &String| succeeds(Command::new(python).args(["-c", "import pandas, pyarrow, polars"]));
    let python = [made, python_name()].into_iter().find(has_them);
    let missing = || Lack::Missing("Python has no pandas, pyarrow and polars (./dev setup tests)".to_owned());
    found(Thing::Dataframes, python.ok_or_else(missing))
}

/// `openapi-python-client` in the environment that `./dev setup tests` makes; the environment's folder.
pub fn openapi_client() -> Option<PathBuf> {
    let made = made_environment();
    let works = succeeds(Command::new(made.join("bin/openapi-python-client")).arg("--version"));
    let missing = || Lack::Missing("there is no openapi-python-client (./dev setup tests)".to_owned());
    found(Thing::OpenapiClient, if works { Ok(made) } else { Err(missing()) })
}

/// `prometheus` and `promtool`.
pub fn prometheus() -> Option<()> {
    let works = ["prometheus", "promtool"].iter().all(|name| succeeds(Command::new(name).arg("--version")));
    let missing = || Lack::Missing("Prometheus and its promtool are not installed".to_owned());
    found(Thing::Prometheus, if works { Ok(()) } else { Err(missing()) })
}

/// The environment of Python that `./dev setup tests` makes.
fn made_environment() -> PathBuf {
    let target = std::env::var_os("CARGO_TARGET_DIR").map(PathBuf::from);
    target.unwrap_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target")).join("test-venv")
}

/// The C compiler `cc`.
pub fn compiler() -> Option<&'static str> {
    let works = succeeds(Command::new("cc").arg("--version"));
    let missing = || Lack::Missing("there is no C compiler `cc`".to_owned());
    found(Thing::Compiler, if works { Ok("cc") } else { Err(missing()) })
}

/// At least two CPUs; how many there are.
pub fn two_cpus() -> Option<usize> {
    let n_cpus = std::thread::available_parallelism().map_or(1, usize::from);
    let refused = || Lack::Refused("this machine has one CPU, the test compares one with two".to_owned());
    found(Thing::Cpus, if n_cpus >= 2 { Ok(n_cpus) } else { Err(refused()) })
}

/// Whether this user may ask the kernel to spare processes when memory runs out, as units of systemd do.
pub fn spared(score: &str) -> Option<()> {
    let mut command = Command::new("/bin/sh");
    command.args([
        "-c",
        &format!("echo {score} > /proc/self/oom_score_adj && grep -qx -- {score} /proc/self/oom_score_adj"),
    ]);
    let refused = || Lack::Refused("this machine lets nobody lower oom_score_adj".to_owned());
    found(Thing::Accounts, if succeeds(&mut command) { Ok(()) } else { Err(refused()) })
}

/// Whether this is the long tier, `ROTA_FULL=1`; otherwise the test is left to it, with the time it takes.
pub fn long_tier(takes: &str) -> bool {
    let missing = || Lack::Missing(format!("left to the long tier, ./dev full ({takes})"));
    found(Thing::Time, if is_long_tier() { Ok(()) } else { Err(missing()) }).is_some()
}

/// Whether this is the long tier, for tests that do more of the same there.
pub fn is_long_tier() -> bool {
    std::env::var_os("ROTA_FULL").is_some()
}

/// The agent's program, which Cargo builds next to `rota`.
///
/// # Panics
/// If it is not built. A test of the package `rota` alone does not build it, and a test without it would show nothing.
pub fn agent(rota: &str) -> PathBuf {
    let agent = Path::new(rota).with_file_name("rota-agent");
    assert!(
        agent.exists(),
        "{} is not built: run `cargo build --release -p rota-agent`, or `./dev test`, which builds it",
        agent.display()
    );
    agent
}

fn python_name() -> String {
    std::env::var("ROTA_PYTHON").unwrap_or_else(|_| "python3".to_owned())
}

fn succeeds(command: &mut Command) -> bool {
    let quiet = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    quiet.status().is_ok_and(|status| status.success())
}
