//! Nodes as columns while jobs are placed: what `fn place(job, nodes)` computes with.
//!
//! The function is asked once. Its columns hold no numbers: what is done with them is written down as a formula, which the
//! core computes for every job that is placed (`rota_core::place::formula`).

use std::sync::{Arc, Mutex, PoisonError};

use rota_core::place::formula::{Binary, GangField, NodeField, Operation, Summary, Term, Unary};
use rota_core::table::Field;

use crate::language::reference::Registrar;
use crate::language::session::{Outcome, fail};

/// Operations that one placement may be made of.
const MAX_OPERATIONS: usize = 1024;

/// The first so many operations are not recorded a second time.
const LOOKED_THROUGH: usize = 64;

/// What a script has done with the columns of one placement.
pub(crate) type Recording = Arc<Mutex<Vec<Operation>>>;

/// All nodes that have room for a GPU of the job.
#[derive(Clone, Debug)]
pub(crate) struct NodesValue(Recording);

/// The job that is placed.
#[derive(Clone, Debug)]
pub(crate) struct GangValue(Recording);

/// One number for each node, to be computed when a job is placed.
#[derive(Clone, Debug)]
pub(crate) struct NodeColumn {
    pub(super) recording: Recording,
    pub(super) term: Term,
}

/// What a placement is asked with.
pub(crate) fn gang_and_nodes() -> (GangValue, NodesValue) {
    let recording = Recording::default();
    (GangValue(Arc::clone(&recording)), NodesValue(recording))
}

fn record(recording: &Recording, operation: Operation) -> Outcome<NodeColumn> {
    let mut operations = recording.lock().unwrap_or_else(PoisonError::into_inner);
    // What was written before is computed once. Long formulas are not searched from end to end.
    let known = operations.iter().take(LOOKED_THROUGH).position(|known| known.is_same(&operation));
    if let Some(index) = known {
        return Ok(NodeColumn { recording: Arc::clone(recording), term: Term(index) });
    }
    if operations.len() >= MAX_OPERATIONS {
        return fail(format!("a placement computes more than {MAX_OPERATIONS} columns of nodes"));
    }
    operations.push(operation);
    Ok(NodeColumn { recording: Arc::clone(recording), term: Term(operations.len() - 1) })
}

impl NodeColumn {
    /// A number as a column of the same placement.
    fn constant(&self, number: f64) -> Outcome<NodeColumn> {
        record(&self.recording, Operation::Constant(number))
    }

    /// An error unless both columns are of the same placement.
    pub(super) fn same_placement(&self, other: &NodeColumn) -> Outcome<()> {
        match Arc::ptr_eq(&self.recording, &other.recording) {
            true => Ok(()),
            false => fail("columns of nodes of two placements: take both from the same `nodes`"),
        }
    }

    fn unary(&self, what: Unary) -> Outcome<NodeColumn> {
        record(&self.recording, Operation::Unary(what, self.term))
    }

    fn binary(&self, what: Binary, other: &NodeColumn) -> Outcome<NodeColumn> {
        self.same_placement(other)?;
        record(&self.recording, Operation::Binary(what, self.term, other.term))
    }

    fn group(&self, what: Summary, group: &NodeColumn) -> Outcome<NodeColumn> {
        self.same_placement(group)?;
        record(&self.recording, Operation::Group(what, self.term, group.term))
    }
}

/// Something that is a column of nodes next to another one: a column, or a number.
trait Operand {
    fn next_to(self, other: &NodeColumn) -> Outcome<NodeColumn>;
}

impl Operand for NodeColumn {
    fn next_to(self, other: &NodeColumn) -> Outcome<NodeColumn> {
        other.same_placement(&self)?;
        Ok(self)
    }
}

impl Operand for f64 {
    fn next_to(self, other: &NodeColumn) -> Outcome<NodeColumn> {
        other.constant(self)
    }
}

impl Operand for i64 {
    fn next_to(self, other: &NodeColumn) -> Outcome<NodeColumn> {
        other.constant(self as f64)
    }
}

/// `a` where the condition is not 0, else `b`.
fn choose<A: Operand, B: Operand>(condition: NodeColumn, a: A, b: B) -> Outcome<NodeColumn> {
    let (a, b) = (a.next_to(&condition)?, b.next_to(&condition)?);
    record(&condition.recording, Operation::Choose(condition.term, a.term, b.term))
}

/// Registers one operator or function of two numbers for every mix of columns and numbers; `$swap` turns its sides.
macro_rules! pairwise {
    ($engine:expr, $name:literal, $what:expr, $swap:literal) => {{
        fn apply(a: NodeColumn, b: NodeColumn) -> Outcome<NodeColumn> {
            if $swap { b.binary($what, &a) } else { a.binary($what, &b) }
        }
        $engine
            .register_fn($name, apply)
            .register_fn($name, |a: NodeColumn, b: f64| b.next_to(&a).and_then(|b| apply(a, b)))
            .register_fn($name, |a: NodeColumn, b: i64| b.next_to(&a).and_then(|b| apply(a, b)))
            .register_fn($name, |a: f64, b: NodeColumn| a.next_to(&b).and_then(|a| apply(a, b)))
            .register_fn($name, |a: i64, b: NodeColumn| a.next_to(&b).and_then(|a| apply(a, b)));
    }};
}

pub(crate) fn register(registrar: &mut Registrar<'_>) {
    nodes(registrar);
    gang(registrar);
    column(registrar);
}

fn nodes(registrar: &mut Registrar<'_>) {
    const OWNER: &str = "Nodes";
    registrar.class::<NodesValue>(
        OWNER,
        "The nodes that have room for at least one GPU of the job, in `fn place(job, nodes)`. Its fields are columns, one number for \
         each node; what is free is what the jobs placed before leave.",
    );
    let fields: [(&'static str, NodeField, &str); 14] = [
        ("id", NodeField::Id, "The node's number."),
        ("rack", NodeField::Rack, "The number of its rack or switch."),
        ("gpus", NodeField::Gpus, "GPUs it has."),
        (
            "gpu_mem",
            NodeField::GpuMem,
            "Memory of one of its GPUs, gigabytes; 0 where the cluster does not say.",
        ),
        ("cpus", NodeField::Cpus, "CPUs it has."),
        ("mem", NodeField::Mem, "Memory it has, gigabytes."),
        ("storage", NodeField::Storage, "Storage rate it has, megabytes per second."),
        ("free_gpus", NodeField::FreeGpus, "GPUs that are free."),
        ("free_cpus", NodeField::FreeCpus, "CPUs that are free."),
        ("free_mem", NodeField::FreeMem, "Memory that is free, gigabytes."),
        ("free_storage", NodeField::FreeStorage, "Storage rate that is free, megabytes per second."),
        (
            "fits",
            NodeField::Fits,
            "How many GPUs of the job fit: free ones for each of which there are the CPUs and the memory that it is offered.",
        ),
        ("holds", NodeField::Holds, "1 where the whole job fits, 0 where only a part of it does."),
        ("has_data", NodeField::HasData, "1 where the job's data set is in the cache, or lives there."),
    ];
    for (name, field, doc) in fields {
        registrar
            .field(OWNER, format!("{name}: NodeColumn"), doc)
            .register_get(name, move |nodes: &mut NodesValue| record(&nodes.0, Operation::Node(field)));
    }
    let doc = "GPUs of the widest rack of the cluster as bought: a job that is wider has to span racks.";
    registrar
        .field(OWNER, "widest_rack: NodeColumn", doc)
        .register_get("widest_rack", |nodes: &mut NodesValue| {
            record(&nodes.0, Operation::Gang(GangField::WidestRack))
        });
    registrar
        .method(
            OWNER,
            "drawn(seed: int) -> NodeColumn",
            "How many nodes behind one that is drawn: 0 for that node, 1 for the next, and the first is behind the last. The draw depends on \
             the seed, the time, the job and, behind `one_by_one`, on how many of its GPUs are placed.",
        )
        .register_fn("drawn", |nodes: NodesValue, seed: i64| record(&nodes.0, Operation::Drawn(seed as u64)));
    registrar.unknown_field::<NodesValue>(OWNER);
}

fn gang(registrar: &mut Registrar<'_>) {
    const OWNER: &str = "Gang";
    registrar.class::<GangValue>(
        OWNER,
        "The job that is placed, in `fn place(job, nodes)`. Its fields are columns of nodes that have the same number for each node.",
    );
    let own: [(&'static str, GangField, &str); 4] = [
        ("gpus", GangField::Gpus, "GPUs it is to get."),
        ("cpus_per_gpu", GangField::CpusPerGpu, "CPUs it is offered with each GPU."),
        ("mem_per_gpu", GangField::MemPerGpu, "Memory it is offered with each GPU, gigabytes."),
        (
            "storage_per_gpu",
            GangField::StoragePerGpu,
            "Storage rate it is offered with each GPU, megabytes per second.",
        ),
    ];
    let is_other = |field: &&(Field, &'static str, &'static str)| field.0 != Field::Gpus;
    let table =
        Field::ALL.iter().filter(is_other).map(|(field, name, doc)| (*name, GangField::Column(*field), *doc));
    for (name, field, doc) in own.into_iter().chain(table) {
        registrar
            .field(OWNER, format!("{name}: NodeColumn"), doc.trim())
            .register_get(name, move |gang: &mut GangValue| record(&gang.0, Operation::Gang(field)));
    }
    registrar.unknown_field::<GangValue>(OWNER);
}

fn column(registrar: &mut Registrar<'_>) {
    const OWNER: &str = "NodeColumn";
    registrar.class::<NodeColumn>(
        OWNER,
        "One number for each node, computed anew for each job that is placed. What can be done with the columns of jobs can be \
         done with it: arithmetic, comparisons, `&`, `|`, `!`, and the functions `where`, `min`, `max`, `clamp`, `abs`, `sqrt`, `exp`, \
         `ln`, `log`, `log2`, `pow`, `floor` and `ceil`. It cannot be read in the script, and is not the condition of an `if`.",
    );
    operators(registrar);
    functions(registrar);
    let summaries: [(&str, Summary, &str); 3] = [
        ("total_by", Summary::Total, "the sum"),
        ("least_by", Summary::Least, "the smallest number"),
        ("most_by", Summary::Most, "the largest number"),
    ];
    for (name, what, result) in summaries {
        let doc = format!(
            "For each node, {result} over all nodes with room for a GPU of the job that have the same number in `group`: \
             `nodes.fits.{name}(nodes.rack)`."
        );
        registrar
            .method(OWNER, &format!("{name}(group: NodeColumn) -> NodeColumn"), &doc)
            .register_fn(name, move |column: NodeColumn, group: NodeColumn| column.group(what, &group));
    }
    registrar.unknown_field::<NodeColumn>(OWNER);
}

fn operators(registrar: &mut Registrar<'_>) {
    let engine = registrar.method(
        "NodeColumn",
        "a + b, a - b, a * b, a / b, a ** b, <, <=, >, >=, ==, !=, &, | -> NodeColumn",
        "Node by node, as with columns of jobs; either side may be a plain number. `-a` and `!a` too.",
    );
    pairwise!(engine, "+", Binary::Add, false);
    pairwise!(engine, "-", Binary::Subtract, false);
    pairwise!(engine, "*", Binary::Multiply, false);
    pairwise!(engine, "/", Binary::Divide, false);
    pairwise!(engine, "**", Binary::Power, false);
    pairwise!(engine, "<", Binary::Less, false);
    pairwise!(engine, "<=", Binary::LessOrEqual, false);
    pairwise!(engine, ">", Binary::Less, true);
    pairwise!(engine, ">=", Binary::LessOrEqual, true);
    pairwise!(engine, "==", Binary::Equal, false);
    pairwise!(engine, "!=", Binary::NotEqual, false);
    pairwise!(engine, "&", Binary::And, false);
    pairwise!(engine, "|", Binary::Or, false);
    engine.register_fn("-", |a: NodeColumn| a.unary(Unary::Negate));
    engine.register_fn("!", |a: NodeColumn| a.unary(Unary::Not));
}

fn functions(registrar: &mut Registrar<'_>) {
    let engine = registrar.engine();
    pairwise!(engine, "min", Binary::Min, false);
    pairwise!(engine, "max", Binary::Max, false);
    pairwise!(engine, "pow", Binary::Power, false);
    type Function = fn(f64) -> f64;
    let functions: [(&str, Function); 8] = [
        ("abs", f64::abs),
        ("sqrt", f64::sqrt),
        ("exp", f64::exp),
        ("ln", f64::ln),
        ("log", f64::log10),
        ("log2", f64::log2),
        ("floor", f64::floor),
        ("ceil", f64::ceil),
    ];
    for (name, function) in functions {
        engine.register_fn(name, move |a: NodeColumn| a.unary(Unary::Function(function)));
    }
    engine.register_fn("clamp", |a: NodeColumn, low: f64, high: f64| clamp(&a, low, high));
    engine.register_fn("clamp", |a: NodeColumn, low: i64, high: i64| clamp(&a, low as f64, high as f64));
    engine
        .register_fn("where", choose::<NodeColumn, NodeColumn>)
        .register_fn("where", choose::<NodeColumn, f64>)
        .register_fn("where", choose::<NodeColumn, i64>)
        .register_fn("where", choose::<f64, NodeColumn>)
        .register_fn("where", choose::<i64, NodeColumn>)
        .register_fn("where", choose::<f64, f64>)
        .register_fn("where", choose::<f64, i64>)
        .register_fn("where", choose::<i64, f64>)
        .register_fn("where", choose::<i64, i64>);
}

fn clamp(column: &NodeColumn, low: f64, high: f64) -> Outcome<NodeColumn> {
    column.binary(Binary::Max, &column.constant(low)?)?.binary(Binary::Min, &column.constant(high)?)
}
