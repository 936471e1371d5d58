//! The types a script works with, one file each, grouped by what they describe. Each file also registers the
//! verbs of its type.

mod columns;
mod milp;
mod nodes;
mod operators;
mod plans;
mod types;
mod view;

pub(crate) use columns::rank;
use columns::{
    arithmetic, column, deadlines, groups, job, jobs, levels, queue, remember, service, statistics, texts,
};
use nodes::{cluster, gpu_types, local_search, node_columns, node_rank, placement, share, taking};
use plans::{
    best_shares, by_hand, fill, growth, judged, lease_problem, leases, level_problem, optimum, plan, slices,
    timeline, verdict,
};

pub(crate) use cluster::{NodeValue, RoomValue};
pub(crate) use column::Column;
pub(crate) use fill::FillValue;
pub(crate) use job::JobValue;
pub(crate) use jobs::{Jobs, Rows};
pub(crate) use judged::{Judged, VerdictsValue};
pub(crate) use node_columns::gang_and_nodes;
pub(crate) use nodes::asked_before::AskedBefore;
pub(crate) use placement::{Placement, Strategy};
pub(crate) use plan::PlanValue;
pub(crate) use queue::Queue;
pub(crate) use texts::Texts;
pub(crate) use timeline::Kept;
pub(crate) use types::{label, script_type, type_label, without_rust_paths};
pub(crate) use verdict::VerdictValue;
pub(crate) use view::View;

use std::sync::Arc;

use crate::language::reference::Registrar;
use crate::language::session::Shared;

/// Registers every type and verb.
pub(crate) fn register(registrar: &mut Registrar<'_>, shared: &Arc<Shared>) {
    view::register(registrar);
    jobs::register(registrar);
    job::register(registrar);
    column::register(registrar);
    arithmetic::register(registrar);
    statistics::register(registrar);
    texts::register(registrar);
    groups::register(registrar);
    queue::register(registrar, shared);
    share::register(registrar);
    cluster::register(registrar);
    fill::register(registrar);
    placement::register(registrar, shared);
    node_columns::register(registrar);
    node_rank::register(registrar, shared);
    local_search::register(registrar);
    taking::register(registrar);
    plan::register(registrar, shared);
    verdict::register(registrar);
    timeline::register(registrar);
    judged::register(registrar);
    growth::register(registrar);
    by_hand::register(registrar);
    levels::register(registrar);
    best_shares::register(registrar);
    leases::register(registrar);
    lease_problem::register(registrar);
    service::register(registrar);
    slices::register(registrar);
    gpu_types::register(registrar);
    optimum::register(registrar);
    level_problem::register(registrar);
    remember::register(registrar);
    milp::register(registrar, shared);
    milp::operators::register(registrar);
    milp::sides::register(registrar);
    milp::matrix::register(registrar, shared);
    milp::matrix_arithmetic::register(registrar);
    milp::starts::register(registrar);
    milp::answer::register(registrar);
}

/// A number in a script, whole or not; `None` for anything else.
pub(crate) fn number(value: &rhai::Dynamic) -> Option<f64> {
    value.as_float().ok().or_else(|| value.as_int().ok().map(|i| i as f64))
}
