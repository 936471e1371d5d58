//! A state of which one bit has changed, as on a bad disk: whatever bit it is, a head finds all that it rests on as it was, or does
//! not start and says why, and what it says to do makes a state of it that a head starts with.

use std::collections::BTreeMap;
use std::path::Path;

use rota_core::ids::{JobId, NodeId};
use rota_core::resources::Host;
use rota_core::time::{Span, Time};
use rota_transport::message::{BootId, Epoch, InstanceId, JobRequest, Lineage, Sequence};
use rota_transport::session::SeenReports;
use rota_transport::value::Name;

use super::{examine, repair};
use crate::ancestry::{self, Ancestry};
use crate::cluster_state::Image;
use crate::error::HeadError;
use crate::record::{NodeHas, Record};
use crate::rules::{ProfileText, Rules};
use crate::scribe::Scribe;
use crate::store::images::KeepJournal;
use crate::store::{Store, Write};

/// A number from the environment, for longer runs.
fn given(name: &str, otherwise: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(otherwise)
}

const KEEP: KeepJournal =
    KeepJournal { span: Span::from_secs(9_999), bytes: 1_000_000_000, image_every: 700 };

fn rules() -> Rules {
    Rules::plain(ProfileText::load("synergy").expect("built in"))
}

/// A state with everything in it: two starts, agents and their reports, jobs that have ended and others, images.
fn make(folder: &Path) {
    for start in 0..2_i64 {
        let mut store = Store::open(folder).expect("opened");
        Ancestry::begin(&store, start == 1).expect("begun");
        let agents = (0..20_u64).flat_map(|agent| {
            let name = Name::new(format!("node{agent}")).expect("a name");
            let seen = SeenReports { boot: BootId(agent << 40 | 77), last: Sequence(1_000 + agent) };
            [Write::Seen(name.clone(), seen), Write::Instance(name, InstanceId(agent << 32 | 5))]
        });
        store.commit(&agents.collect::<Vec<_>>()).expect("written");
        drop(store);
        let mut scribe = Scribe::open(folder, &rules(), KEEP).expect("opened");
        if start == 0 {
            let host = Host::from_units(24.0, 500.0, 1.0);
            let has = NodeHas { gpu_type: "V100".into(), n_gpus: 8, gpu_mem_bytes: 32 << 30, host };
            scribe
                .record(Time(1), Record::NodeJoined { node: NodeId(0), name: "node0".into(), rack: 0, has });
        }
        for n in 0..200 {
            let (now, job) = (Time(start * 1_000_000 + n), scribe.cluster().next_job());
            let request = Box::new(JobRequest::emulated(1 + job.0 % 8));
            scribe.record(now, Record::JobReceived { job, user: "ada".into(), key: job.0.into(), request });
            scribe.record(now, Record::JobSubmitted { job });
            if job.0.is_multiple_of(3) {
                scribe.record(now, Record::JobCancelled { job, user: "ada".into() });
            }
            if n % 10 == 0 {
                scribe.write().expect("written");
            }
        }
        scribe.write().expect("written");
    }
}

/// All that a head rests on.
#[derive(Debug, PartialEq)]
struct Foundation {
    state: Image,
    seen: Vec<(Name, SeenReports)>,
    instances: BTreeMap<Name, InstanceId>,
    epoch: Epoch,
    lineage: Lineage,
    n_jobs: JobId,
}

/// Starts with a state as a head does.
fn start(folder: &Path, accepts: bool) -> Result<Foundation, HeadError> {
    let store = Store::open(folder)?;
    let ancestry = Ancestry::begin(&store, accepts)?;
    let cluster = crate::run::fold(&store, &rules())?.cluster;
    Ok(Foundation {
        // Jobs that have ended are those of the history.
        state: cluster.image().without_ended(),
        seen: store.seen()?,
        instances: ancestry::instances(&store)?,
        epoch: ancestry.epoch(),
        lineage: ancestry.mark().lineage,
        n_jobs: cluster.next_job(),
    })
}

/// The next number of a sequence (splitmix64).
fn next(seed: &mut u64) -> u64 {
    *seed = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mixed = (*seed ^ (*seed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

fn copy(from: &Path) -> tempfile::TempDir {
    let to = tempfile::tempdir().expect("a folder");
    std::fs::copy(from.join("head.sqlite"), to.path().join("head.sqlite")).expect("copied");
    to
}

#[test]
fn a_changed_bit_is_found_before_anything_rests_on_it_and_there_is_a_way_out() {
    let good = tempfile::tempdir().expect("a folder");
    make(good.path());
    let expected = start(copy(good.path()).path(), false).expect("a good state");
    let (n_flips, seed) = (given("ROTA_FLIPS", 40), given("ROTA_SEED", 16));
    let mut random = seed;
    let n_bits = 8 * std::fs::metadata(good.path().join("head.sqlite")).expect("there").len();
    let mut n_refused = 0_u64;
    for _ in 0..n_flips {
        let bit = next(&mut random) % n_bits;
        let folder = copy(good.path());
        let path = folder.path().join("head.sqlite");
        let mut bytes = std::fs::read(&path).expect("read");
        bytes[(bit / 8) as usize] ^= 1 << (bit % 8);
        std::fs::write(&path, bytes).expect("written");
        let what = format!("bit {bit} (seed {seed})");
        let error = match start(folder.path(), false) {
            Ok(found) => {
                assert_eq!(found, expected, "{what}");
                continue;
            }
            Err(error) => error.to_string(),
        };
        n_refused += 1;
        assert!(error.contains("head.sqlite"), "{what}: {error}");
        let found = examine(folder.path()).unwrap_or_else(|fault| panic!("{what}: {error}, then {fault}"));
        assert!(!found.faults.is_empty() && !found.is_usable, "{what}: {error}, then {found:?}");
        repair(folder.path()).unwrap_or_else(|fault| panic!("{what}: {error}, then {fault}"));
        let after =
            start(folder.path(), true).unwrap_or_else(|again| panic!("{what}: {error}, then {again}"));
        assert!(after.n_jobs <= expected.n_jobs && after.lineage != expected.lineage, "{what}");
        assert!(after.epoch >= expected.epoch, "{what}: {after:?}");
        assert!(examine(folder.path()).expect("examined").is_usable, "{what}");
    }
    // Of the rest, lines before the last image are not needed, the history is only shown, and there is room.
    assert!(n_refused > n_flips / 10, "{n_refused} of {n_flips}");
}
