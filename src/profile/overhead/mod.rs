//! What it costs to change a job's allocation: checkpoint, restart, scale, migrate. ElasticFlow's Figure 12.
//!
//! ```text
//! run with `from` GPUs ─▶ settled ─▶ stop ─▶ checkpoint written ─▶ gone
//!                                     │◀ checkpoint_s ▶│◀ restart_s ─────────▶│
//!                                                      run with `to` GPUs ─▶ first new iteration
//! ```
//! `script` reads ElasticFlow's command traces into changes; `change` times one; `observed` reads changes off a live
//! cluster's journal; `published` is what the paper printed.

pub mod change;
pub mod observed;
pub mod published;
pub mod script;
