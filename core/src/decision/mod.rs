//! What is decided: a policy's plan, the rules it must keep, a round as a whole, and the commands that follow from it.

pub mod check;
pub mod guards;
pub mod plan;
pub mod policy;
pub mod reconcile;
pub mod round;
