//! Solving from the command line and for a live head, in a process that can be killed, and the answer as text.
//!
//! ```text
//! model file ─▶ ChildSolver ── rota solve-child ─▶ Highs      (child: killed on overrun, ends with its parent)
//!                    │
//!                    └─▶ Answer ─▶ table or JSON              (answer)
//! ```
//!
//! `bounded` watches a policy and asks the solver each round what would have been possible; `sampled` looks at a few
//! rounds of every run and needs no solver. Models, formulations and
//! HiGHS are in `rota_solvers`, the optimum of an instant in `rota_scripts::optimum`.

mod answer;
mod bounded;
mod child;
mod sampled;

pub use answer::Answer;
pub use bounded::{Bounded, given};
pub use child::{ChildSolver, Fate, serve};
pub use sampled::Sampled;
