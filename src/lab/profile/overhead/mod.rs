//! What it costs to change a job's allocation: checkpoint, restart, scale, migrate. ElasticFlow's Figure 12.
//!
//! ```text
//! run with `from` GPUs ─▶ settled ─▶ stop ─▶ checkpoint written ─▶ gone
//!                                     │◀ checkpoint_s ▶│◀ restart_s ─────────▶│
//!                                                      run with `to` GPUs ─▶ first new iteration
//! ```
//! `script` reads ElasticFlow's command traces into changes; `change` times one; `published` is what the
//! paper printed. What changes cost on a live cluster is measured from its journal by `rota_head::changes`.

pub mod change;
pub mod published;
pub mod script;
