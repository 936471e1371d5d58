//! The cluster as a script sees it: nodes, GPU types, shares of a host, and where jobs go.

pub(crate) mod asked_before;
pub(crate) mod cluster;
pub(crate) mod gpu_types;
pub(crate) mod local_search;
pub(crate) mod node_columns;
pub(crate) mod node_rank;
pub(crate) mod placement;
pub(crate) mod share;
pub(crate) mod taking;
