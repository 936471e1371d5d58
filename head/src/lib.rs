//! The head: the scheduler of a live cluster.
//!
//! ```text
//!  agents ─┐                       ┌─ decider        the policy decides, in a process of its own
//!          ├─ serve ─▶ engine ─────┤
//!  users ──┘   ▲         │         └─ state ─ cluster_state   what the journal's records add up to
//!              └─────────┤                 ├─ launches        what may be alive on nodes, rank by rank
//!                      store               └─ agents          a session with each
//! ```
//!
//! `run` starts a head, `engine` is its loop: it writes to the `store` (SQLite) before anything leaves. `record` is what
//! is written, `upkeep` keeps the journal short, `ancestry` is where the state comes from, `rules` what decisions depend on besides events, `roles` who may what, `clock` the only clock, `pace` how fast jobs are against
//! their profiles. Away from a live head, `replay` reads a journal and asks a policy again, `backup` copies a state while its head runs, `fsck` examines and repairs one, `scribe` writes a journal, `ledger` turns one into the
//! ledger of a run, `recorded` into a trace, `changes` into what changes of
//! allocations cost. Sessions and the wire are in `rota-transport`, a round's decision is
//! `rota_core::round`, policies are scripts. `web` is the door for browsers and programs, `forecast` the present state simulated ahead,
//! `meters` what the head measures about itself.

mod ancestry;
pub mod backup;
pub mod changes;
mod clock;
mod cluster_state;
mod crowd;
mod decider;
mod engine;
mod error;
pub mod forecast;
pub mod fsck;
mod joining;
pub mod ledger;
mod meters;
pub mod pace;
mod record;
pub mod recorded;
pub mod replay;
mod roles;
mod rules;
mod run;
pub mod scribe;
mod serve;
mod settings;
mod state;
mod store;
mod upkeep;
mod web;

pub use cluster_state::{
    Applied, ClusterState, CurrentPolicy, Image, ImageError, JobLife, JobRecord, OnHold, Standing,
};
pub use decider::{ChildError, DecideError, PolicyFailure, PolicyUseError, serve_decisions};
pub use error::{HeadError, ReplayError};
pub use record::{NodeHas, PlanRecord, Record, WakeRecord};
pub use roles::RolesError;
pub use rules::{ProfileText, Rules};
pub use run::run;
pub use settings::{HeadSettings, PersonLimits};
pub use store::history::{EndedJob, EventFilter, HistoryFilter, OldEvent, Reader};
pub use store::images::KeepJournal;
pub use store::{Store, StoreError, UnreadableImage, read_journal};
pub use web::{PageFile, WebError, WebSettings};
