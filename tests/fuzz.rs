//! The fuzz targets of `traces/fuzz` in a bounded form: every reader is given sound texts that were spoilt in every way that is seen in
//! practice, and random ones; nothing panics, and nothing takes more memory than its input justifies.

use rand::rngs::ChaCha8Rng;
use rand::{RngExt, SeedableRng};
use rota_scripts::memory::{CountingAllocator, bytes_held_by_this_thread, peak_of_this_thread, reset_peak};

#[path = "../traces/fuzz/sound.rs"]
#[expect(unreachable_pub, reason = "cargo fuzz has it as a part of a library")]
mod sound;
#[path = "../traces/fuzz/targets.rs"]
#[expect(unreachable_pub, reason = "cargo fuzz has it as a library")]
mod targets;

use sound::SOUND;

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

/// Whatever a reader is given, so much is fine: buffers, models, what messages hold.
const ALWAYS: i64 = 4 << 20;
/// Bytes of memory for each byte of input. The shortest job takes a dozen bytes, and a workload about 400.
const FOR_EACH_BYTE: i64 = 128;

/// The most memory that this thread holds while it works, beyond what it held before.
fn most_held(work: impl FnOnce()) -> i64 {
    let before = bytes_held_by_this_thread();
    reset_peak();
    work();
    peak_of_this_thread() - before
}

fn give(target: &str, bytes: &[u8]) {
    let most = most_held(|| targets::run(target, bytes));
    let bound = ALWAYS + FOR_EACH_BYTE * bytes.len() as i64;
    assert!(
        most <= bound,
        "{target} takes {most} bytes for {} of input, {:?} …",
        bytes.len(),
        String::from_utf8_lossy(&bytes[..bytes.len().min(200)])
    );
}

/// The same text as files come: cut off, with other line ends, marked, spoilt.
fn variants(sound: &[u8], rng: &mut ChaCha8Rng) -> Vec<Vec<u8>> {
    let text = String::from_utf8_lossy(sound).into_owned();
    let mut all: Vec<Vec<u8>> = ["\r\n", "\r", "\n\n", "\r\n\n", "\n\r"]
        .iter()
        .map(|end| text.replace('\n', end).into_bytes())
        .collect();
    all.push([&b"\xef\xbb\xbf"[..], sound].concat());
    all.push([&b"\xff\xfe"[..], sound].concat());
    all.push(text.replace(',', "\",\"").into_bytes());
    all.push(text.replacen(',', ",\"", 1).into_bytes());
    all.push(text.replace(',', ";").into_bytes());
    all.extend([0u8, 1, 2].map(|kind| [&[kind][..], sound].concat()));
    for _ in 0..24 {
        all.push(sound[..rng.random_range(0..=sound.len())].to_vec());
        let mut spoilt = sound.to_vec();
        for _ in 0..rng.random_range(1..5) {
            let at = rng.random_range(0..spoilt.len().max(1));
            match rng.random_range(0..4) {
                0 if at < spoilt.len() => spoilt[at] = rng.random(),
                1 if at < spoilt.len() => {
                    spoilt.remove(at);
                }
                2 => spoilt.insert(at.min(spoilt.len()), b"\",\n\r\t-9e|:[{\0"[rng.random_range(0..13)]),
                _ => {
                    let to = rng.random_range(at.min(spoilt.len())..=spoilt.len());
                    let part = spoilt[at.min(to)..to].to_vec();
                    spoilt.extend(part);
                }
            }
        }
        all.push(spoilt);
    }
    all
}

#[test]
fn every_reader_takes_or_refuses_spoilt_texts_within_bounds() {
    let mut rng = ChaCha8Rng::seed_from_u64(1);
    targets::run("rota", b"");
    assert!(SOUND.len() > sound::N_TRACES, "traces, and more");
    for (_, text) in SOUND {
        for variant in variants(text.as_bytes(), &mut rng) {
            targets::names()
                .iter()
                .filter(|target| **target != "packed")
                .for_each(|target| give(target, &variant));
        }
    }
    for _ in 0..200 {
        let noise: Vec<u8> = (0..rng.random_range(0..300)).map(|_| rng.random()).collect();
        targets::names().iter().filter(|target| **target != "packed").for_each(|target| give(target, &noise));
    }
}

/// A table of many rows takes memory for its jobs, whatever its cells hold; one without jobs takes next to none.
#[test]
fn many_rows_take_memory_for_their_jobs_only() {
    for (name, text) in SOUND.iter().filter(|(name, _)| name.ends_with(".csv") || name.ends_with(".trace")) {
        let last = text.trim_end().lines().next_back().unwrap_or_default();
        let rows: String = (0..20_000).map(|n| format!("{n}{last}\n")).collect();
        let bytes = format!("{text}{rows}").into_bytes();
        targets::names().iter().filter(|target| **target != "packed").for_each(|target| give(target, &bytes));
        let junk = format!("{text}{}", "x\n".repeat(200_000)).into_bytes();
        for target in targets::names().into_iter().filter(|target| !["packed", "profile"].contains(target)) {
            let most = most_held(|| targets::run(target, &junk));
            assert!(
                most < 1_000 * 200_000,
                "{name} to {target}: {most} bytes for 200,000 rows that make no sense"
            );
        }
    }
}

#[test]
fn packed_files_are_refused_or_unpacked_within_bounds() {
    let mut rng = ChaCha8Rng::seed_from_u64(2);
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/traces/fuzz/seeds/packed");
    let packed: Vec<Vec<u8>> = ["t.csv.gz", "t.csv.zst", "t.zip", "t.parquet"]
        .iter()
        .map(|name| std::fs::read(format!("{folder}/{name}")).expect(name))
        .collect();
    for sound in packed {
        for _ in 0..150 {
            let mut spoilt = sound.clone();
            for _ in 0..rng.random_range(0..4) {
                let at = rng.random_range(4..spoilt.len());
                spoilt[at] = rng.random();
            }
            spoilt.truncate(rng.random_range(spoilt.len() / 2..=spoilt.len()));
            give("packed", &spoilt);
        }
    }
}

#[test]
fn every_target_has_its_file_for_cargo_fuzz() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/traces/fuzz");
    let manifest = std::fs::read_to_string(format!("{folder}/Cargo.toml")).expect("a manifest");
    for target in targets::names() {
        let file = format!("fuzz_targets/{}.rs", target.replace('-', "_"));
        let text = std::fs::read_to_string(format!("{folder}/{file}")).expect(&file);
        assert!(text.contains(&format!("rota_traces_fuzz::run(\"{target}\", bytes)")), "{file}");
        assert!(
            manifest.contains(&format!("name = \"{target}\"\npath = \"{file}\"")),
            "{file} is in Cargo.toml"
        );
    }
    let n_files = std::fs::read_dir(format!("{folder}/fuzz_targets")).expect("a folder").count();
    assert_eq!(n_files, targets::names().len(), "no file without a target");
}
