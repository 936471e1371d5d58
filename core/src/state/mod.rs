//! What the scheduler knows: jobs as columns, the state that events change, the view of it that a policy sees, and
//! that view on its way to another process.

mod beside;
pub mod difference;
pub mod scheduler;
pub mod snapshot;
pub mod table;
