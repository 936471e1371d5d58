//! How a policy is drawn, the same in every report: its order has a colour and a mark, its allocation a dash.

use rota_scripts::shipped::{self, Role};

use super::figure::{GREY, PALETTE_LENGTH};

/// Orders with the place of their colour. Kin have the same one (tiresias is las with queues, themis is ftf by leases), and
/// those that papers compare have different ones.
const ORDERS: [(&str, usize); 39] = [
    ("fifo", 0),
    ("srtf", 1),
    ("las", 2),
    ("ftf", 3),
    ("drf", 4),
    ("tetris", 5),
    ("srsf", 6),
    ("gavel-maxmin", 7),
    ("gavel-las", 2),
    ("gavel-maxmin-packed", 5),
    ("gavel-water-filling", 6),
    ("gavel-finish-time", 3),
    ("gavel-makespan", 4),
    ("gavel-throughput", 9),
    ("gavel-fifo", 0),
    ("gavel-isolated", 8),
    ("gandiva-fair", 8),
    ("gavel-proportional", 4),
    ("allox", 1),
    ("gandiva-packing", 8),
    ("elasticflow", 1),
    ("elasticflow-opt", 7),
    ("elasticflow-open", 4),
    ("edf", 9),
    ("edf-admission", 5),
    ("gandiva", 8),
    ("tiresias", 2),
    ("tiresias-gittins", 5),
    ("themis", 3),
    ("chronus", 0),
    ("chronus-deadlines", 6),
    ("just-in-time", 4),
    ("no-preempt", 8),
    ("optimus", 6),
    ("easy-backfill", 5),
    ("conservative-backfill", 9),
    ("fair-share", 3),
    ("mlfq", 8),
    ("srsf-aging", 7),
];
/// Allocations with their dash: how often the palette has come round.
const ALLOCATIONS: [(&str, usize); 4] = [("proportional", 0), ("tune", 1), ("greedy", 2), ("opt", 3)];
/// Dashes that are told apart.
pub(super) const N_DASHES: usize = 4;

/// The place in the palette of each of several policies that are drawn together. Where two would look alike, the later one
/// gets the next dash or colour that is free.
pub(crate) fn styles<'a>(policies: impl IntoIterator<Item = &'a str>) -> Vec<usize> {
    let mut taken: Vec<usize> = Vec::new();
    for policy in policies {
        let (colour, dash) = own(policy);
        let dashes = (0..N_DASHES).map(|more| colour + (dash + more) % N_DASHES * PALETTE_LENGTH);
        let colours = (1..GREY).flat_map(|more| {
            let colour = (colour + more) % GREY;
            (0..N_DASHES).map(move |step| colour + (dash + step) % N_DASHES * PALETTE_LENGTH)
        });
        // The same policy of several folders must be told apart at a glance: by colours as long as there are some.
        let is_of_folder = policy.contains(" (");
        let n_own = if is_of_folder { 1 } else { N_DASHES };
        let n_colours = if is_of_folder { GREY } else { 1 };
        let bright = (1..n_colours).map(|more| (colour + more) % GREY + dash * PALETTE_LENGTH);
        let mut all = dashes.clone().take(n_own).chain(bright).chain(colours).chain(dashes.skip(n_own));
        let free = all.find(|style| !taken.contains(style));
        taken.push(free.unwrap_or(colour + dash * PALETTE_LENGTH));
    }
    taken
}

/// Colour and dash of a policy alone.
fn own(policy: &str) -> (usize, usize) {
    // On a page of several folders a name ends with the folder: `las (before)`.
    let name = policy.split(" (").next().unwrap_or(policy);
    // `part:stage` is one stage of a part.
    let part = |part: &'_ str| part.split(':').next().unwrap_or_default().trim().to_owned();
    let parts: Vec<String> = name.split('+').map(part).collect();
    let role = |part: &str| shipped::find(part).map(|script| script.role);
    let order = parts.iter().find(|part| matches!(role(part), Some(Role::Policy) | None));
    let known = |table: &[(&str, usize)], name: &str| {
        table.iter().find(|(known, _)| *known == name).map(|(_, place)| *place)
    };
    // What orders by arrival is drawn as fifo, and a script of the user's own by its name, wherever it lies.
    let colour = order.map_or(0, |order| known(&ORDERS, order).unwrap_or_else(|| by_name(order)));
    let dash = parts.iter().find_map(|part| known(&ALLOCATIONS, part)).unwrap_or(0);
    (colour, dash)
}

fn by_name(part: &str) -> usize {
    let name = part.rsplit(['/', '\\']).next().unwrap_or(part);
    let hash =
        name.bytes().fold(0x811c_9dc5_u32, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193));
    hash as usize % GREY
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_policy_looks_the_same_in_any_company() {
        let alone = styles(["las+tune"]);
        assert_eq!(alone, [2 + PALETTE_LENGTH], "green and dashed");
        assert_eq!(styles(["fifo", "srtf+tune", "las+tune"])[2], alone[0]);
        assert_eq!(styles(["las"]), styles(["las+proportional"]));
        assert_eq!(styles(["./a/mine.rhai"]), styles(["/b/mine.rhai+first-fit"]));
    }

    #[test]
    fn policies_drawn_together_never_look_alike() {
        let names: Vec<String> = (0..30).map(|n| format!("las+./p{n}.rhai")).collect();
        let drawn = styles(names.iter().map(String::as_str).chain(["las (before)", "las (after)"]));
        let mut different = drawn.clone();
        different.sort_unstable();
        different.dedup();
        assert_eq!(different.len(), drawn.len());
        assert!(drawn.iter().all(|style| style % PALETTE_LENGTH != GREY), "grey is for limits");
        let folders = styles(["las (before)", "las (after)", "las (later)"]);
        let colours: std::collections::BTreeSet<usize> =
            folders.iter().map(|look| look % PALETTE_LENGTH).collect();
        assert_eq!(colours.len(), 3, "folders differ in colour: {folders:?}");
    }

    #[test]
    fn every_shipped_order_and_allocation_has_its_look() {
        for script in shipped::ALL {
            let table: &[(&str, usize)] = match script.role {
                Role::Policy => &ORDERS,
                Role::Allocation => &ALLOCATIONS,
                Role::Admission | Role::Placement | Role::Model | Role::Study => continue,
            };
            assert!(table.iter().any(|(name, _)| *name == script.name), "{} has none", script.name);
        }
    }
}
