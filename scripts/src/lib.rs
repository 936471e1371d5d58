//! Policies as scripts: the Rhai host, and every policy that comes with Rota.
//!
//! A script says *what*; loops over jobs, nodes and time are native verbs it calls. [`ScriptPolicy`] composes
//! scripts into a [`Policy`](rota_core::policy::Policy): each part fills the stages it defines (`admit`, `order`,
//! `allocate`, `place`, or `decide` for all at once), the rest have defaults. Scripts have no clock and no files,
//! and [`Limits`] on everything. Rhai's types stay in this crate.
//!
//! | folder | what lives there |
//! |---|---|
//! | `language` | the Rhai engine, its limits, errors and hints, private memory, the table of all verbs |
//! | `values` | the types and verbs that a script sees |
//! | `policy` | from a policy's name to a decision: parts, variants, stages, the shipped scripts |
//! | `models` | the algorithms behind the larger verbs: optimum, shares, leases, fairness |
//! | `scenario`, `study`, `assign`, `commands` | small worlds as text, batches of runs, rules for traces, what `rota policy` does |
//! | `artifact` | drivers that reproduce the original programs |

pub mod artifact;
pub mod assign;
pub mod commands;
mod language;
mod models;
mod policy;
pub mod scenario;
pub mod study;
mod values;

pub use commands::sample;
pub use language::error::{LoadError, ScriptError};
pub use language::limits::{Limits, STACK_BYTES};
pub use language::parameters::{Domain, Parameter, SetError, Value};
pub use language::{memory, reference};
pub use models::{fairness, optimum, shares};
pub use policy::ScriptPolicy;
pub use policy::account::{Account, OrderKey, StageCost};
pub use policy::compose::{FindText, FindTextError, Source};
pub use policy::part::Stage;
pub use policy::shipped;
