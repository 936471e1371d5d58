//! Optimal allocation in plain numbers: the model type, HiGHS behind it, and the formulations of the field.
//!
//! ```text
//!  numbers ─▶ synergy_opt | chronus_leases | elasticflow_shares | gavel_shares ─▶ Model ─▶ Solver ─▶ Solution ─▶ decoded plan
//!  files, scripts ───────────────────────────────────────────────┘       ├ Highs      (highs.rs, the only file that knows HiGHS)
//!                                                                        └ Recorded   (recorded.rs)
//! ```
//!
//! Nothing here knows jobs or nodes. Formulations are pure; [`files`] alone touches the file system, [`highs`]
//! alone reads the clock. Every answer has passed [`check`](fn@check) before anyone sees it.

pub mod check;
pub mod chronus_leases;
pub mod elasticflow_shares;
pub mod error;
pub mod exchange;
pub mod expression;
pub mod files;
pub mod format;
pub mod gavel_shares;
pub mod highs;
pub mod model;
mod names;
mod range;
pub mod recorded;
pub mod solution;
pub mod synergy_opt;

pub use check::{Violation, check};
pub use error::{FormulationError, Item, ModelError, ReadError};
pub use expression::{Constraint, Expression};
pub use files::{FileError, read_model, write_model};
pub use format::{read_lp, read_mps, write_lp, write_mps};
pub use highs::Highs;
pub use model::{Kind, Model, Row, Sense, Variable};
pub use range::{INFINITE, Range};
pub use recorded::{Recorded, Recording};
pub use solution::{Limits, Solution, SolveStatus, Solver, Start};
