//! Jobs by group: sets of jobs that share a number or a text, and one answer of a script for each.

use std::collections::BTreeMap;

use rhai::{Dynamic, FnPtr, Map, NativeCallContext};

use crate::language::reference::Registrar;
use crate::language::session::{Outcome, fail};
use crate::values::{Column, Jobs, Texts, number, type_label};

/// What jobs are grouped by.
enum Group {
    Numbers(Column),
    Texts(Texts),
}

impl Group {
    fn of(value: &Dynamic) -> Outcome<Group> {
        if let Some(column) = value.read_lock::<Column>() {
            return match column.values().iter().any(|number| number.is_nan()) {
                true => fail("the group of some jobs is not a number (NaN)"),
                false => Ok(Group::Numbers(column.clone())),
            };
        }
        match value.read_lock::<Texts>() {
            Some(texts) => Ok(Group::Texts(texts.clone())),
            None => fail(format!(
                "jobs are grouped by a column, such as `jobs.tenant_name`, got {}",
                type_label(value)
            )),
        }
    }

    fn numbers(&self) -> &Column {
        match self {
            Group::Numbers(column) => column,
            Group::Texts(texts) => texts.numbers(),
        }
    }

    /// The name of a group as a map's key: its text, or its number.
    fn name(&self, number: f64) -> String {
        match self {
            Group::Numbers(_) => number.to_string(),
            Group::Texts(texts) => texts.text(number).to_owned(),
        }
    }
}

/// The rows of each group by ascending job id, groups by ascending bits of their number.
fn rows_by_group(jobs: &Jobs, group: &Group) -> Outcome<BTreeMap<u64, Vec<u32>>> {
    let numbers = group.numbers();
    if !jobs.is_same(&numbers.jobs) {
        return fail(format!("the group is of {} jobs, the set has {}", numbers.jobs.len(), jobs.len()));
    }
    jobs.session.meter().charge(jobs.len() * 4)?;
    let mut groups: BTreeMap<u64, Vec<u32>> = BTreeMap::new();
    for position in jobs.positions_by_id() {
        // Both zeros are one group.
        let bits = (numbers.values()[position] + 0.0).to_bits();
        groups.entry(bits).or_default().push(jobs.row_at(position) as u32);
    }
    within_a_map(jobs, groups.len())?;
    Ok(groups)
}

/// An error where a map would have too many entries.
fn within_a_map(jobs: &Jobs, n_groups: usize) -> Outcome<()> {
    let most = jobs.session.meter().limits().map_entries;
    match n_groups > most {
        true => fail(format!("{n_groups} groups, a map may have {most} entries")),
        false => Ok(()),
    }
}

fn by(jobs: &Jobs, group: &Dynamic) -> Outcome<Map> {
    let group = Group::of(group)?;
    let groups = rows_by_group(jobs, &group)?;
    let set = |rows| Dynamic::from(jobs.some(rows));
    Ok(groups.into_iter().map(|(bits, rows)| (group.name(f64::from_bits(bits)).into(), set(rows))).collect())
}

fn sum_by(column: &Column, group: &Dynamic) -> Outcome<Map> {
    let group = Group::of(group)?;
    column.same_jobs(group.numbers())?;
    let jobs = &column.jobs;
    jobs.session.meter().charge(jobs.len() * 4)?;
    let mut sums: BTreeMap<u64, f64> = BTreeMap::new();
    for position in jobs.positions_by_id() {
        let bits = (group.numbers().values()[position] + 0.0).to_bits();
        *sums.entry(bits).or_default() += column.values()[position];
    }
    within_a_map(jobs, sums.len())?;
    let entry = |(bits, sum)| (group.name(f64::from_bits(bits)).into(), Dynamic::from(sum));
    Ok(sums.into_iter().map(entry).collect())
}

fn map_by(ctx: &NativeCallContext, jobs: &Jobs, group: &Dynamic, answer: FnPtr) -> Outcome<Column> {
    let group = Group::of(group)?;
    let groups = rows_by_group(jobs, &group)?;
    let closure = jobs.session.shared.closure(answer);
    let mut answers: BTreeMap<u64, f64> = BTreeMap::new();
    for (bits, rows) in groups {
        let set = jobs.some(rows);
        let value = closure.call(ctx.engine(), jobs.session.meter(), (set,))?;
        let Some(answer) = number(&value) else {
            let name = group.name(f64::from_bits(bits));
            return fail(format!(
                "map_by: the answer for `{name}` must be a number, got {}",
                type_label(&value)
            ));
        };
        answers.insert(bits, answer);
    }
    let numbers = group.numbers().values();
    let of_group = |number: &f64| answers.get(&(number + 0.0).to_bits()).copied().unwrap_or(f64::NAN);
    Column::compute(jobs, numbers.iter().map(of_group))
}

pub(crate) fn register(registrar: &mut Registrar<'_>) {
    const OWNER: &str = "Jobs";
    registrar
        .method(
            OWNER,
            "by(group) -> Map",
            "The jobs of each group as a set of its own: `jobs.by(jobs.tenant_name)[\"ann\"]`. A group is a column or a column \
             of texts; its number or text is the key.",
        )
        .register_fn("by", |jobs: Jobs, group: Dynamic| by(&jobs, &group));
    registrar
        .method(
            OWNER,
            "map_by(group, answer: Fn) -> Column",
            "For each job the number that a closure `|jobs|` gives for the jobs of its group, asked once for each group: \
             `jobs.map_by(jobs.tenant_name, |jobs| jobs.service.most())`.",
        )
        .register_fn("map_by", |ctx: NativeCallContext, jobs: Jobs, group: Dynamic, answer: FnPtr| {
            map_by(&ctx, &jobs, &group, answer)
        });
    registrar
        .method(
            "Column",
            "sum_by(group) -> Map",
            "The sum over the jobs of each group, by its number or text, as private memory can hold it: \
             `jobs.held.sum_by(jobs.tenant_name)[\"ann\"]`.",
        )
        .register_fn("sum_by", |column: Column, group: Dynamic| sum_by(&column, &group));
}
