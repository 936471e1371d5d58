//! Jobs as a script sees them: columns over many, values of one, and orders made from them.

pub(crate) mod arithmetic;
pub(crate) mod column;
pub(crate) mod deadlines;
pub(crate) mod groups;
pub(crate) mod job;
pub(crate) mod jobs;
pub(crate) mod levels;
pub(crate) mod queue;
pub(crate) mod rank;
pub(crate) mod remember;
pub(crate) mod service;
pub(crate) mod statistics;
pub(crate) mod texts;
