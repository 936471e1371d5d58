//! Synergy's simulator (OSDI'22 artifact): a world in rounds, where all jobs are placed anew in each of them.
//!
//! ```text
//!            ┌ arrivals up to now, ends of the last round
//!  round ────┤ order     scripts/artifact/synergy/*.rhai, over columns filled by the original's rules (`attach`)
//!            │ walk      rota_core::fill with the scheme's words (`scheme`)
//!            └ credit    the whole round at once, at the grade each job was served with (`driver`)
//! ```
//!
//! Reproduced: rounds credited ahead and only in whole iterations, ends noticed at round ends, ranking by the speed
//! left over from the last round, smallest finish-time ratio first, a storage demand that is the same for every
//! model, the straight line for capped demands, jobs cut to exactly the proportional share. Not reproduced: the run
//! that ends in an idle gap, and racks whose node numbers collide.

mod accounts;
mod attach;
#[cfg(test)]
mod defect_tests;
mod driver;
mod error;
mod opt;
mod order;
mod scheme;
#[cfg(test)]
mod tests;

pub use attach::{Model, Models};
pub use driver::{SynergySettings, run};
pub use error::{ArtifactError, SchemeError};
pub use opt::phase_one;
pub use scheme::{Allocation, OrderName, Placement, Scheme};
