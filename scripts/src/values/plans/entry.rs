//! What a job holds on one node, as scripts write and read it: `#{node: 3, gpus: [0, 1], cpus: 6, mem_gb: 125}`.

use rhai::{Array, Dynamic, Map};
use rota_core::allocation::{BESIDE, GpuSet, Slice, WHOLE_GPU};
use rota_core::cluster::MAX_GPUS_PER_NODE;
use rota_core::ids::NodeId;
use rota_core::resources::Host;

use crate::language::nearest;
use crate::language::session::{Outcome, Session, fail};
use crate::values::share::checked;
use crate::values::{number, type_label};

const KEYS: [&str; 8] = ["node", "gpus", "cpus", "mem_gb", "storage", "share", "beside", "host"];

/// An entry that a script handed to a verb.
pub(crate) fn read(verb: &str, session: &Session, value: Dynamic) -> Outcome<Slice> {
    let label = type_label(&value).to_owned();
    let Some(map) = value.try_cast::<Map>() else {
        return fail(format!(
            "{verb}: expected entries like #{{node: 0, gpus: [0], cpus: 3, mem_gb: 60}}, got {label}"
        ));
    };
    if let Some(key) = map.keys().find(|key| !KEYS.contains(&key.as_str())) {
        let hint = nearest::hint(key, KEYS).unwrap_or_else(|| format!("use one of {}", KEYS.join(", ")));
        return fail(format!("{verb}: `{key}` means nothing in an entry: {hint}"));
    }
    let node = node(verb, session, map.get("node"))?;
    let share = amount(verb, &map, "share", 1.0)?;
    if !(0.001..=1.0).contains(&share) {
        return fail(format!("{verb}: a share of {share} of a GPU: it goes from 0.001 to 1"));
    }
    let is_beside = match map.get("beside").map(Dynamic::as_bool) {
        None => false,
        Some(Ok(true)) if map.contains_key("share") => {
            return fail(format!(
                "{verb}: an entry has a `share` in turns, or `beside` for the same time, not both"
            ));
        }
        Some(Ok(is_beside)) => is_beside,
        Some(Err(label)) => return fail(format!("{verb}: `beside` must be true or false, got {label}")),
    };
    Ok(Slice {
        node,
        gpus: gpus(verb, session, node, map.get("gpus"))?,
        share: if is_beside { BESIDE } else { (share * f64::from(WHOLE_GPU)).round() as u16 },
        host: host(verb, &map)?,
    })
}

/// As a script reads it, and may hand it to a verb again.
pub(crate) fn written(slice: &Slice) -> Dynamic {
    let mut map = Map::new();
    map.insert("node".into(), Dynamic::from(i64::from(slice.node.0)));
    let gpus: Array = slice.gpus.iter().map(|gpu| Dynamic::from(i64::from(gpu))).collect();
    map.insert("gpus".into(), Dynamic::from(gpus));
    map.insert("host".into(), Dynamic::from(slice.host));
    if slice.is_beside() {
        map.insert("beside".into(), Dynamic::from(true));
    } else if slice.share != WHOLE_GPU {
        map.insert("share".into(), Dynamic::from(f64::from(slice.share) / f64::from(WHOLE_GPU)));
    }
    Dynamic::from(map)
}

fn amount(verb: &str, map: &Map, key: &str, otherwise: f64) -> Outcome<f64> {
    match map.get(key) {
        None => Ok(otherwise),
        Some(value) => match number(value) {
            Some(amount) if amount >= 0.0 => Ok(amount),
            _ => fail(format!("{verb}: `{key}` must be a number that is not negative, got {value}")),
        },
    }
}

/// CPUs, memory and storage rate: amount by amount, or as a Share.
fn host(verb: &str, map: &Map) -> Outcome<Host> {
    let Some(value) = map.get("host") else {
        let amount = |key: &str| amount(verb, map, key, 0.0);
        return checked(amount("cpus")?, amount("mem_gb")?, amount("storage")?);
    };
    if let Some(key) = ["cpus", "mem_gb", "storage"].into_iter().find(|key| map.contains_key(*key)) {
        return fail(format!("{verb}: an entry has `host` or `{key}`, not both"));
    }
    match value.read_lock::<Host>() {
        Some(host) => Ok(*host),
        None => fail(format!("{verb}: `host` must be a Share, got {}", type_label(value))),
    }
}

fn node(verb: &str, session: &Session, value: Option<&Dynamic>) -> Outcome<NodeId> {
    let n_nodes = session.snapshot.cluster.nodes().len();
    let number = value.and_then(|v| v.as_int().ok());
    match number.and_then(|n| usize::try_from(n).ok()).filter(|n| *n < n_nodes) {
        Some(index) => Ok(NodeId::from(index)),
        None => match value {
            Some(value) => {
                fail(format!("{verb}: there is no node {value}: nodes go from 0 to {}", n_nodes - 1))
            }
            None => fail(format!("{verb}: an entry lacks its `node`")),
        },
    }
}

fn gpus(verb: &str, session: &Session, node: NodeId, value: Option<&Dynamic>) -> Outcome<GpuSet> {
    let n_gpus = i64::from(session.snapshot.cluster.nodes()[node.index()].n_gpus.min(MAX_GPUS_PER_NODE));
    let Some(array) = value.and_then(|v| v.read_lock::<Array>()) else {
        return fail(format!("{verb}: `gpus` must be an array of GPU numbers, such as [0, 1]"));
    };
    let mut set = GpuSet::NONE;
    for item in array.iter() {
        match item.as_int() {
            Ok(gpu) if (0..n_gpus).contains(&gpu) => set = set.or(GpuSet::one(gpu as u32)),
            _ => {
                return fail(format!(
                    "{verb}: node {node} has no GPU {item}: they go from 0 to {}",
                    n_gpus - 1
                ));
            }
        }
    }
    Ok(set)
}
