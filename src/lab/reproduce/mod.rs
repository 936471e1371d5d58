//! The papers' figures again: published numbers, the original's rules and the shipped policies side by side, with claims
//! that can fail.
//!
//! ```text
//! papers/        what each figure runs and needs, what is published about it, what is claimed about it
//! chronus/       every published trace of Chronus under it and its baselines
//! elasticflow/   functional  the original's own test: five schedulers, one server, ten jobs
//!                admission   the greedy admission compared with a model's
//! gpemu/         GPEmu's Synergy run on a live cluster of emulated agents, and what must hold of its completion times
//! rows ─▶ evidence ─▶ claims ─▶ reproduced (text, Markdown), page and plots, kept (claims.json)
//! ```
//!
//! How the originals behave is in `rota_scripts::artifact`, what the shipped policies decide in their scripts.

pub mod chronus;
pub mod claims;
pub mod elasticflow;
pub mod evidence;
pub mod gpemu;
mod kept;
mod page;
pub mod papers;
mod plots;
pub mod quantity;
mod reproduced;
mod rows;

pub use kept::FILE;
pub use reproduced::{ALONE, DefectRow, NONE, Reproduced, SHIPPED, over_all_figures};
pub use rows::{at_of, rows, seed_of, with_baseline};
