//! Where a state comes from: its lineage, every start of a head on it, and which other states it takes the place of. An agent
//! says what it knows when it connects; a head whose history does not contain that was restored from an older copy, or has
//! another state altogether, and must not give orders before an operator has accepted that.

use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::fs::MetadataExt as _;
use std::time::UNIX_EPOCH;

use rota_transport::message::{Epoch, Hello, InstanceId, Lineage, StartId, StateMark};
use rota_transport::value::Name;

use crate::store::rows::Table;
use crate::store::{Store, StoreError};

/// Epochs left out when a restore is accepted: the lost state may have used them.
const EPOCH_MARGIN: u64 = 1_000;

/// The history of a state, as far as it tells it from others.
#[derive(Clone, Debug)]
pub(crate) struct Ancestry {
    epoch: Epoch,
    mark: StateMark,
    /// Each start's number, and the first line of the journal that it wrote.
    starts: BTreeMap<Epoch, (StartId, u64)>,
    replaced: BTreeSet<Lineage>,
    accepts: bool,
    is_copy: bool,
}

/// What an agent is to this state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kinship {
    /// It serves this state, or none so far.
    Own,
    /// It serves a state that this one takes the place of.
    Replaced(Lineage),
    /// The same, and nobody knew of that state before.
    NewlyReplaced(Lineage),
}

/// An agent that cannot be given orders.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum AncestryError {
    /// It knows more of this state than this head does.
    #[error(
        "{agent} knows a later state of this cluster: line {line} of the journal, written in epoch {epoch}; this state was restored \
         from an older copy. Start the head with the newer state, or with --accept-restore if that is lost"
    )]
    Later {
        /// The agent's name.
        agent: Name,
        /// The line it knows.
        line: u64,
        /// The epoch that it was written in.
        epoch: Epoch,
    },
    /// It serves another state.
    #[error(
        "{agent} serves another state (lineage {theirs}, this head's is {ours}). If this head takes the place of the one it served, \
         start it with --accept-restore; if the agent comes from another cluster, start it with an empty --run-dir"
    )]
    Foreign {
        /// The agent's name.
        agent: Name,
        /// The lineage it serves.
        theirs: Lineage,
        /// The lineage of this state.
        ours: Lineage,
    },
}

impl Ancestry {
    /// Begins a start of a head: draws its epoch and its number, on the disk before they are used. A restore that an operator
    /// accepts begins a new lineage.
    pub(crate) fn begin(store: &Store, accepts: bool) -> Result<Self, StoreError> {
        let wrong = |error| store.error(error);
        let known = store.meta("lineage")?.and_then(|text| text.parse().ok()).map(Lineage);
        let file = file_text(store)?;
        let is_copy = known.is_some() && store.meta(FILE_KEY)?.is_none_or(|known| !is_file(&known, &file));
        store.set_meta(FILE_KEY, &file)?;
        let lineage = match known {
            Some(known) if !accepts => known,
            known => {
                if let Some(known) = known {
                    Table::Replaced.put(store.database(), vec![(known.0 as i64).into()]).map_err(wrong)?;
                    let last = store.meta("epoch")?.and_then(|text| text.parse().ok()).unwrap_or(0_u64);
                    store.set_meta("epoch", &last.saturating_add(EPOCH_MARGIN).to_string())?;
                }
                Lineage::draw()
            }
        };
        store.set_meta("lineage", &lineage.0.to_string())?;
        let (epoch, start) = (store.next_epoch()?, StartId::draw());
        let journal = store.position();
        let row = vec![(epoch.0 as i64).into(), (start.0 as i64).into(), ((journal + 1) as i64).into()];
        Table::Starts.put(store.database(), row).map_err(wrong)?;
        let mut query =
            store.database().prepare("SELECT epoch, id, first_line FROM starts").map_err(wrong)?;
        let rows = query
            .query_map([], |row| Ok((row.get::<_, i64>(0)?, row.get::<_, i64>(1)?, row.get::<_, i64>(2)?)))
            .map_err(wrong)?;
        let mut starts = BTreeMap::new();
        for row in rows {
            let (epoch, id, line) = row.map_err(wrong)?;
            starts.insert(Epoch(epoch as u64), (StartId(id as u64), line as u64));
        }
        let mut query = store.database().prepare("SELECT lineage FROM replaced").map_err(wrong)?;
        let rows = query.query_map([], |row| row.get::<_, i64>(0)).map_err(wrong)?;
        let replaced = rows.map(|row| row.map(|lineage| Lineage(lineage as u64))).collect::<Result<_, _>>();
        let replaced = replaced.map_err(wrong)?;
        let mark = StateMark { lineage, start, journal };
        Ok(Ancestry { epoch, mark, starts, replaced, accepts, is_copy })
    }

    /// A history without a disk, which nothing came before.
    #[cfg(test)]
    pub(crate) fn of_test() -> Self {
        let mark = StateMark { lineage: Lineage(1), start: StartId(1), journal: 0 };
        let starts = [(Epoch(1), (StartId(1), 1))].into();
        Ancestry { epoch: Epoch(1), mark, starts, replaced: BTreeSet::new(), accepts: false, is_copy: false }
    }

    pub(crate) fn epoch(&self) -> Epoch {
        self.epoch
    }

    /// What agents are told about this state; lines of the journal are added when it is sent.
    pub(crate) fn mark(&self) -> StateMark {
        self.mark
    }

    /// Whether an operator accepted a restore with this start.
    pub(crate) fn accepts(&self) -> bool {
        self.accepts
    }

    /// Whether the state is not in the file in which the last head kept it.
    pub(crate) fn is_copy(&self) -> bool {
        self.is_copy
    }

    /// What an agent that greets is to this state.
    pub(crate) fn judge(&self, hello: &Hello) -> Result<Kinship, AncestryError> {
        let known = hello.knows.mark;
        // One that never served a head of a lineage: the epoch alone counts, and the session looks at that.
        if known.lineage == Lineage::NONE {
            return Ok(Kinship::Own);
        }
        if known.lineage == self.mark.lineage {
            return match self.contains(hello.epoch, known) {
                true => Ok(Kinship::Own),
                false => {
                    let (agent, line, epoch) = (hello.name.clone(), known.journal, hello.epoch);
                    Err(AncestryError::Later { agent, line, epoch })
                }
            };
        }
        if self.replaced.contains(&known.lineage) {
            return Ok(Kinship::Replaced(known.lineage));
        }
        if self.accepts {
            return Ok(Kinship::NewlyReplaced(known.lineage));
        }
        let (theirs, ours) = (known.lineage, self.mark.lineage);
        Err(AncestryError::Foreign { agent: hello.name.clone(), theirs, ours })
    }

    /// Takes the place of another state from now on; the caller writes it to the disk.
    pub(crate) fn replace(&mut self, lineage: Lineage) {
        self.replaced.insert(lineage);
    }

    /// Whether what an agent knows is part of this history: the start that wrote it is known, and wrote that far.
    fn contains(&self, epoch: Epoch, known: StateMark) -> bool {
        let is_it = self.starts.get(&epoch).is_some_and(|(start, _)| *start == known.start);
        let next = self.starts.range(epoch.next()..).next();
        is_it && next.is_none_or(|(_, (_, first_line))| known.journal < *first_line)
    }
}

/// Run directories of agents as the last head knew them.
pub(crate) fn instances(store: &Store) -> Result<BTreeMap<Name, InstanceId>, StoreError> {
    let wrong = |error| store.error(error);
    let mut query = store.database().prepare("SELECT name, instance FROM instances").map_err(wrong)?;
    let rows =
        query.query_map([], |row| Ok((row.get::<_, String>(0)?, row.get::<_, i64>(1)?))).map_err(wrong)?;
    let mut found = BTreeMap::new();
    for row in rows {
        let (name, instance) = row.map_err(wrong)?;
        if let Ok(name) = Name::new(name) {
            found.insert(name, InstanceId(instance as u64));
        }
    }
    Ok(found)
}

/// Under which key the file of a state is noted in it.
pub(crate) const FILE_KEY: &str = "file";

/// Which file a state is in: a copy is another one, even under the same name. The number of a removed file is soon that of a new
/// one, so it counts when the file was made, too, where the file system knows.
fn file_text(store: &Store) -> Result<String, StoreError> {
    let metadata = std::fs::metadata(store.path());
    let metadata = metadata.map_err(|error| StoreError::File { path: store.path().to_owned(), error })?;
    let made = metadata.created().ok().and_then(|made| made.duration_since(UNIX_EPOCH).ok());
    let made = made.map_or_else(String::new, |made| format!(":{}", made.as_nanos()));
    Ok(format!("{}:{}{made}", metadata.dev(), metadata.ino()))
}

/// Whether what a state says of its file is true of the one that it is in. Earlier versions did not note when it was made.
fn is_file(known: &str, file: &str) -> bool {
    known == file
        || file
            .strip_prefix(known)
            .is_some_and(|rest| rest.starts_with(':') && known.matches(':').count() == 1)
}

#[cfg(test)]
mod tests {
    use rota_core::time::Time;
    use rota_transport::message::{BootId, Knowledge, PROTOCOL_VERSION, Sequence};
    use rota_transport::value::Text;

    use super::*;
    use crate::record::Record;
    use crate::store::Write;

    fn hello(epoch: Epoch, mark: StateMark) -> Hello {
        Hello {
            protocol: PROTOCOL_VERSION,
            name: Name::new("node0").expect("a name"),
            version: Text::cut("1"),
            boot: BootId(1),
            epoch,
            address: Text::cut("here"),
            instance: InstanceId(1),
            knows: Knowledge { mark, ..Knowledge::default() },
            acknowledged: Sequence(0),
        }
    }

    fn write(store: &mut Store, n_lines: usize) {
        let line = Write::Record(Time(1), Record::Noted { text: "a line".into() });
        store.commit(&vec![line; n_lines]).expect("written");
    }

    /// A head that starts, writes some lines and ends; what its agents know then.
    fn run(folder: &std::path::Path, accepts: bool, n_lines: usize) -> (Epoch, StateMark) {
        let mut store = Store::open(folder).expect("opened");
        let ancestry = Ancestry::begin(&store, accepts).expect("begun");
        write(&mut store, n_lines);
        (ancestry.epoch(), StateMark { journal: store.position(), ..ancestry.mark() })
    }

    fn judged(
        folder: &std::path::Path,
        accepts: bool,
        known: (Epoch, StateMark),
    ) -> Result<Kinship, AncestryError> {
        let store = Store::open(folder).expect("opened");
        Ancestry::begin(&store, accepts).expect("begun").judge(&hello(known.0, known.1))
    }

    fn copy(from: &std::path::Path) -> tempfile::TempDir {
        let to = tempfile::tempdir().expect("a folder");
        for name in ["head.sqlite", "head.sqlite-wal"] {
            let _ = std::fs::copy(from.join(name), to.path().join(name));
        }
        to
    }

    #[test]
    fn agents_of_every_earlier_start_are_known_and_those_of_a_later_state_are_not() {
        let folder = tempfile::tempdir().expect("a folder");
        let first = run(folder.path(), false, 3);
        let old = copy(folder.path());
        let second = run(folder.path(), false, 3);
        assert_eq!(judged(folder.path(), false, first), Ok(Kinship::Own));
        assert_eq!(judged(folder.path(), false, second), Ok(Kinship::Own));
        // The copy starts with the epoch of the second start, and soon has a longer journal than the agents have seen.
        assert_eq!(judged(old.path(), false, first), Ok(Kinship::Own));
        run(old.path(), false, 100);
        let error = judged(old.path(), false, second).expect_err("a later state").to_string();
        assert!(
            error.starts_with("node0 knows a later state") && error.contains("--accept-restore"),
            "{error}"
        );
        let further = (first.0, StateMark { journal: first.1.journal + 1, ..first.1 });
        assert!(
            matches!(judged(old.path(), false, further), Err(AncestryError::Later { .. })),
            "of the same start"
        );
    }

    #[test]
    fn an_accepted_restore_takes_the_place_of_what_agents_serve_and_the_old_copy_does_not_come_back() {
        let folder = tempfile::tempdir().expect("a folder");
        let first = run(folder.path(), false, 3);
        let old = copy(folder.path());
        let second = run(folder.path(), false, 3);
        let (epoch, mark) = run(old.path(), true, 1);
        assert!(epoch.0 > second.0.0 && mark.lineage != second.1.lineage, "{epoch} {mark:?}");
        // Without the option, too: agents that were away come back later.
        for known in [first, second] {
            assert_eq!(judged(old.path(), false, known), Ok(Kinship::Replaced(known.1.lineage)));
        }
        let back = judged(folder.path(), false, (epoch, mark)).expect_err("the state before the restore");
        assert!(back.to_string().contains("serves another state"), "{back}");
        assert_eq!(judged(folder.path(), true, (epoch, mark)), Ok(Kinship::NewlyReplaced(mark.lineage)));
    }

    #[test]
    fn a_copy_of_a_state_is_known_by_its_file() {
        let folder = tempfile::tempdir().expect("a folder");
        run(folder.path(), false, 1);
        let old = copy(folder.path());
        let is_copy = |folder: &std::path::Path| {
            let store = Store::open(folder).expect("opened");
            Ancestry::begin(&store, false).expect("begun").is_copy()
        };
        assert_eq!((is_copy(folder.path()), is_copy(old.path()), is_copy(old.path())), (false, true, false));
        // A backup is one even where nothing tells its file from that of the head: put over it, for instance.
        let to = tempfile::tempdir().expect("a folder");
        crate::backup::backup(folder.path(), to.path()).expect("made");
        std::fs::write(
            folder.path().join("head.sqlite"),
            std::fs::read(to.path().join("head.sqlite")).expect("read"),
        )
        .expect("written");
        assert_eq!((is_copy(folder.path()), is_copy(folder.path())), (true, false));
    }

    #[test]
    fn a_file_is_known_by_its_number_and_when_it_was_made() {
        for (known, file, same) in [
            ("8:77:123", "8:77:123", true),
            ("8:77:123", "8:77:124", false),
            ("8:77", "8:77:123", true),
            ("8:7", "8:77:123", false),
            ("8:77:12", "8:77:123", false),
            ("a backup", "8:77:123", false),
            ("8:77", "8:77", true),
        ] {
            assert_eq!(is_file(known, file), same, "{known} {file}");
        }
    }
}
