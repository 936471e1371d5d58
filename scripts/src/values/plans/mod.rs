//! What a script answers, and what it answers with: walks, plans, timelines, leases, the optimum, verdicts.

pub(crate) mod best_shares;
mod book;
pub(crate) mod by_hand;
pub(crate) mod entry;
pub(crate) mod fill;
pub(crate) mod growth;
pub(crate) mod judged;
pub(crate) mod lease_problem;
pub(crate) mod leases;
pub(crate) mod level_problem;
pub(crate) mod optimum;
pub(crate) mod plan;
pub(crate) mod rounds;
pub(crate) mod slices;
pub(crate) mod timeline;
pub(crate) mod verdict;
