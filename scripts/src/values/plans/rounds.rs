//! Rounds by shares of time, for scripts: who runs now, so that over time everybody gets the part of the time it is due on each
//! type of GPU. The mechanism is `rota_core::by_share`; what it has to remember is in `book`.
//!
//! ```text
//! let rounds = view.rounds(this.rounds ?? "");
//! if rounds.is_due { rounds.set(#{ A100: column, T4: column }); }
//! let plan = rounds.plan(#{});
//! this.rounds = rounds.memory;
//! ```

use std::cmp::Reverse;
use std::sync::Arc;

use rhai::{Array, Dynamic, ImmutableString, Map};
use rota_core::allocation::{Allocation, BESIDE, Slice};
use rota_core::by_share::{self, Account, Claimant};
use rota_core::fill::{Demand, Fill, Quotas, Walk};
use rota_core::ids::GpuTypeId;
use rota_core::place::Consolidate;
use rota_core::plan::{Hold, Run};
use rota_core::table::JobPhase;

use super::book::{Book, Who};
use crate::language::nearest;
use crate::language::reference::Registrar;
use crate::language::session::{Outcome, Session, fail};
use crate::models::optimum::{fair_rate, leave_only};
use crate::values::gpu_types::{gpu_type, is_allowed};
use crate::values::milp::matrix::Matrix;
use crate::values::milp::pairs::{PairsValue, beside};
use crate::values::{Column, JobValue, Jobs, PlanValue, View, number, type_label};

/// Shares below this are a solver's dust.
const DUST: f64 = 1e-6;

/// The accounts of a decision.
#[derive(Clone, Debug)]
pub(crate) struct RoundsValue {
    session: Arc<Session>,
    jobs: Jobs,
    book: Book,
}

impl View {
    fn rounds(&self, memory: &str, options: &Map) -> Outcome<RoundsValue> {
        let jobs = self.jobs();
        let mut reset_s = 1920.0;
        for (key, value) in options {
            match (key.as_str(), number(value)) {
                ("reset", Some(seconds)) if seconds >= 0.0 => reset_s = seconds,
                ("reset", _) => return fail(format!("rounds: `reset` is seconds, 0 or more, got {value}")),
                (other, _) => return fail(unknown("rounds", other, &["reset"])),
            }
        }
        self.0.meter().charge(jobs.len() * 8 + memory.len() / 8)?;
        let Some(mut book) = Book::read(memory) else {
            return fail(
                "rounds: this is no memory of rounds: keep `rounds.memory` in `this` and hand it back",
            );
        };
        book.reset_s = reset_s;
        let mut rounds = RoundsValue { session: Arc::clone(&self.0), jobs, book };
        rounds.bring_up_to_date();
        Ok(rounds)
    }
}

fn unknown(verb: &str, key: &str, keys: &[&str]) -> String {
    let hint = nearest::hint(key, keys.iter().copied());
    let hint = hint.unwrap_or_else(|| format!("use one of {}", keys.join(", ")));
    format!("{verb}: `{key}` is not an option: {hint}")
}

impl RoundsValue {
    /// Credits what has run since the last round, and forgets jobs that are gone.
    fn bring_up_to_date(&mut self) {
        let snapshot = &self.session.snapshot;
        let now = snapshot.now.as_secs_f64();
        let n_types = snapshot.cluster.gpu_types().len();
        let table = &snapshot.jobs;
        if self.book.n_types != n_types {
            self.book = Book { reset_s: self.book.reset_s, n_types, ..Book::default() };
        }
        let is_there = |id: u32| table.row(rota_core::ids::JobId(id)).is_some();
        self.book.entries.retain(|who, _| who.ids().all(is_there));
        let begin_s = snapshot.round.as_secs_f64() / 2.0;
        self.book.begin_s = begin_s;
        if let Some(last) = self.book.last_s {
            let mates = mates(&self.session);
            for row in (0..table.len()).filter(|row| table.phase(*row) == JobPhase::Running) {
                let Some(first) = table.allocation(row).slices.first() else { continue };
                let who = match mates[row] {
                    Some(mate) if table.id(mate) < table.id(row) => continue,
                    Some(mate) => Who::pair(table.id(row).0, table.id(mate).0),
                    None => Who::alone(table.id(row).0),
                };
                let ran_s = now - table.started(row).as_secs_f64().max(last);
                let t = snapshot.cluster.gpu_type_of(first.node).index();
                self.book.entry(who)[t].received_s += ran_s.max(0.0);
            }
        }
    }

    /// What the shares depend on: who is there with what, and how many GPUs are up.
    fn cause(&self) -> u64 {
        let snapshot = &self.session.snapshot;
        let jobs = self.jobs.positions_by_id().map(|position| self.jobs.row_at(position));
        let of_job = |row: usize| {
            let spec = snapshot.jobs.spec(row);
            [u64::from(snapshot.jobs.id(row).0), u64::from(spec.gpus.asked), spec.priority as u64]
        };
        let up = self.gpus_up().into_iter().map(u64::from);
        // FNV-1a, over whole words.
        let words = jobs.flat_map(of_job).chain(up);
        words.fold(0xcbf2_9ce4_8422_2325, |hash, word| (hash ^ word).wrapping_mul(0x0100_0000_01b3))
    }

    fn gpus_up(&self) -> Vec<u32> {
        let snapshot = &self.session.snapshot;
        let mut up = vec![0; snapshot.cluster.gpu_types().len()];
        for node in snapshot.cluster.nodes() {
            up[node.gpu_type.index()] += snapshot.nodes.usable(node).len();
        }
        up
    }

    fn is_due(&self) -> bool {
        self.book.cause != Some(self.cause())
    }

    /// New shares for all; accounts that were open long enough are closed and opened anew.
    fn set(&mut self, shares: &Map, together: Together<'_>) -> Outcome<()> {
        let session = Arc::clone(&self.session);
        let snapshot = &session.snapshot;
        let now = snapshot.now.as_secs_f64();
        let open_s = self.book.opened_s.map(|opened| now - opened);
        if open_s.is_none_or(|open_s| open_s >= self.book.reset_s) {
            self.book.reopen(open_s.unwrap_or(0.0));
            self.book.opened_s = Some(now);
        }
        self.book.clear_shares();
        for (name, value) in shares {
            let t = gpu_type(&session, name)?.index();
            let Some(column) = value.read_lock::<Column>() else {
                return fail(format!("set: `{name}` must be a column, got {}", type_label(value)));
            };
            session.meter().charge(column.jobs.len() * 4)?;
            for (position, share) in column.values().iter().enumerate() {
                let row = column.jobs.row_at(position);
                let share = checked(*share, || format!("job {}", snapshot.jobs.id(row)))?;
                if share > 0.0 {
                    self.book.entry(Who::alone(snapshot.jobs.id(row).0))[t].share = share;
                }
            }
        }
        if let Together::Listed(list) = together {
            session.meter().charge(list.len() * 8)?;
            for item in list {
                self.set_pair(item)?;
            }
        }
        if let Together::Matrix(pairs, matrix) = together {
            if !Arc::ptr_eq(&pairs.jobs().session, &session) {
                return fail("set: these pairs belong to another round");
            }
            let Some(entries) = pairs.entries(matrix) else {
                return fail(format!(
                    "set: shares of pairs are a matrix of pairs and GPU types, got one of {}",
                    matrix.sides()
                ));
            };
            session.meter().charge(matrix.values().len())?;
            for (rows, shares) in entries {
                let [a, b] = rows.map(|row| snapshot.jobs.id(row).0);
                for (t, share) in shares.into_iter().enumerate() {
                    let share = checked(share, || format!("jobs {a} and {b}"))?;
                    if share > 0.0 {
                        self.book.entry(Who::pair(a, b))[t].share = share;
                    }
                }
            }
        }
        self.book.cause = Some(self.cause());
        Ok(())
    }

    /// `#{jobs: [a, b], shares: #{A100: 0.5}}`.
    fn set_pair(&mut self, item: &Dynamic) -> Outcome<()> {
        let session = Arc::clone(&self.session);
        let map = item.read_lock::<Map>();
        let found = map.as_deref().and_then(|map| {
            let jobs = map.get("jobs")?.read_lock::<Array>()?.clone();
            let shares = map.get("shares")?.read_lock::<Map>()?.clone();
            (jobs.len() == 2 && map.len() == 2).then_some((jobs, shares))
        });
        let Some((jobs, shares)) = found else {
            return fail(format!(
                "set: a pair is written #{{jobs: [a, b], shares: #{{A100: 0.5}}}}, got {}",
                type_label(item)
            ));
        };
        let [a, b] = [JobValue::from_value(&session, &jobs[0])?, JobValue::from_value(&session, &jobs[1])?]
            .map(|job| job.id().0);
        if a == b {
            return fail(format!("set: job {a} is paired with itself"));
        }
        for (name, value) in &shares {
            let t = gpu_type(&session, name)?.index();
            let Some(share) = number(value) else {
                return fail(format!(
                    "set: the share of jobs {a} and {b} must be a number, got {}",
                    type_label(value)
                ));
            };
            self.book.entry(Who::pair(a, b))[t].share = checked(share, || format!("jobs {a} and {b}"))?;
        }
        Ok(())
    }

    /// Who runs in this round.
    fn plan(&mut self, options: &Map) -> Outcome<PlanValue> {
        let mut fills = true;
        for (key, value) in options {
            match (key.as_str(), value.as_bool()) {
                ("fill", Ok(fill)) => fills = fill,
                ("fill", Err(_)) => {
                    return fail(format!("plan: `fill` is true or false, got {}", type_label(value)));
                }
                (other, _) => return fail(unknown("plan", other, &["fill"])),
            }
        }
        let session = Arc::clone(&self.session);
        session.meter().charge((self.jobs.len() + self.book.entries.len()) * 8)?;
        self.book.last_s = Some(session.snapshot.now.as_secs_f64());
        let (rows, mut claimants) = self.claimants();
        let n_types = self.book.n_types;
        let received =
            |t: usize| claimants.iter().map(|claimant| claimant.accounts[t].received_s).sum::<f64>();
        let received: Vec<f64> = (0..n_types).map(received).collect();
        by_share::set_priorities(&mut claimants, &received);
        let mut quotas = Quotas::new(&session.snapshot);
        let allowed = |at: usize| {
            let gpus = claimants[at].gpus;
            let taken = rows[at].iter().take_while(|row| quotas.take(**row, gpus)).count();
            if taken < rows[at].len() {
                rows[at][..taken].iter().for_each(|row| quotas.give(*row, gpus));
            }
            taken == rows[at].len()
        };
        let mut chosen = by_share::choose_anywhere(&claimants, &self.gpus_up(), allowed);
        if fills {
            self.fill_idle(&rows, &claimants, &mut chosen, &mut quotas);
        }
        Ok(self.placed(&rows, &chosen))
    }

    /// Every job alone, then every pair that has an account; with the rows of the table that they are.
    fn claimants(&self) -> (Vec<Vec<usize>>, Vec<Claimant>) {
        let snapshot = &self.session.snapshot;
        let ids: Vec<usize> =
            self.jobs.positions_by_id().map(|position| self.jobs.row_at(position)).collect();
        let number_of =
            |row: usize| ids.binary_search_by_key(&snapshot.jobs.id(row), |row| snapshot.jobs.id(*row)).ok();
        let (mut rows, mut claimants) = (Vec::new(), Vec::new());
        let fresh = vec![Account { received_s: self.book.begin_s, ..Account::default() }; self.book.n_types];
        let account = |known: &Account, can_run: bool| Account { can_run, ..*known };
        for (number, row) in ids.iter().enumerate() {
            let entries = self.book.entries.get(&Who::alone(snapshot.jobs.id(*row).0)).unwrap_or(&fresh);
            let accounts = entries.iter().enumerate();
            let accounts =
                accounts.map(|(t, entry)| account(entry, is_allowed(snapshot, *row, GpuTypeId::from(t))));
            let (gpus, accounts) = (snapshot.jobs.gpus()[*row], accounts.collect());
            claimants.push(Claimant { jobs: [number as u32].into_iter().collect(), gpus, accounts });
            rows.push(vec![*row]);
        }
        for (who, entries) in self.book.entries.iter().filter(|(who, _)| who.second.is_some()) {
            let found: Vec<usize> =
                who.ids().filter_map(|id| snapshot.jobs.row(rota_core::ids::JobId(id))).collect();
            let numbers: Vec<u32> = found.iter().filter_map(|row| Some(number_of(*row)? as u32)).collect();
            let (&[first, second], 2) = (found.as_slice(), numbers.len()) else { continue };
            let accounts = entries.iter().enumerate();
            let accounts = accounts.map(|(t, entry)| {
                let rates = beside(snapshot, first, second, GpuTypeId::from(t));
                account(entry, rates.iter().all(|rate| *rate > 0.0))
            });
            let (gpus, accounts) = (snapshot.jobs.gpus()[first], accounts.collect());
            claimants.push(Claimant { jobs: numbers.into_iter().collect(), gpus, accounts });
            rows.push(found);
        }
        (rows, claimants)
    }

    /// Jobs that were passed over run where GPUs are left, each on the type where it is fastest: those that are owed most first.
    fn fill_idle(
        &self,
        rows: &[Vec<usize>],
        claimants: &[Claimant],
        chosen: &mut [Vec<usize>],
        quotas: &mut Quotas<'_>,
    ) {
        let snapshot = &self.session.snapshot;
        let mut free = self.gpus_up();
        let mut is_busy = vec![false; self.jobs.len()];
        for (t, at) in
            chosen.iter().enumerate().flat_map(|(t, of_type)| of_type.iter().map(move |at| (t, *at)))
        {
            free[t] -= claimants[at].gpus;
            claimants[at].jobs.iter().for_each(|job| is_busy[*job as usize] = true);
        }
        let owed = |at: usize| claimants[at].accounts.iter().map(|account| account.deficit_s).sum::<f64>();
        let mut waiting: Vec<usize> = (0..self.jobs.len()).filter(|at| !is_busy[*at]).collect();
        waiting.sort_by(|a, b| owed(*b).total_cmp(&owed(*a)).then(a.cmp(b)));
        for at in waiting {
            let (row, gpus) = (rows[at][0], claimants[at].gpus);
            let fits = (0..free.len()).filter(|t| free[*t] >= gpus && claimants[at].accounts[*t].can_run);
            let spec = snapshot.jobs.spec(row);
            let rate = |t: usize| fair_rate(&snapshot.cluster, spec, gpus, GpuTypeId::from(t));
            // Of equals the first.
            let best = fits.map(|t| (t, rate(t))).fold(None, |best: Option<(usize, f64)>, next| match best {
                Some(best) if best.1 >= next.1 => Some(best),
                _ => Some(next),
            });
            if let Some((t, rate)) = best
                && rate > 0.0
                && quotas.take(row, gpus)
            {
                free[t] -= gpus;
                chosen[t].push(at);
            }
        }
    }

    /// GPUs for those who run: jobs stay where they are on the type they are to have, a pair goes where one of the two is.
    fn placed(&self, rows: &[Vec<usize>], chosen: &[Vec<usize>]) -> PlanValue {
        let snapshot = &self.session.snapshot;
        let jobs = &snapshot.jobs;
        let is_on = |row: usize, gpu_type: GpuTypeId| {
            jobs.allocation(row)
                .slices
                .first()
                .is_some_and(|slice| snapshot.cluster.gpu_type_of(slice.node) == gpu_type)
        };
        let walk = Walk { demand: Demand::FairShare, ..Walk::default() };
        let mut room = self.session.take_room();
        let mut value = PlanValue::new(&self.session);
        let mut mate_of = vec![None; jobs.len()];
        for (t, chosen) in chosen.iter().enumerate() {
            let gpu_type = GpuTypeId::from(t);
            leave_only(snapshot, &mut room, gpu_type);
            let mut leaders = Vec::new();
            for at in chosen {
                let members = &rows[*at];
                let leader = members.iter().copied().find(|row| is_on(*row, gpu_type)).unwrap_or(members[0]);
                mate_of[leader] = members.iter().copied().find(|row| *row != leader);
                leaders.push(leader as u32);
            }
            leaders.sort_by_key(|row| Reverse(jobs.gpus()[*row as usize]));
            let granted =
                Fill::new(snapshot, &mut room, &mut Consolidate::default()).run(&leaders, &walk, &mut []);
            for granted in granted {
                let leader = granted.row as usize;
                let Some(mate) = mate_of[leader] else {
                    value.plan.run.push(granted.into_run(snapshot));
                    continue;
                };
                let half = |slice: &Slice| Slice { share: BESIDE, host: slice.host.per(2), ..*slice };
                let both = Allocation { slices: granted.slices.iter().map(half).collect() };
                for row in [leader, mate] {
                    let is_same = jobs.phase(row) == JobPhase::Running && *jobs.allocation(row) == both;
                    let what = if is_same { Hold::Keep } else { Hold::Take(both.clone()) };
                    value.plan.run.push(Run { job: jobs.id(row), what });
                }
            }
        }
        self.session.give_room(room);
        value
    }
}

/// Shares of two jobs together.
#[derive(Clone, Copy)]
enum Together<'a> {
    Nobody,
    Matrix(&'a PairsValue, &'a Matrix),
    Listed(&'a Array),
}

/// For each row, that of the job that has the same GPUs at the same time.
fn mates(session: &Session) -> Vec<Option<usize>> {
    let jobs = &session.snapshot.jobs;
    let mut at = std::collections::BTreeMap::new();
    let mut mates = vec![None; jobs.len()];
    for row in 0..jobs.len() {
        if let Some(first) = jobs.allocation(row).slices.first().filter(|first| first.is_beside())
            && let Some(mate) = at.insert((first.node, first.gpus.0), row)
        {
            (mates[row], mates[mate]) = (Some(mate), Some(row));
        }
    }
    mates
}

/// A share of time, without dust.
fn checked(share: f64, whose: impl Fn() -> String) -> Outcome<f64> {
    match share {
        share if share.is_finite() && (-DUST..=1.0 + DUST).contains(&share) => {
            Ok(if share < DUST { 0.0 } else { share })
        }
        share => fail(format!("set: the share of {} is {share}: it goes from 0 to 1", whose())),
    }
}

pub(crate) fn register(registrar: &mut Registrar<'_>) {
    const OWNER: &str = "Rounds";
    registrar.class::<RoundsValue>(
        OWNER,
        "Rounds by shares of time (Gavel, OSDI'20): a script says which part of the time each job is due on each type of GPU, and in each \
         round those run that have received least of it.",
    );
    let engine = registrar.method(
        "View",
        "rounds(memory: String, options: Map) -> Rounds",
        "The accounts as the last round left them in `Rounds.memory`; an empty text at first. Option: `reset`, for how many seconds accounts stay \
         open at least (1920): when shares are set after that, what was due and not received becomes a deficit, which decides between equals, \
         and accounts begin anew.",
    );
    engine.register_fn("rounds", |view: View, memory: ImmutableString| view.rounds(&memory, &Map::new()));
    engine.register_fn("rounds", |view: View, memory: ImmutableString, options: Map| {
        view.rounds(&memory, &options)
    });
    let engine = registrar.field(
        OWNER,
        "is_due: bool",
        "Whether shares are to be set: none were, or jobs or GPUs have come or gone since, or a priority has changed.",
    );
    engine.register_get("is_due", |rounds: &mut RoundsValue| rounds.is_due());
    let engine = registrar.method(
        OWNER,
        "set(shares: Map)",
        "The part of the time, from 0 to 1, that each job is due on each type: `rounds.set(#{ A100: column, T4: column })`; nothing on types that \
         are not named.",
    );
    engine.register_fn("set", |rounds: &mut RoundsValue, shares: Map| rounds.set(&shares, Together::Nobody));
    let engine = registrar.method(
        OWNER,
        "set(shares: Map, pairs: Pairs, together: Matrix)",
        "The same, and the parts of the time that pairs are due together on each type.",
    );
    engine.register_fn(
        "set",
        |rounds: &mut RoundsValue, shares: Map, pairs: PairsValue, together: Matrix| {
            rounds.set(&shares, Together::Matrix(&pairs, &together))
        },
    );
    let engine = registrar.method(
        OWNER,
        "set(shares: Map, pairs: Array)",
        "The same, with pairs one by one: `#{jobs: [a, b], shares: #{A100: 0.5}}`.",
    );
    engine.register_fn("set", |rounds: &mut RoundsValue, shares: Map, pairs: Array| {
        rounds.set(&shares, Together::Listed(&pairs))
    });
    let engine = registrar.method(
        OWNER,
        "plan(options: Map) -> Plan",
        "Who runs in this round: highest priority first over all jobs, pairs and types, where priority is the share over the part of the time received \
         since the accounts were opened; each job once, on GPUs of one type, with its proportional share of the host. GPUs that are left go to jobs \
         that are due nothing, unless `fill` is false.",
    );
    engine.register_fn("plan", |rounds: &mut RoundsValue| rounds.plan(&Map::new()));
    engine.register_fn("plan", |rounds: &mut RoundsValue, options: Map| rounds.plan(&options));
    let engine =
        registrar.field(OWNER, "memory: String", "The accounts as text, to be kept in `this`, after `plan`.");
    engine.register_get("memory", |rounds: &mut RoundsValue| -> Outcome<Dynamic> {
        rounds.session.meter().charge(rounds.book.entries.len() * 8)?;
        Ok(Dynamic::from(ImmutableString::from(rounds.book.write())))
    });
    registrar.unknown_field::<RoundsValue>(OWNER);
}
