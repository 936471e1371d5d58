//! Scenarios: a small cluster, a few jobs, a policy, and which jobs run with what at each round, as text a person can read.
//!
//! ```text
//! scenario: the short job overtakes
//! cluster 1 nodes, 2 gpus, 6 cpus, 100 GB
//! job long gpus=2 work=900
//! job short gpus=2 work=300 at=300
//! policy srtf+proportional
//! rounds 2
//! ----
//! 0: long 0[0-1] 6c 100g
//! 300: short 0[0-1] 6c 100g | waits long
//! ```
//! `cpus=1:0.4,3:1,9:2.4` gives a job's speed by its CPUs for each GPU, `mem=` the same for memory; the scarcer decides.
//!
//! A run of this is the truth to compare with; `UPDATE_EXPECT=1` in tests writes it into the file.

mod error;
mod needs;
mod parse;
mod run;

pub use error::{LineError, ScenarioError};
pub use parse::{Scenario, parse};
pub use run::{Report, run};

/// The scenarios written in a script's comments: blocks of `//` lines that begin with `scenario:`.
pub fn of_script(source: &str) -> String {
    let mut text = String::new();
    let mut is_inside = false;
    for line in source.lines() {
        let comment = line.trim_start().strip_prefix("//").map(|c| c.strip_prefix(' ').unwrap_or(c));
        is_inside = comment.is_some_and(|c| is_inside || c.starts_with("scenario:"));
        if let Some(comment) = comment.filter(|_| is_inside) {
            text.push_str(comment);
            text.push('\n');
        }
    }
    text
}
