//! The policy: its texts, and what another one would do.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// A policy.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub(crate) struct PolicyPage {
    /// Its name, parts joined by `+`.
    pub(crate) name: String,
    /// Its parameters as they were set.
    pub(crate) set: Vec<(String, String)>,
    /// Why a changed text of its scripts is not used; empty if there is none.
    pub(crate) refused: String,
    /// Why it does not decide; empty if it does.
    pub(crate) trouble: String,
    /// Its scripts.
    pub(crate) parts: Vec<PartShape>,
}

/// A script of a policy.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub(crate) struct PartShape {
    /// As the policy's name has it.
    pub(crate) name: String,
    /// Where it came from.
    pub(crate) file: String,
    /// Whether it is built in.
    pub(crate) is_shipped: bool,
    /// Its text.
    pub(crate) text: String,
}

/// The scripts that are built in.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub(crate) struct ShippedScripts {
    /// In the order of the documents.
    pub(crate) scripts: Vec<ShippedShape>,
}

/// A script that is built in.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub(crate) struct ShippedShape {
    /// Its name.
    pub(crate) name: String,
    /// What it is for, such as `policies` or `allocation`.
    pub(crate) role: String,
    /// What it does.
    pub(crate) summary: String,
}

/// A policy to be tried or used.
#[derive(Clone, Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct PolicyChoice {
    /// Its name, parts joined by `+`; no paths.
    #[schema(max_length = 4096)]
    pub(crate) policy: String,
    /// Parameters and their values.
    #[serde(default)]
    pub(crate) set: Vec<(String, String)>,
    /// Names (ending in `.rhai`) and texts of scripts that come with the request.
    #[serde(default)]
    pub(crate) texts: Vec<(String, String)>,
}

/// What another policy would do now.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub(crate) struct WouldShape {
    /// A line for each job that it would change.
    pub(crate) text: String,
    /// The same by job.
    pub(crate) changes: Vec<WouldChange>,
}

/// What another policy would do with a job.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub(crate) struct WouldChange {
    /// The job.
    pub(crate) job: u32,
    /// start, stop, resize or move.
    pub(crate) what: &'static str,
    /// GPUs that it holds.
    pub(crate) gpus_from: u32,
    /// GPUs that it would hold.
    pub(crate) gpus_to: u32,
    /// Nodes that it would be on.
    pub(crate) nodes: Vec<String>,
}
