//! What the orders with a memory do over many rounds, against a few lines of arithmetic: `fair-share`, `mlfq`, `srsf-aging`.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use rota_scripts::scenario::{parse, run};
use rota_scripts::{Limits, ScriptPolicy};

/// The rounds of a small world, one line each.
fn rounds(world: &str, policy: &str, set: &[(&str, &str)], n_rounds: usize) -> Vec<String> {
    let text = format!("scenario: over time\n{world}policy {policy}\nrounds {n_rounds}\n----\n");
    let scenarios = parse(&text).unwrap_or_else(|error| panic!("{error}"));
    let mut loaded = ScriptPolicy::load(policy, Limits::default()).unwrap_or_else(|error| panic!("{error}"));
    for (key, value) in set {
        loaded.set(key, value).unwrap_or_else(|error| panic!("{error}"));
    }
    run(&scenarios[0], &mut loaded).actual
}

/// The jobs that run in a round, each with its number of GPUs: `0: a 0[0-1] 6c 100g, b 0[2] 3c 50g | waits c`.
fn running(line: &str) -> Vec<(String, u32)> {
    let (_, rest) = line.split_once(": ").unwrap_or_else(|| panic!("no decision: {line}"));
    let entries = rest.split(" | ").next().unwrap_or_default().split(", ");
    let gpus = |place: &str| -> u32 {
        let places = place.split('+').map(|part| {
            let ranges = part.split_once('[').expect("GPUs").1.trim_end_matches(']').split(',');
            let sizes = ranges.map(|range| {
                let (first, last) = range.split_once('-').unwrap_or((range, range));
                last.parse::<u32>().expect("a GPU") + 1 - first.parse::<u32>().expect("a GPU")
            });
            sizes.sum::<u32>()
        });
        places.sum()
    };
    let entry = |entry: &str| {
        let mut words = entry.split(' ');
        (words.next().expect("a name").to_owned(), gpus(words.next().expect("places")))
    };
    entries.filter(|entry| *entry != "nobody" && !entry.is_empty()).map(entry).collect()
}

/// GPU-rounds of each tenant, whose jobs begin with its name.
fn gpu_rounds(lines: &[String]) -> BTreeMap<String, f64> {
    let mut of: BTreeMap<String, f64> = BTreeMap::new();
    for (job, gpus) in lines.iter().flat_map(|line| running(line)) {
        let tenant = job.trim_end_matches(|c: char| c.is_ascii_digit()).to_owned();
        *of.entry(tenant).or_default() += f64::from(gpus);
    }
    of
}

/// Tenants with endless jobs of mixed gangs on eight GPUs, a round of 300 s.
fn busy(tenants: &[(&str, u32)], n_jobs: usize) -> String {
    let mut world = "cluster 2 nodes, 4 gpus, 12 cpus, 200 GB\n".to_owned();
    for number in 0..n_jobs {
        for (tenant, work) in tenants {
            let gpus = [1, 2, 1, 4][number % 4];
            let _ = writeln!(world, "job {tenant}{number} tenant={tenant} gpus={gpus} work={work}");
        }
    }
    world
}

#[test]
fn shares_of_busy_tenants_approach_their_weights() {
    let world = busy(&[("ann", 1500), ("ben", 2100), ("cid", 900)], 130);
    let weights = [("weights", "ann:5 ben:2"), ("half_life", "6000")];
    let used = gpu_rounds(&rounds(&world, "fair-share", &weights, 200));
    let all: f64 = used.values().sum();
    assert!(all > 0.95 * 8.0 * 200.0, "{all} of 1600 GPU-rounds are used");
    for (tenant, weight) in [("ann", 5.0), ("ben", 2.0), ("cid", 1.0)] {
        let (share, due) = (used[tenant] / all, weight / 8.0);
        assert!((share - due).abs() < 0.03, "{tenant} has {share:.3}, its weight is {due:.3} of all");
    }
}

#[test]
fn a_tenant_that_was_away_catches_up_and_then_has_its_share() {
    let mut world = busy(&[("ann", 1500)], 90);
    for number in 0..160 {
        let _ = writeln!(world, "job ben{number} tenant=ben gpus=1 work=1500 at=6000");
    }
    let lines = rounds(&world, "fair-share", &[("half_life", "3000")], 150);
    // Alone until 6000 s, two half-lives, so that ann held 6 of 8 GPUs on average: ben has all until they are near.
    let early = gpu_rounds(&lines[20..24]);
    assert!(early["ben"] >= 0.9 * 8.0 * 4.0, "{early:?}");
    let late = gpu_rounds(&lines[70..150]);
    let share = late["ben"] / (late["ann"] + late["ben"]);
    assert!((share - 0.5).abs() < 0.04, "{share}");
}

/// Jobs that start and end between two rounds are never seen running; they are charged all the same.
#[test]
fn jobs_shorter_than_a_round_are_not_free() {
    let mut world = "cluster 4 nodes, 4 gpus, 12 cpus, 200 GB\n".to_owned();
    for number in 0..1600 {
        let _ = writeln!(world, "job brief{number} tenant=brief work=150");
        if number < 120 {
            let _ = writeln!(world, "job long{number} tenant=long work=3000");
        }
    }
    let used = gpu_rounds(&rounds(&world, "fair-share", &[("half_life", "3000")], 120));
    // What is evened out is the average and a tenth of the GPUs given now: of b and l GPUs, b / 2 + b / 10 = l + l / 10, so b is
    // 11 of 17. If brief jobs were free, b / 10 = l + l / 10: 11 of 12.
    let share = used["brief"] / (used["brief"] + used["long"]);
    assert!((share - 11.0 / 17.0).abs() < 0.03, "{share}: {used:?}");
}

#[test]
fn weights_that_cannot_be_read_are_an_error() {
    let mut loaded = ScriptPolicy::load("fair-share", Limits::default()).expect("shipped");
    for wrong in ["ann=3", "ann:three", ":3", "ann:0", "ann:-1", "ann:3,ben:1", "ann:3 ann:1"] {
        let said = loaded.set("weights", wrong).expect_err("not weights").to_string();
        let expected =
            "is not names with numbers from 0.001 to 1000000000, each name once, as in ann:3 ben:1";
        assert!(said.contains(&format!("`{wrong}` {expected}")), "{said}");
    }
    loaded.set("weights", "  ann:3   ben:0.5 ").expect("weights");
    let (_, weights) =
        loaded.params().into_iter().find(|(_, parameter)| parameter.name == "weights").expect("declared");
    assert_eq!(weights.value.to_string(), "ann:3 ben:0.5");
}

/// When jobs of one GPU run on a single GPU, round by round.
fn turns(lines: &[String]) -> String {
    let names = lines.iter().map(|line| running(line).first().map_or("-".to_owned(), |(job, _)| job.clone()));
    names.collect::<Vec<_>>().join(" ")
}

const ONE_GPU: &str = "cluster 1 nodes, 1 gpus, 3 cpus, 50 GB\n";

#[test]
fn mlfq_gives_each_level_twice_the_time() {
    // Two endless jobs, slices of one round: each level has twice the rounds of the one above, the last repeats.
    let world = format!("{ONE_GPU}job a work=90000\njob b work=90000\n");
    let lines = rounds(&world, "mlfq", &[("slice", "300"), ("levels", "3")], 22);
    assert_eq!(turns(&lines), "a b a a b b a a a a b b b b a a a a b b b b");
}

#[test]
fn mlfq_lets_a_new_job_in_at_once_and_boosts_the_old_one() {
    let mut world = format!("{ONE_GPU}job old work=90000\n");
    // A new job every 600 s, each of two rounds: without a boost the old one never runs again.
    for number in 1..20 {
        let _ = writeln!(world, "job n{number} work=600 at={}", number * 600);
    }
    let never = rounds(&world, "mlfq", &[("slice", "600"), ("boost", "1e9")], 20);
    assert_eq!(turns(&never[2..20]).matches("old").count(), 0, "{}", turns(&never));
    let boosted = rounds(&world, "mlfq", &[("slice", "600"), ("boost", "3000")], 20);
    assert!(turns(&boosted[10..20]).matches("old").count() >= 2, "{}", turns(&boosted));
}

/// A gang of all GPUs among small jobs that never stop coming.
fn stream() -> String {
    let mut world = "cluster 1 nodes, 4 gpus, 12 cpus, 200 GB\njob gang gpus=4 work=600\n".to_owned();
    for number in 0..40 {
        let _ = writeln!(world, "job s{number} gpus=3 work=300 at={}", number * 300);
    }
    world
}

#[test]
fn aging_ends_the_wait_of_a_large_gang_when_arithmetic_says_so() {
    let start = |policy: &str, set: &[(&str, &str)]| {
        let lines = rounds(&stream(), policy, set, 30);
        lines.iter().position(|line| running(line).iter().any(|(job, _)| job == "gang"))
    };
    assert_eq!(start("srsf", &[]), None, "2,400 GPU-seconds after 900 for ever");
    // 2400 / (1 + w / 600) < 900 as soon as w > 1000: the first round after that is 1200 s, round 4.
    assert_eq!(start("srsf-aging", &[("patience", "600")]), Some(4));
    // w > 2000 with twice the patience: 2100 s, round 7.
    assert_eq!(start("srsf-aging", &[("patience", "1200")]), Some(7));
}

#[test]
fn a_gang_is_stopped_only_for_more_than_a_restart() {
    let world = |work: u32| {
        format!(
            "cluster 1 nodes, 4 gpus, 12 cpus, 200 GB\njob runs gpus=4 work=900\njob other gpus=4 work={work} at=300 restart=60\n"
        )
    };
    let second =
        |work: u32| running(&rounds(&world(work), "srsf-aging", &[("patience", "1e12")], 2)[1])[0].0.clone();
    assert_eq!(second(530), "other", "530 s and a restart of 60 s are less than the 600 s left");
    assert_eq!(second(550), "runs", "550 s and 60 s are more");
}
