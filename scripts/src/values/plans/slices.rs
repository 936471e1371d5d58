//! Time slicing for scripts: `view.time_slice(view.queue, #{ most: 16, together: view.jobs.gpus })`.

use std::sync::Arc;

use rhai::{Dynamic, Map};
use rota_core::plan::{Hold, Run};
use rota_core::turns::{TurnRules, take_turns};

use crate::language::nearest;
use crate::language::reference::Registrar;
use crate::language::session::{Outcome, fail};
use crate::values::{Column, PlanValue, Queue, View, type_label};

/// What a script says about sharing.
#[derive(Debug)]
struct Options {
    most: usize,
    together: Option<Column>,
}

impl Options {
    fn read(options: &Map) -> Outcome<Options> {
        const KEYS: [&str; 2] = ["most", "together"];
        let mut read = Options { most: 16, together: None };
        for (key, value) in options {
            match key.as_str() {
                "most" => {
                    let most = value.as_int().ok().and_then(|most| usize::try_from(most).ok());
                    let Some(most) = most.filter(|most| (1..=1000).contains(most)) else {
                        return fail(format!(
                            "time_slice: `most` is a whole number from 1 to 1000, got {value}"
                        ));
                    };
                    read.most = most;
                }
                "together" => {
                    let Some(column) = value.clone().try_cast::<Column>() else {
                        let got = type_label(value);
                        return fail(format!(
                            "time_slice: `together` is a Column, one key for each job, got {got}"
                        ));
                    };
                    read.together = Some(column);
                }
                other => {
                    let hint = nearest::hint(other, KEYS)
                        .unwrap_or_else(|| format!("use one of {}", KEYS.join(", ")));
                    return fail(format!("time_slice: `{other}` is not an option: {hint}"));
                }
            }
        }
        Ok(read)
    }
}

impl View {
    fn time_slice(&self, queue: &Queue, options: &Map) -> Outcome<PlanValue> {
        let snapshot = &self.0.snapshot;
        if !Arc::ptr_eq(&queue.session, &self.0) {
            return fail("this queue belongs to another round");
        }
        let options = Options::read(options)?;
        let keys = options.together.map(|column| self.keys(queue, &column)).transpose()?;
        let n_gpus = snapshot.cluster.n_gpus() as usize;
        self.0.meter().charge(queue.rows.len() * n_gpus.max(16) + n_gpus)?;
        let mut value = PlanValue::new(&self.0);
        let rules = TurnRules { most: options.most, together: keys.as_deref() };
        for (row, allocation) in take_turns(snapshot, &queue.rows, &rules) {
            let job = snapshot.jobs.id(row as usize);
            let is_same = *snapshot.jobs.allocation(row as usize) == allocation;
            let what = if is_same { Hold::Keep } else { Hold::Take(allocation) };
            value.plan.run.push(Run { job, what });
        }
        Ok(value)
    }

    /// The keys by row of the table; every job of the queue must have one.
    fn keys(&self, queue: &Queue, column: &Column) -> Outcome<Vec<f64>> {
        let snapshot = &self.0.snapshot;
        if !Arc::ptr_eq(&column.jobs.session, &self.0) {
            return fail("time_slice: `together` belongs to another round");
        }
        self.0.meter().charge(queue.rows.len())?;
        let mut keys = vec![0.0; snapshot.jobs.gpus().len()];
        for &row in queue.rows.iter() {
            let key = column.jobs.position_of(row as usize).map(|position| column.values()[position]);
            match key {
                Some(key) if !key.is_nan() => keys[row as usize] = key,
                _ => {
                    let name = &snapshot.jobs.spec(row as usize).name;
                    let what = if key.is_some() { "a key that is not a number" } else { "no key" };
                    return fail(format!("time_slice: `together` has {what} for job {name}"));
                }
            }
        }
        Ok(keys)
    }
}

pub(crate) fn register(registrar: &mut Registrar<'_>) {
    let engine = registrar.method(
        "View",
        "time_slice(queue: Queue, options: Map) -> Plan",
        "All jobs run with the GPUs they ask for; where there are too few, gangs take turns on them, each with its share of \
         the GPU. Free GPUs go first, in the order of the queue; then a gang joins the gangs with its own key, on the GPUs \
         that have the fewest; then any. Jobs that run stay, unless elsewhere are fewer, or as many and all of their key. \
         Options: `together`, a Column with the keys (without it all are alike), and `most`, how many gangs may share one \
         GPU (16): jobs for which there is no turn left wait.",
    );
    engine.register_fn("time_slice", |view: View, queue: Queue, options: Map| {
        view.time_slice(&queue, &options)
    });
    engine.register_fn("time_slice", |view: View, jobs: Dynamic, options: Map| {
        view.time_slice(&Queue::from_value(&view.0, jobs)?, &options)
    });
}
