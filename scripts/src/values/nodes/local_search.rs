//! The search over splits, for scripts: `local_search(#{ splits: [...], prefer: ["fastest", "tightest"] })`.

use std::sync::Arc;

use rhai::{Array, Dynamic, ImmutableString, Map};
use rota_core::place::{Ask, LocalSearch, Merit, Place, Searching, Spots};
use rota_core::room::Room;

use crate::language::nearest;
use crate::language::reference::Registrar;
use crate::language::session::{Outcome, Session, fail};
use crate::values::node_rank::splits;
use crate::values::placement::{Failure, Placement};
use crate::values::type_label;

const MERITS: [(&str, Merit); 4] = [
    ("fastest", Merit::Fastest),
    ("tightest", Merit::Tightest),
    ("fewest_nodes", Merit::FewestNodes),
    ("fewest_switches", Merit::FewestSwitches),
];

fn search(options: &Map) -> Outcome<Placement> {
    const OPTIONS: [&str; 2] = ["splits", "prefer"];
    let mut search = LocalSearch::default();
    for (key, value) in options {
        match key.as_str() {
            "splits" => search.splits = splits("local_search", &array("splits", value)?)?,
            "prefer" => search.prefer = array("prefer", value)?.iter().map(merit).collect::<Outcome<_>>()?,
            other => {
                let hint = nearest::hint(other, OPTIONS)
                    .unwrap_or_else(|| format!("use one of {}", OPTIONS.join(", ")));
                return fail(format!("local_search: `{other}` is not an option: {hint}"));
            }
        }
    }
    Ok(Placement::LocalSearch(Arc::new(search)))
}

fn array(option: &str, value: &Dynamic) -> Outcome<Array> {
    match value.read_lock::<Array>() {
        Some(array) => Ok(array.clone()),
        None => fail(format!("local_search: `{option}` is an array, got {}", type_label(value))),
    }
}

fn merit(word: &Dynamic) -> Outcome<Merit> {
    let Some(word) = word.read_lock::<ImmutableString>() else {
        return fail(format!("local_search: `prefer` has words, got {}", type_label(word)));
    };
    match MERITS.iter().find(|(name, _)| *name == word.as_str()) {
        Some((_, merit)) => Ok(*merit),
        None => {
            let words = MERITS.map(|(name, _)| name);
            let hint = nearest::hint(&word, words).unwrap_or_else(|| format!("use {}", words.join(", ")));
            fail(format!("local_search: `prefer` does not know \"{}\": {hint}", *word))
        }
    }
}

/// A search at work: its work counts as the script's.
pub(crate) struct CountedSearch<'a> {
    searching: Searching<'a>,
    session: &'a Session,
    failure: &'a Failure,
}

impl<'a> CountedSearch<'a> {
    pub(crate) fn new(search: &'a LocalSearch, session: &'a Session, failure: &'a Failure) -> Self {
        CountedSearch { searching: Searching::new(search), session, failure }
    }
}

impl Place for CountedSearch<'_> {
    fn place(&mut self, room: &Room, ask: &Ask<'_>) -> Option<Spots> {
        if self.failure.borrow().is_some() {
            return None;
        }
        let found = self.searching.place(room, ask);
        match self.session.meter().charge(self.searching.work) {
            Ok(()) => found,
            Err(error) => {
                self.failure.borrow_mut().get_or_insert(error);
                None
            }
        }
    }
}

pub(crate) fn register(registrar: &mut Registrar<'_>) {
    registrar
        .function(
            "local_search(options: Map) -> Placement",
            "Tries all allowed splits of a job, each part on the fullest node that holds it, below each switch and across them, and takes \
             the best. Options: `splits`, a table as in `Placement.splits` (default: that of `switch-splits`); and `prefer`, what makes a \
             split better, the first word that tells two apart: `\"fastest\"` by the job's profile, `\"tightest\"` (fewest free GPUs left \
             on its nodes), `\"fewest_nodes\"`, `\"fewest_switches\"` (default: the first two). Jobs that are too wide for the table \
             are on the fewest nodes, else on the emptiest.",
        )
        .register_fn("local_search", || search(&Map::new()))
        .register_fn("local_search", |options: Map| search(&options));
}
