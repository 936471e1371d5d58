//! The walk over a queue that gives jobs their GPUs: a script sets the options, the core walks.

use std::sync::Arc;

use rhai::{Dynamic, Engine, FnPtr, ImmutableString, NativeCallContext};
use rota_core::fill::{Answer, Counts, Demand, Fill, Givers, Misfit, Sequence, Walk};
use rota_core::reclaim::Reclaim;
use rota_core::resources::Host;
use rota_core::room::Room;

use crate::language::reference::Registrar;
use crate::language::session::{Closure, Outcome, fail};
use crate::values::placement::Failure;
use crate::values::{Column, JobValue, Placement, PlanValue, Queue, RoomValue, Strategy, type_label};

/// Asks a script what to offer a job that does not fit.
type Asking<'a> = Box<dyn FnMut(usize, &Room) -> Option<Host> + 'a>;

/// How a queue is served.
#[derive(Clone, Debug)]
pub(crate) struct FillValue {
    queue: Queue,
    give: Give,
    answers: Vec<OrElse>,
    gpus: Option<Column>,
    /// The rest of the walk; `give` and `gpus` fill in its demands and counts when it runs.
    walk: Walk,
    placement: Option<Placement>,
}

/// What each job is offered first.
#[derive(Clone, Debug)]
enum Give {
    Demand,
    FairShare,
    Asked(Closure),
}

/// What is tried with a job that does not fit.
#[derive(Clone, Debug)]
enum OrElse {
    FairShare,
    ReclaimExcess,
    Asked(Closure),
}

impl FillValue {
    pub(crate) fn new(queue: Queue) -> FillValue {
        FillValue {
            queue,
            give: Give::Demand,
            answers: Vec::new(),
            gpus: None,
            walk: Walk::default(),
            placement: None,
        }
    }

    fn walking(self, change: impl FnOnce(Walk) -> Walk) -> FillValue {
        FillValue { walk: change(self.walk), ..self }
    }

    /// With the proportional share of everything, and nothing else tried.
    pub(crate) fn fair_share(self) -> FillValue {
        FillValue { give: Give::FairShare, ..self }
    }

    /// Serves the queue.
    pub(crate) fn run(&self, engine: &Engine) -> Outcome<PlanValue> {
        let session = &self.queue.session;
        session.meter().charge(self.work())?;
        session.shared.note_queue(&self.queue.rows);
        let walk = Walk { demand: self.demand(engine)?, counts: self.counts()?, ..self.walk.clone() };
        let failure = Failure::default();
        let placement = self.placement.clone().unwrap_or_else(|| session.stage().placement.clone());
        let mut room = session.take_room();
        let granted = {
            let mut strategy = Strategy { engine, session, failure: &failure }.build(&placement);
            let mut asks = self.asks(engine, &failure);
            let mut answers: Vec<Answer<'_>> =
                self.answers.iter().zip(&mut asks).map(|(a, ask)| a.answer(ask)).collect();
            Fill::new(&session.snapshot, &mut room, &mut *strategy).run(&self.queue.rows, &walk, &mut answers)
        };
        session.give_room(room);
        match failure.into_inner() {
            Some(error) => Err(error),
            None => Ok(PlanValue::of(session, granted)),
        }
    }

    /// Steps of native work: jobs and nodes, and the jobs once more for each order of their own.
    fn work(&self) -> usize {
        let givers = match &self.walk.givers {
            Givers::Rows(rows) => Some(rows),
            Givers::Richest => None,
        };
        let walk = &self.walk;
        let sequences = [Some(&walk.packs), walk.rearranges.as_ref(), walk.tops_up.as_ref()];
        let rows = sequences.into_iter().flatten().filter_map(|sequence| match sequence {
            Sequence::Rows(rows) => Some(rows),
            Sequence::Queue | Sequence::LargestFirst => None,
        });
        let others = rows.chain(givers).filter(|rows| !Arc::ptr_eq(rows, &self.queue.rows));
        let n_nodes = self.queue.session.snapshot.cluster.nodes().len();
        self.queue.rows.len() + n_nodes + others.map(|rows| rows.len()).sum::<usize>()
    }

    /// An order of its own for a step of this walk.
    fn rows(&self, order: Dynamic) -> Outcome<Arc<Vec<u32>>> {
        let queue = Queue::from_value(&self.queue.session, order)?;
        match Arc::ptr_eq(&queue.session, &self.queue.session) {
            true => Ok(queue.rows),
            false => fail("this queue belongs to another round"),
        }
    }

    fn sequence(&self, order: Dynamic) -> Outcome<Sequence> {
        self.rows(order).map(Sequence::Rows)
    }

    /// Who gives back: a word or an order.
    fn givers(&self, value: Dynamic) -> Outcome<Givers> {
        match value.read_lock::<ImmutableString>().as_deref().map(|word| &**word) {
            Some("richest") => return Ok(Givers::Richest),
            Some(other) => return fail(unknown_word("or_else: givers", other, &["richest"])),
            None => {}
        }
        self.rows(value).map(Givers::Rows)
    }

    fn demand(&self, engine: &Engine) -> Outcome<Demand> {
        let closure = match &self.give {
            Give::Demand => return Ok(Demand::Best),
            Give::FairShare => return Ok(Demand::FairShare),
            Give::Asked(closure) => closure,
        };
        let session = &self.queue.session;
        let mut by_row = vec![Host::NONE; session.snapshot.jobs.len()];
        for row in self.queue.rows.iter() {
            let job = JobValue::new(session, *row);
            let value = closure.call(engine, session.meter(), (job.clone(),))?;
            match share_of(&job, &value).map_err(|error| closure.blame(error))? {
                Some(share) => by_row[*row as usize] = share.per(session.snapshot.jobs.gpus()[*row as usize]),
                None => {
                    return fail(format!(
                        "give: the closure must return a Share, got () for job {}",
                        job.id()
                    ));
                }
            }
        }
        Ok(Demand::PerGpu(by_row))
    }

    fn counts(&self) -> Outcome<Counts> {
        let Some(column) = &self.gpus else { return Ok(Counts::Asked) };
        let table = &self.queue.session.snapshot.jobs;
        let mut counts = vec![0; table.len()];
        for (position, value) in column.values().iter().enumerate() {
            let row = column.jobs.row_at(position);
            if value.fract() != 0.0 || !(0.0..=f64::from(u32::MAX)).contains(value) {
                return fail(format!("gpus: job {} cannot get {value} GPUs", table.id(row)));
            }
            counts[row] = *value as u32;
        }
        Ok(Counts::PerRow(counts))
    }

    /// One callback for each answer; native answers never call theirs.
    fn asks<'a>(&'a self, engine: &'a Engine, failure: &'a Failure) -> Vec<Asking<'a>> {
        let ask = |answer: &'a OrElse| -> Asking<'a> {
            match answer {
                OrElse::Asked(closure) => {
                    let takes_room = closure.n_arguments() > 1;
                    Box::new(move |row, room| self.ask(engine, closure, takes_room, row, room, failure))
                }
                _ => Box::new(|_, _| None),
            }
        };
        self.answers.iter().map(ask).collect()
    }

    fn ask(
        &self,
        engine: &Engine,
        closure: &Closure,
        takes_room: bool,
        row: usize,
        room: &Room,
        failure: &Failure,
    ) -> Option<Host> {
        if failure.borrow().is_some() {
            return None;
        }
        let session = &self.queue.session;
        let job = JobValue::new(session, row as u32);
        let answer = match takes_room {
            true => closure.call(engine, session.meter(), (job.clone(), RoomValue::copy(session, room))),
            false => closure.call(engine, session.meter(), (job.clone(),)),
        };
        match answer.and_then(|value| share_of(&job, &value).map_err(|error| closure.blame(error))) {
            Ok(share) => share.map(|s| s.per(session.snapshot.jobs.gpus()[row])),
            Err(error) => {
                *failure.borrow_mut() = Some(error);
                None
            }
        }
    }
}

impl OrElse {
    fn answer<'a>(&self, ask: &'a mut (dyn FnMut(usize, &Room) -> Option<Host> + 'a)) -> Answer<'a> {
        match self {
            OrElse::FairShare => Answer::FairShare,
            OrElse::ReclaimExcess => Answer::Reclaim(Reclaim::default()),
            OrElse::Asked(_) => Answer::Ask(ask),
        }
    }
}

fn share_of(job: &JobValue, value: &Dynamic) -> Outcome<Option<Host>> {
    if value.is_unit() {
        return Ok(None);
    }
    match value.read_lock::<Host>() {
        Some(share) => Ok(Some(*share)),
        None => fail(format!(
            "the closure must return a Share (such as `job.demand`) or (), got {} for job {}",
            type_label(value),
            job.id()
        )),
    }
}

pub(crate) fn register(registrar: &mut Registrar<'_>) {
    const OWNER: &str = "Fill";
    registrar.class::<FillValue>(OWNER, "A walk over a queue that gives jobs their GPUs. What `allocate` returns: it runs when the stage ends.");
    let engine = registrar.method(
        OWNER,
        "give(what) -> Fill",
        "CPUs and memory each job is offered first: `\"demand\"` (its best, the default), `\"fair_share\"`, or a closure \
         `|job|` that returns a Share.",
    );
    engine.register_fn("give", |fill: FillValue, what: ImmutableString| match &*what {
        "demand" => Ok(FillValue { give: Give::Demand, ..fill }),
        "fair_share" => Ok(FillValue { give: Give::FairShare, ..fill }),
        other => fail(unknown_word("give", other, &["demand", "fair_share"])),
    });
    engine.register_fn("give", |fill: FillValue, closure: FnPtr| {
        let closure = fill.queue.session.shared.closure(closure);
        FillValue { give: Give::Asked(closure), ..fill }
    });
    let engine = registrar.method(
        OWNER,
        "or_else(what, givers) -> Fill",
        "What is tried next with a job that does not fit: `\"fair_share\"` (no more than its proportional share of each \
         resource), `\"reclaim_excess\"` (its neighbours give back what they hold beyond theirs), or a closure `|job|` or \
         `|job, room|` that returns a Share, or `()` to give up. Several are tried in turn. `givers` says which \
         neighbours give back first: `\"richest\"` (the default: jobs on fewest nodes, then those with most CPUs for each GPU, \
         then with most memory), or a queue, `rank(...)`; jobs that are not in it give nothing.",
    );
    engine.register_fn("or_else", |fill: FillValue, what: ImmutableString| match &*what {
        "fair_share" => Ok(fill.answer(OrElse::FairShare)),
        "reclaim_excess" => Ok(fill.answer(OrElse::ReclaimExcess)),
        other => fail(unknown_word("or_else", other, &["fair_share", "reclaim_excess"])),
    });
    engine.register_fn("or_else", |fill: FillValue, what: ImmutableString, givers: Dynamic| match &*what {
        "reclaim_excess" => {
            let givers = fill.givers(givers)?;
            Ok(fill.walking(|walk| Walk { givers, ..walk }).answer(OrElse::ReclaimExcess))
        }
        other => fail(format!("or_else: only \"reclaim_excess\" has givers, not \"{other}\"")),
    });
    engine.register_fn("or_else", |fill: FillValue, closure: FnPtr| {
        let closure = fill.queue.session.shared.closure(closure);
        fill.answer(OrElse::Asked(closure))
    });
    options(registrar);
    let engine = registrar.method(OWNER, "run() -> Plan", "Walks now, for scripts that go on with the plan.");
    engine.register_fn("run", |ctx: NativeCallContext, fill: FillValue| fill.run(ctx.engine()));
    registrar.unknown_field::<FillValue>(OWNER);
}

fn options(registrar: &mut Registrar<'_>) {
    const OWNER: &str = "Fill";
    let engine = registrar.method(
        OWNER,
        "misfit(what: String) -> Fill",
        "What a job that does not fit means for those behind it: `\"skip\"` (they are tried, the default) or `\"stop\"`.",
    );
    engine.register_fn("misfit", |fill: FillValue, what: ImmutableString| match &*what {
        "skip" => Ok(fill.walking(|walk| Walk { misfit: Misfit::Skip, ..walk })),
        "stop" => Ok(fill.walking(|walk| Walk { misfit: Misfit::Stop, ..walk })),
        other => fail(unknown_word("misfit", other, &["skip", "stop"])),
    });
    let engine = registrar.method(
        OWNER,
        "select() -> Fill",
        "Walks only the jobs whose GPUs fit together, chosen in order.",
    );
    engine.register_fn("select", |fill: FillValue| fill.walking(|walk| Walk { only_selected: true, ..walk }));
    let engine = registrar.method(
        OWNER,
        "largest_first() -> Fill",
        "Among the jobs walked, those with most GPUs, then CPUs, then memory first.",
    );
    engine.register_fn("largest_first", |fill: FillValue| {
        fill.walking(|walk| Walk { packs: Sequence::LargestFirst, ..walk })
    });
    let engine = registrar.method(
        OWNER,
        "pack(order: Queue) -> Fill",
        "Serves the jobs walked in this order, `rank(...)`, instead of the queue's: the first has the first choice of CPUs, \
         memory and place. Which jobs run is still chosen by the queue after `select()`. Jobs that are not in the order come \
         last.",
    );
    engine.register_fn("pack", |fill: FillValue, order: Dynamic| -> Outcome<FillValue> {
        let packs = fill.sequence(order)?;
        Ok(fill.walking(|walk| Walk { packs, ..walk }))
    });
    let engine = registrar.method(
        OWNER,
        "gpus(counts: Column) -> Fill",
        "GPUs for each job instead of what it asked for; 0 leaves it out. For elastic jobs.",
    );
    engine.register_fn("gpus", |fill: FillValue, counts: Column| FillValue { gpus: Some(counts), ..fill });
    let engine = registrar.method(
        OWNER,
        "keep_places(keep: bool) -> Fill",
        "Whether jobs that keep running stay on their GPUs; `true` is the default.",
    );
    engine.register_fn("keep_places", |fill: FillValue, keep_places: bool| {
        fill.walking(|walk| Walk { keep_places, ..walk })
    });
    let engine = registrar.method(
        OWNER,
        "stayers_first() -> Fill",
        "Serves the jobs that stay on their GPUs before all others, so that newcomers take what is left and not their \
         CPUs and memory.",
    );
    engine.register_fn("stayers_first", |fill: FillValue| {
        fill.walking(|walk| Walk { stayers_first: true, ..walk })
    });
    let engine = registrar.method(
        OWNER,
        "rearrange(order: Queue) -> Fill",
        "After the walk, gives jobs below their demand all of it where that is possible: where they are, by moving them, \
         or by changing places with jobs that need less. The jobs are looked at in this order (`rearrange()`: in the queue's). \
         A job may claim what jobs behind it hold beyond their share, the last first; a job that is not in the order is behind \
         all others and is not raised. No job is brought below its share, and a job is moved only after it has run ten times \
         as long as a restart takes.",
    );
    engine.register_fn("rearrange", |fill: FillValue| {
        fill.walking(|walk| Walk { rearranges: Some(Sequence::Queue), ..walk })
    });
    engine.register_fn("rearrange", |fill: FillValue, order: Dynamic| -> Outcome<FillValue> {
        let rearranges = Some(fill.sequence(order)?);
        Ok(fill.walking(|walk| Walk { rearranges, ..walk }))
    });
    let engine = registrar.method(
        OWNER,
        "top_up(order: Queue) -> Fill",
        "At the end, gives what is left on each node to the jobs there that are below their demand, in this order \
         (`top_up()`: in the queue's); jobs that are not in it get nothing.",
    );
    engine.register_fn("top_up", |fill: FillValue| {
        fill.walking(|walk| Walk { tops_up: Some(Sequence::Queue), ..walk })
    });
    engine.register_fn("top_up", |fill: FillValue, order: Dynamic| -> Outcome<FillValue> {
        let tops_up = Some(fill.sequence(order)?);
        Ok(fill.walking(|walk| Walk { tops_up, ..walk }))
    });
    let engine = registrar.method(
        OWNER,
        "first_nodes(count: int) -> Fill",
        "Places jobs only on the first `count` nodes; the others are left off once they are empty.",
    );
    engine.register_fn("first_nodes", |fill: FillValue, count: i64| -> Outcome<FillValue> {
        if count < 0 {
            return fail(format!("first_nodes: {count} nodes cannot be used"));
        }
        let first_nodes = Some(u32::try_from(count).unwrap_or(u32::MAX));
        Ok(fill.walking(|walk| Walk { first_nodes, ..walk }))
    });
    let engine = registrar.method(
        OWNER,
        "place(placement: Placement) -> Fill",
        "Where jobs go, instead of what the `place` stage said.",
    );
    engine.register_fn("place", |fill: FillValue, placement: Placement| FillValue {
        placement: Some(placement),
        ..fill
    });
}

impl FillValue {
    fn answer(mut self, answer: OrElse) -> FillValue {
        self.answers.push(answer);
        self
    }
}

fn unknown_word(verb: &str, word: &str, known: &[&str]) -> String {
    let known: Vec<String> = known.iter().map(|k| format!("\"{k}\"")).collect();
    format!("{verb}: knows {}, not \"{word}\"", known.join(", "))
}
