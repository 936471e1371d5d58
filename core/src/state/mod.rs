//! What the scheduler knows: jobs as columns, the state that events change, and the view of it that a policy sees.

pub mod scheduler;
pub mod snapshot;
pub mod table;
