//! The scripts that come with Rota, built into the program, and the names they answer to.

use crate::policy::part::header;

/// What a shipped script is for; also its folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Role {
    /// Orders, and policies that decide everything.
    Policy,
    /// Which jobs are admitted.
    Admission,
    /// How much each job gets.
    Allocation,
    /// On which GPUs jobs run.
    Placement,
    /// Models that verbs ask for.
    Model,
    /// Batches of runs.
    Study,
}

impl Role {
    /// The folder below `scripts/`.
    pub const fn folder(self) -> &'static str {
        match self {
            Role::Policy => "policies",
            Role::Admission => "admission",
            Role::Allocation => "allocation",
            Role::Placement => "placement",
            Role::Model => "models",
            Role::Study => "studies",
        }
    }
}

/// A script that comes with Rota.
#[derive(Clone, Copy, Debug)]
pub struct Shipped {
    /// What it is for.
    pub role: Role,
    /// Its name in policy names.
    pub name: &'static str,
    /// Where it is written, from the folder `scripts/`.
    pub file: &'static str,
    /// The text of the script, header included.
    pub source: &'static str,
}

impl Shipped {
    /// The first sentence of its header.
    pub fn summary(&self) -> String {
        let header = header(self.source).replace('\n', " ");
        let text = header.split_once(": ").map_or(header.as_str(), |(_, text)| text);
        text.split_inclusive(". ").next().unwrap_or(text).trim().to_owned()
    }
}

macro_rules! shipped {
    ($(#[$doc:meta])* $table:ident $($role:ident $folder:literal: $($name:literal)*;)*) => {
        $(#[$doc])*
        pub const $table: &[Shipped] = &[$($(Shipped {
            role: Role::$role,
            name: $name,
            file: concat!($folder, "/", $name, ".rhai"),
            source: include_str!(concat!("../../", $folder, "/", $name, ".rhai")),
        }),*),*];
    };
}

shipped! {
    /// Every policy, and part of one, that comes with Rota.
    ALL
    Policy "policies": "fifo" "srtf" "srsf" "las" "ftf" "drf" "tetris"
        "gavel-maxmin" "gavel-las" "gavel-maxmin-packed" "gavel-water-filling" "gavel-finish-time" "gavel-makespan"
        "gavel-throughput" "gavel-fifo" "gavel-isolated" "gandiva-fair" "gavel-proportional" "allox" "gandiva-packing"
        "elasticflow" "elasticflow-opt" "elasticflow-open" "edf" "gandiva" "tiresias" "tiresias-gittins" "themis"
        "chronus" "chronus-deadlines" "just-in-time" "no-preempt" "optimus" "easy-backfill" "conservative-backfill"
        "fair-share" "mlfq" "srsf-aging";
    Admission "admission": "elasticflow-admission" "edf-admission" "chronus-admission" "quota" "load-limit";
    Allocation "allocation": "proportional" "greedy" "tune" "opt";
    Placement "placement": "first-fit" "consolidate" "local-data" "switch-consolidate" "switch-splits" "random" "local-search"
        "spread" "fgd";
    Model "models": "level-model" "lease-model";
}

shipped! {
    /// Every study that comes with Rota.
    STUDIES
    Study "studies": "loads" "saturation" "precise" "estimates" "profile-error" "data-locality"
        "synergy-1" "synergy-6" "synergy-7" "synergy-8" "synergy-9" "synergy-10" "synergy-11" "synergy-12"
        "elasticflow-6a" "elasticflow-6b" "elasticflow-7" "elasticflow-8a" "elasticflow-8b" "elasticflow-9"
        "elasticflow-10" "elasticflow-11" "elasticflow-order" "deadlines" "tune";
}

/// What admission or a model by itself is joined to: (it, the parts that keep what it promises or ask for it).
const COMPLETED_BY: &[(&str, &[&str])] = &[
    ("edf-admission", &["edf"]),
    ("elasticflow-admission", &["elasticflow:allocate", "elasticflow:place"]),
    ("level-model", &["opt"]),
    ("lease-model", &["chronus"]),
];

/// The parts that a part by itself is joined to; none for nearly all.
pub(crate) fn rest_of(name: &str) -> Option<&'static [&'static str]> {
    COMPLETED_BY.iter().find(|(part, _)| *part == name).map(|(_, rest)| *rest)
}

/// Names of the original programs: (theirs, ours).
const ALIASES: &[(&str, &str)] = &[
    ("fair", "proportional"),
    ("place", "consolidate"),
    ("firstfit", "first-fit"),
    ("ef-accessctrl", "elasticflow"),
    ("ef", "elasticflow-open"),
    ("edf-accessctrl", "edf-admission"),
    ("dlas-gpu", "tiresias"),
    ("time-aware-with-lease", "chronus"),
    ("local_search", "local-search"),
    ("consolidate_random", "switch-splits"),
];

/// A shipped script by its name, whatever its case, or by an original program's name for it.
pub fn find(name: &str) -> Option<&'static Shipped> {
    let lower = name.to_lowercase();
    let name = ALIASES.iter().find(|(theirs, _)| *theirs == lower).map_or(lower.as_str(), |(_, ours)| ours);
    ALL.iter().find(|script| script.name == name)
}
