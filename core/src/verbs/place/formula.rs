//! Numbers of nodes, computed for one job at a time: what a script writes as `nodes.free_gpus - job.gpus`.
//!
//! A [`Formula`] is a list of operations, each over results of earlier ones, so a term that is used twice is computed once. It
//! is made once and run for every job that is placed, operation by operation over all `Candidates`, in memory that is
//! reused. Which node is taken is decided in `ranked`.

use std::collections::BTreeMap;

use super::Ask;
use super::random::draw;
use crate::allocation::GpuSet;
use crate::cluster::{Cluster, Node};
use crate::ids::NodeId;
use crate::resources::{GB, Host};
use crate::room::Room;
use crate::table::Field;

/// The result of an operation: its position in the list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Term(pub usize);

/// A number that each node has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NodeField {
    /// Its number.
    Id,
    /// Its rack or switch.
    Rack,
    /// GPUs it has.
    Gpus,
    /// Memory of one of its GPUs, gigabytes; 0 where the cluster does not say.
    GpuMem,
    /// CPUs it has.
    Cpus,
    /// Memory it has, gigabytes.
    Mem,
    /// Storage rate it has, megabytes per second.
    Storage,
    /// Free GPUs.
    FreeGpus,
    /// Free GPUs for each of which there is what the job is offered with a GPU.
    Fits,
    /// 1 where the whole gang fits.
    Holds,
    /// Free CPUs.
    FreeCpus,
    /// Free memory, gigabytes.
    FreeMem,
    /// Free storage rate, megabytes per second.
    FreeStorage,
    /// 1 where the job's data set is.
    HasData,
}

/// A number of the job that is placed, the same for all nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GangField {
    /// GPUs it is to get.
    Gpus,
    /// CPUs it is offered with each GPU.
    CpusPerGpu,
    /// Memory it is offered with each GPU, gigabytes.
    MemPerGpu,
    /// Storage rate it is offered with each GPU, megabytes per second.
    StoragePerGpu,
    /// A column of the job table.
    Column(Field),
    /// GPUs of the widest rack of the cluster as bought: a gang that is wider has to span racks.
    WidestRack,
}

/// An operation on two numbers. Conditions are 1 and 0, and anything but 0 is true.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "they are called what they do")]
pub enum Binary {
    Add,
    Subtract,
    Multiply,
    Divide,
    Less,
    LessOrEqual,
    Equal,
    NotEqual,
    And,
    Or,
    Min,
    Max,
    Power,
}

/// An operation on one number.
#[derive(Clone, Copy, Debug)]
#[expect(missing_docs, reason = "they are called what they do")]
pub enum Unary {
    Negate,
    Not,
    Function(fn(f64) -> f64),
}

/// A number of each group of nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Summary {
    /// All added up.
    Total,
    /// The smallest of them.
    Least,
    /// The largest of them.
    Most,
}

/// One operation of a formula.
#[derive(Clone, Copy, Debug)]
pub enum Operation {
    /// The same number for all nodes and jobs.
    Constant(f64),
    /// A number of each node.
    Node(NodeField),
    /// A number of the job.
    Gang(GangField),
    /// Of one term.
    Unary(Unary, Term),
    /// Of two terms.
    Binary(Binary, Term, Term),
    /// The second where the first is not 0, else the third.
    Choose(Term, Term, Term),
    /// For each node, a number of all candidates for which the second term is the same.
    Group(Summary, Term, Term),
    /// How many candidates behind one that is drawn from a seed, for each GPU of a job anew.
    Drawn(u64),
}

impl Operation {
    fn operands(&self) -> impl Iterator<Item = Term> + use<> {
        let terms = match *self {
            Operation::Constant(_) | Operation::Node(_) | Operation::Gang(_) | Operation::Drawn(_) => {
                [None; 3]
            }
            Operation::Unary(_, a) => [Some(a), None, None],
            Operation::Binary(_, a, b) | Operation::Group(_, a, b) => [Some(a), Some(b), None],
            Operation::Choose(a, b, c) => [Some(a), Some(b), Some(c)],
        };
        terms.into_iter().flatten()
    }

    /// Whether another operation has the same result for certain.
    pub fn is_same(&self, other: &Operation) -> bool {
        match (*self, *other) {
            (Operation::Constant(a), Operation::Constant(b)) => a.to_bits() == b.to_bits(),
            (Operation::Node(a), Operation::Node(b)) => a == b,
            (Operation::Gang(a), Operation::Gang(b)) => a == b,
            (Operation::Drawn(a), Operation::Drawn(b)) => a == b,
            (Operation::Unary(Unary::Negate, a), Operation::Unary(Unary::Negate, b))
            | (Operation::Unary(Unary::Not, a), Operation::Unary(Unary::Not, b)) => a == b,
            (Operation::Binary(what, a, b), Operation::Binary(other, c, d)) => (what, a, b) == (other, c, d),
            (Operation::Group(what, a, b), Operation::Group(other, c, d)) => (what, a, b) == (other, c, d),
            (Operation::Choose(a, b, c), Operation::Choose(d, e, f)) => (a, b, c) == (d, e, f),
            _ => false,
        }
    }

    fn with_operands(self, new: impl Fn(Term) -> Term) -> Operation {
        match self {
            Operation::Constant(_) | Operation::Node(_) | Operation::Gang(_) | Operation::Drawn(_) => self,
            Operation::Unary(what, a) => Operation::Unary(what, new(a)),
            Operation::Binary(what, a, b) => Operation::Binary(what, new(a), new(b)),
            Operation::Group(what, a, b) => Operation::Group(what, new(a), new(b)),
            Operation::Choose(a, b, c) => Operation::Choose(new(a), new(b), new(c)),
        }
    }
}

/// Operations with nothing in them that is not used.
#[derive(Clone, Debug, Default)]
pub struct Formula {
    operations: Vec<Operation>,
    /// Whether a term is the same for all nodes.
    is_scalar: Vec<bool>,
}

impl Formula {
    /// The operations that these terms need, and the terms' new places; `None` where an operation uses a later one.
    pub fn new(operations: &[Operation], wanted: &[Term]) -> Option<(Formula, Vec<Term>)> {
        let mut is_used = vec![false; operations.len()];
        for term in wanted {
            *is_used.get_mut(term.0)? = true;
        }
        for (index, operation) in operations.iter().enumerate().rev() {
            if is_used[index] {
                for term in operation.operands() {
                    *is_used.get_mut(term.0).filter(|_| term.0 < index)? = true;
                }
            }
        }
        let mut places = Vec::with_capacity(operations.len());
        let mut formula = Formula::default();
        for (operation, is_used) in operations.iter().zip(is_used) {
            places.push(Term(formula.operations.len()));
            if is_used {
                formula.push(operation.with_operands(|term| places[term.0]));
            }
        }
        Some((formula, wanted.iter().map(|term| places[term.0]).collect()))
    }

    fn push(&mut self, operation: Operation) {
        let is_scalar = match operation {
            Operation::Node(_) | Operation::Group(..) | Operation::Drawn(_) => false,
            _ => operation.operands().all(|term| self.is_scalar[term.0]),
        };
        self.operations.push(operation);
        self.is_scalar.push(is_scalar);
    }

    /// How many operations there are.
    pub fn len(&self) -> usize {
        self.operations.len()
    }

    /// Whether there is nothing to compute.
    pub fn is_empty(&self) -> bool {
        self.operations.is_empty()
    }

    /// Whether a term is the same for all nodes.
    pub fn is_scalar(&self, term: Term) -> bool {
        self.is_scalar[term.0]
    }

    /// Whether a term is the nodes' numbers as they are.
    pub(super) fn is_id(&self, term: Term) -> bool {
        matches!(self.operations[term.0], Operation::Node(NodeField::Id))
    }

    /// Whether a term is this number for every node and job.
    pub(super) fn constant(&self, term: Term) -> Option<f64> {
        match self.operations[term.0] {
            Operation::Constant(number) => Some(number),
            _ => None,
        }
    }
}

/// The nodes that have room for a GPU of the job and may be used, in id order.
#[derive(Clone, Debug, Default)]
pub(super) struct Candidates {
    pub(super) nodes: Vec<(NodeId, GpuSet, Host)>,
    /// GPUs of the job that are placed already; what they leave is in `nodes`.
    pub(super) n_placed: u32,
}

impl Candidates {
    pub(super) fn find(&mut self, room: &Room, ask: &Ask<'_>) {
        self.nodes.clear();
        self.n_placed = 0;
        let found = room.candidates(&ask.per_gpu).filter(|(node, ..)| ask.allows(node));
        self.nodes.extend(found.map(|(node, free, host)| (node.id, free, host)));
    }
}

/// Results, one for each operation.
#[derive(Clone, Debug, Default)]
pub(super) struct Results {
    registers: Vec<Register>,
    /// Of the cluster, once it was asked for.
    widest_rack: Option<f64>,
}

#[derive(Clone, Debug, Default)]
struct Register {
    /// The number of a term that is the same for all nodes.
    scalar: f64,
    /// The numbers of any other, one for each candidate.
    column: Vec<f64>,
}

impl Results {
    /// Computes a formula for one job.
    pub(super) fn compute(&mut self, formula: &Formula, room: &Room, ask: &Ask<'_>, candidates: &Candidates) {
        self.registers.resize_with(formula.len(), Register::default);
        for (index, operation) in formula.operations.iter().enumerate() {
            let (earlier, rest) = self.registers.split_at_mut(index);
            let register = &mut rest[0];
            register.column.clear();
            let inputs = Inputs { formula, earlier };
            match *operation {
                Operation::Constant(number) => register.scalar = number,
                Operation::Gang(GangField::WidestRack) => {
                    register.scalar = *self.widest_rack.get_or_insert_with(|| widest_rack(room.cluster()));
                }
                Operation::Gang(field) => register.scalar = of_gang(ask, field),
                Operation::Node(field) => node_column(&mut register.column, field, room, ask, candidates),
                Operation::Unary(what, a) => inputs.unary(register, what, a),
                Operation::Binary(what, a, b) => inputs.binary(register, what, a, b),
                Operation::Choose(condition, a, b) => inputs.choose(register, condition, a, b),
                Operation::Drawn(seed) => {
                    let n_nodes = candidates.nodes.len();
                    let drawn = draw(seed, ask, candidates.n_placed, n_nodes);
                    let behind = |n: usize| (n + n_nodes - drawn) % n_nodes;
                    register.column.extend((0..n_nodes).map(|n| behind(n) as f64));
                }
                Operation::Group(what, a, group) => {
                    inputs.group(&mut register.column, what, a, group, candidates.nodes.len());
                }
            }
        }
    }

    /// The numbers of a term that differ from node to node; empty for one that does not.
    pub(super) fn column(&self, term: Term) -> &[f64] {
        &self.registers[term.0].column
    }

    /// The number of a term at a candidate.
    pub(super) fn at(&self, formula: &Formula, term: Term, position: usize) -> f64 {
        match formula.is_scalar(term) {
            true => self.registers[term.0].scalar,
            false => self.registers[term.0].column[position],
        }
    }
}

fn of_gang(ask: &Ask<'_>, field: GangField) -> f64 {
    match field {
        GangField::Gpus => f64::from(ask.gpus),
        GangField::CpusPerGpu => ask.per_gpu.cpus(),
        GangField::MemPerGpu => ask.per_gpu.mem_gb(),
        GangField::StoragePerGpu => ask.per_gpu.storage_mb_per_s(),
        GangField::Column(field) => ask.snapshot.jobs.column(field)[ask.row],
        GangField::WidestRack => widest_rack(&ask.snapshot.cluster),
    }
}

fn widest_rack(cluster: &Cluster) -> f64 {
    let mut gpus_by_rack: BTreeMap<u32, u32> = BTreeMap::new();
    for node in cluster.nodes() {
        *gpus_by_rack.entry(node.rack).or_default() += node.n_gpus;
    }
    f64::from(gpus_by_rack.into_values().max().unwrap_or(0))
}

fn node_column(column: &mut Vec<f64>, field: NodeField, room: &Room, ask: &Ask<'_>, candidates: &Candidates) {
    let nodes = candidates.nodes.iter();
    let all = room.cluster().nodes();
    let of_node =
        |number: fn(&Node) -> f64| move |(node, ..): &(NodeId, GpuSet, Host)| number(&all[node.index()]);
    match field {
        NodeField::Id => column.extend(nodes.map(|(node, ..)| f64::from(node.0))),
        NodeField::Rack => column.extend(nodes.map(of_node(|node| f64::from(node.rack)))),
        NodeField::Gpus => column.extend(nodes.map(of_node(|node| f64::from(node.n_gpus)))),
        NodeField::GpuMem => column.extend(nodes.map(of_node(|node| node.gpu_mem_bytes as f64 / GB as f64))),
        NodeField::Cpus => column.extend(nodes.map(of_node(|node| node.host.cpus()))),
        NodeField::Mem => column.extend(nodes.map(of_node(|node| node.host.mem_gb()))),
        NodeField::Storage => column.extend(nodes.map(of_node(|node| node.host.storage_mb_per_s()))),
        NodeField::FreeGpus => column.extend(nodes.map(|(_, free, _)| f64::from(free.len()))),
        NodeField::Fits => {
            column.extend(nodes.map(|(_, free, host)| f64::from(ask.fitting(*free, host, u32::MAX))));
        }
        NodeField::Holds => {
            let whole = ask.per_gpu.times(ask.gpus);
            let holds = |free: &GpuSet, host: &Host| free.len() >= ask.gpus && whole.fits_in(host);
            column.extend(nodes.map(|(_, free, host)| truth(holds(free, host))));
        }
        NodeField::FreeCpus => column.extend(nodes.map(|(_, _, host)| host.cpus())),
        NodeField::FreeMem => column.extend(nodes.map(|(_, _, host)| host.mem_gb())),
        NodeField::FreeStorage => column.extend(nodes.map(|(_, _, host)| host.storage_mb_per_s())),
        NodeField::HasData => {
            let dataset = ask.snapshot.jobs.spec(ask.row).dataset;
            let has_data = |node: NodeId| dataset.is_some_and(|set| ask.snapshot.nodes.has_data(node, set));
            column.extend(nodes.map(|(node, ..)| truth(has_data(*node))));
        }
    }
}

/// What one operation reads.
struct Inputs<'a> {
    formula: &'a Formula,
    earlier: &'a [Register],
}

/// A term that is the same for all nodes, or not.
enum Input<'a> {
    Scalar(f64),
    Column(&'a [f64]),
}

impl Input<'_> {
    fn at(&self, position: usize) -> f64 {
        match self {
            Input::Scalar(number) => *number,
            Input::Column(column) => column[position],
        }
    }
}

impl Inputs<'_> {
    fn input(&self, term: Term) -> Input<'_> {
        let register = &self.earlier[term.0];
        match self.formula.is_scalar(term) {
            true => Input::Scalar(register.scalar),
            false => Input::Column(&register.column),
        }
    }

    fn map(&self, out: &mut Register, a: Term, f: impl Fn(f64) -> f64) {
        match self.input(a) {
            Input::Scalar(x) => out.scalar = f(x),
            Input::Column(a) => out.column.extend(a.iter().map(|x| f(*x))),
        }
    }

    fn unary(&self, out: &mut Register, what: Unary, a: Term) {
        match what {
            Unary::Negate => self.map(out, a, |x| -x),
            Unary::Not => self.map(out, a, |x| truth(x == 0.0)),
            Unary::Function(f) => self.map(out, a, f),
        }
    }

    fn zip(&self, out: &mut Register, a: Term, b: Term, f: impl Fn(f64, f64) -> f64) {
        match (self.input(a), self.input(b)) {
            (Input::Scalar(x), Input::Scalar(y)) => out.scalar = f(x, y),
            (Input::Column(a), Input::Scalar(y)) => out.column.extend(a.iter().map(|x| f(*x, y))),
            (Input::Scalar(x), Input::Column(b)) => out.column.extend(b.iter().map(|y| f(x, *y))),
            (Input::Column(a), Input::Column(b)) => {
                out.column.extend(a.iter().zip(b).map(|(x, y)| f(*x, *y)));
            }
        }
    }

    fn binary(&self, out: &mut Register, what: Binary, a: Term, b: Term) {
        match what {
            Binary::Add => self.zip(out, a, b, |x, y| x + y),
            Binary::Subtract => self.zip(out, a, b, |x, y| x - y),
            Binary::Multiply => self.zip(out, a, b, |x, y| x * y),
            Binary::Divide => self.zip(out, a, b, |x, y| x / y),
            Binary::Less => self.zip(out, a, b, |x, y| truth(x < y)),
            Binary::LessOrEqual => self.zip(out, a, b, |x, y| truth(x <= y)),
            Binary::Equal => self.zip(out, a, b, |x, y| truth(x == y)),
            Binary::NotEqual => self.zip(out, a, b, |x, y| truth(x != y)),
            Binary::And => self.zip(out, a, b, |x, y| truth(x != 0.0 && y != 0.0)),
            Binary::Or => self.zip(out, a, b, |x, y| truth(x != 0.0 || y != 0.0)),
            Binary::Min => self.zip(out, a, b, f64::min),
            Binary::Max => self.zip(out, a, b, f64::max),
            Binary::Power => self.zip(out, a, b, f64::powf),
        }
    }

    fn choose(&self, out: &mut Register, condition: Term, a: Term, b: Term) {
        let (condition, a, b) = (self.input(condition), self.input(a), self.input(b));
        let n_nodes = [&condition, &a, &b].into_iter().find_map(|input| match input {
            Input::Column(column) => Some(column.len()),
            Input::Scalar(_) => None,
        });
        let chosen = |position: usize| match condition.at(position) != 0.0 {
            true => a.at(position),
            false => b.at(position),
        };
        match n_nodes {
            None => out.scalar = chosen(0),
            Some(n_nodes) => out.column.extend((0..n_nodes).map(chosen)),
        }
    }

    fn group(&self, out: &mut Vec<f64>, what: Summary, a: Term, group: Term, n_nodes: usize) {
        let (a, group) = (self.input(a), self.input(group));
        let groups = group_indices((0..n_nodes).map(|position| group.at(position)));
        let mut summaries: Vec<f64> = Vec::new();
        for (position, group) in groups.iter().enumerate() {
            let number = a.at(position);
            match (summaries.get_mut(*group), what) {
                (None, _) => summaries.push(number),
                (Some(sum), Summary::Total) => *sum += number,
                (Some(sum), Summary::Least) => *sum = sum.min(number),
                (Some(sum), Summary::Most) => *sum = sum.max(number),
            }
        }
        out.extend(groups.iter().map(|group| summaries[*group]));
    }
}

/// For each number the index of its group: equal numbers are one group, groups are counted as they appear.
pub(super) fn group_indices(numbers: impl Iterator<Item = f64>) -> Vec<usize> {
    let mut known: BTreeMap<u64, usize> = BTreeMap::new();
    // Neighbours are often of one group.
    let mut last: Option<(u64, usize)> = None;
    let index = |number: f64| {
        // Both zeros are one group.
        let bits = (number + 0.0).to_bits();
        match last {
            Some((of, index)) if of == bits => index,
            _ => {
                let n_known = known.len();
                let index = *known.entry(bits).or_insert(n_known);
                last = Some((bits, index));
                index
            }
        }
    };
    numbers.map(index).collect()
}

fn truth(is_so: bool) -> f64 {
    f64::from(u8::from(is_so))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_no_term_needs_is_left_out_and_the_rest_renumbered() {
        let operations = [
            Operation::Constant(3.0),
            Operation::Node(NodeField::Id),
            Operation::Gang(GangField::Gpus),
            Operation::Binary(Binary::Add, Term(0), Term(2)),
            Operation::Binary(Binary::Less, Term(1), Term(3)),
        ];
        let (formula, terms) = Formula::new(&operations, &[Term(3)]).expect("in order");
        assert_eq!((formula.len(), terms.as_slice()), (3, [Term(2)].as_slice()));
        assert!(formula.is_scalar(Term(2)), "a number of the job alone");
        let (formula, terms) = Formula::new(&operations, &[Term(4), Term(4)]).expect("in order");
        assert_eq!((formula.len(), terms.as_slice()), (5, [Term(4), Term(4)].as_slice()));
        assert!(!formula.is_scalar(Term(4)));
    }

    #[test]
    fn a_formula_that_uses_what_comes_later_is_refused() {
        let operations = [Operation::Unary(Unary::Not, Term(1)), Operation::Node(NodeField::Id)];
        assert!(Formula::new(&operations, &[Term(0)]).is_none());
        assert!(Formula::new(&operations, &[Term(7)]).is_none());
        assert!(Formula::new(&operations, &[Term(1)]).is_some(), "what is not needed does not matter");
    }
}
