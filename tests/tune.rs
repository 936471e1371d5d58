//! The shipped tune compared with greedy, proportional and the original's tune, on a part of the table that `rota study tune` makes
//! whole: three splits, light and heavy load, three orders, gangs and single GPUs, means over seeds. Cells outside the bounds
//! are named one by one.

#[expect(dead_code, reason = "nothing is refused here")]
mod common;

use common::{rota, said};
use serde_json::Value;

const SEEDS: u32 = 3;
const SPLITS: [&str; 3] = ["20,70,10", "33,33,34", "50,0,50"];
const LOADS: [f64; 2] = [4.0, 9.0];
const ORDERS: [&str; 3] = ["fifo", "srtf", "las"];

/// The bounds, which were set before anything was measured: what the shipped tune may be above another, as a ratio of mean
/// completion times.
const ABOVE_ORIGINAL: f64 = 1.02;
const ABOVE_PROPORTIONAL: f64 = 1.02;
const ABOVE_GREEDY: f64 = 1.06;
/// The same while nobody queues, which is so for single GPUs at the light load.
const ABOVE_GREEDY_AT_EASE: f64 = 1.02;

/// A cell that is outside the bounds, and why. One that comes inside is to be taken out of this table and of docs/tune.md.
struct Outside {
    order: &'static str,
    split: &'static str,
    has_gangs: bool,
    jobs_per_hour: f64,
    than: &'static str,
    why: &'static str,
}

const OUTSIDE: [Outside; 2] = [
    Outside {
        order: "srtf",
        split: "50,0,50",
        has_gangs: false,
        jobs_per_hour: 9.0,
        than: "greedy",
        why: "no memory is left beyond the shares, so all jobs run at them; opt is 1.12 of greedy too (seed 1)",
    },
    Outside {
        order: "srtf",
        split: "50,0,50",
        has_gangs: true,
        jobs_per_hour: 4.0,
        than: "greedy",
        why: "tune gives a gang all it asks for, or a single job; opt gives many single jobs a little, and stops six times as \
              many for it",
    },
];

/// Mean completion times by load, of one policy over the seeds.
fn mean(policy: &str, split: &str, more: &str) -> Vec<f64> {
    let folder = tempfile::tempdir().expect("a folder");
    let mut sums = vec![0.0; LOADS.len()];
    for seed in 1..=SEEDS {
        let line = format!(
            "compare --json -q -p {policy} --split {split} --jobs-per-hour 4,9 --jobs 2500 --window 1000..2000 --seed {seed}{more}"
        );
        let found: Value = serde_json::from_str(&said(&rota(folder.path(), &line))).expect("JSON");
        for (sum, load) in sums.iter_mut().zip(LOADS) {
            let runs = found["runs"].as_array().expect("runs");
            let run = runs.iter().find(|run| run["jobs_per_hour"] == load).expect("a run of the load");
            *sum += run["avg_jct_s"].as_f64().expect("a time") / f64::from(SEEDS);
        }
    }
    sums
}

#[test]
fn tune_is_never_behind_what_it_is_measured_by() {
    let mut behind = String::new();
    for order in ORDERS {
        for (split, gangs) in SPLITS.iter().flat_map(|split| [(split, ""), (split, " --multi-gpu")]) {
            let of = |allocation: &str, more: &str| {
                mean(&format!("{order}+{allocation}"), split, &format!("{gangs}{more}"))
            };
            let tune = of("tune", "");
            let others = [
                ("the original's tune", of("tune", " --set compat=artifact"), ABOVE_ORIGINAL),
                ("proportional", of("proportional", ""), ABOVE_PROPORTIONAL),
                ("greedy", of("greedy", ""), ABOVE_GREEDY),
            ];
            for (name, other, most) in others {
                for (place, load) in LOADS.iter().enumerate() {
                    let is_at_ease = *load < 5.0 && gangs.is_empty();
                    let most = if name == "greedy" && is_at_ease { ABOVE_GREEDY_AT_EASE } else { most };
                    let ratio = tune[place] / other[place];
                    let cell =
                        format!("{order}, {split}{gangs}, {load}/h: {ratio:.3} of {name}, at most {most}");
                    let known = OUTSIDE.iter().find(|outside| {
                        (outside.order, outside.split, outside.than) == (order, *split, name)
                            && (outside.has_gangs, outside.jobs_per_hour) == (!gangs.is_empty(), *load)
                    });
                    match known {
                        None if ratio > most => behind += &format!("{cell}\n"),
                        Some(outside) if ratio <= most => {
                            behind +=
                                &format!("{cell}, and so inside the bounds, against: {}\n", outside.why);
                        }
                        _ => {}
                    }
                }
            }
        }
    }
    assert!(behind.is_empty(), "\n{behind}");
}

/// Speech models want all of a server's memory for half its GPUs. Greedy leaves the other half idle and under SRTF ends the
/// shortest jobs at full speed; tune runs everybody at its share. docs/tune.md has the decision.
#[test]
fn where_every_share_is_taken_greedy_is_ahead_under_srtf_and_the_tail_pays() {
    let tune = mean("srtf+tune", "0,0,100", "");
    let greedy = mean("srtf+greedy", "0,0,100", "");
    let ratio = tune[1] / greedy[1];
    assert!((1.0..1.2).contains(&ratio), "{ratio:.3}: if this is mended, docs/tune.md is to be written anew");
}
