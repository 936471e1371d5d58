//! No input makes a reader panic, and what it accepts the engine can take.

use std::sync::Arc;

use proptest::prelude::*;
use rota_core::job::JobSpec;
use rota_traces::format::{self, ColumnMap, Format, Setting};
use rota_traces::generate::{self, WorkloadOptions};
use rota_traces::rows::BadRows;
use rota_traces::source::Source;
use rota_traces::{cluster, profile};

#[path = "../fuzz/sound.rs"]
#[expect(unreachable_pub, reason = "cargo fuzz has it as a part of a library")]
mod sound;

use sound::{N_TRACES, SOUND};

/// Words that have broken readers before, and that random characters seldom hit.
const NASTY: [&str; 24] = [
    "",
    "nan",
    "inf",
    "-inf",
    "1e308",
    "1e-320",
    "-1",
    "0",
    "4294967295",
    "18446744073709551616",
    "\"",
    ",",
    "\n",
    "\r\n",
    "-",
    ":",
    "|",
    "@",
    "=",
    "[",
    "]",
    "{}",
    "\u{feff}",
    "日本",
];

/// Sound texts whose models are those of `elastic`.
const MODELS_OF_ELASTIC: [&str; 4] = ["ef.csv", "gavel.trace", "gavel-7.trace", "sia.csv"];

/// Profiles with curves for batch sizes, as ElasticFlow's, Gavel's and Sia's traces need them.
fn elastic() -> profile::ProfileSet {
    let [a100, t4] = ["elasticflow-a100", "pollux-t4"].map(|set| profile::load(set).expect("built in"));
    a100.and(&t4).on_any_gpu_type()
}

fn read_everything(name: &str, text: &str) {
    let source = Source::new(name, text);
    let (cluster, synergy) =
        (cluster::load("small").expect("built in"), profile::load("synergy").expect("built in"));
    let elastic = elastic();
    for bad_rows in [BadRows::Refuse, BadRows::Skip] {
        for profiles in [&synergy, &elastic] {
            let setting = Setting { bad_rows, ..Setting::new(&cluster, profiles) };
            for entry in Format::ALL {
                let format = entry.format;
                if let Ok(read) = format::read(&source, Some(format), &setting) {
                    assert_eq!(read.workload.check(), Ok(()), "{} took {text:?}", format.name());
                }
            }
        }
    }
    drop(format::detect(&source));
    if let Ok(mapped) = "job_id=id,arrival_s=submit_time:min,gpus=num_gpu".parse::<ColumnMap>() {
        let mapped = mapped.apply(source.clone());
        let setting = Setting { bad_rows: BadRows::Skip, ..Setting::new(&cluster, &synergy) };
        drop(format::read(&mapped, None, &setting));
    }
    drop(cluster::toml::read(&source));
    drop(cluster::ini::read(&source));
    drop(cluster::spec::read(&source, "A100"));
    drop(generate::read(&source));
    if let Ok(profiles) = profile::read(&source) {
        let options = WorkloadOptions { jobs: Some(3), ..WorkloadOptions::default() };
        if let Ok(workload) = generate::generate(&cluster, &profiles, &options) {
            assert_eq!(workload.check(), Ok(()), "drawn from {text:?}");
        }
    }
}

#[test]
fn the_sound_texts_are_sound() {
    let (cluster, synergy) =
        (cluster::load("small").expect("built in"), profile::load("synergy").expect("built in"));
    let elastic = elastic();
    for (name, text) in &SOUND[..N_TRACES] {
        let profiles = if MODELS_OF_ELASTIC.contains(name) { &elastic } else { &synergy };
        format::read(&Source::new(*name, *text), None, &Setting::new(&cluster, profiles)).expect(name);
    }
    for (name, text) in &SOUND[N_TRACES..N_TRACES + 3] {
        cluster::read(&Source::new(*name, *text)).expect(name);
    }
    profile::read(&Source::new(SOUND[N_TRACES + 3].0, SOUND[N_TRACES + 3].1)).expect("a profile");
    generate::read(&Source::new(SOUND[N_TRACES + 4].0, SOUND[N_TRACES + 4].1)).expect("a workload");
}

/// All but the names: some formats have none, and the line is the name.
fn facts(jobs: &[Arc<JobSpec>]) -> Vec<JobSpec> {
    jobs.iter().map(|job| JobSpec { name: "".into(), ..JobSpec::clone(job) }).collect()
}

/// A byte-order mark, any line ends, a last line without one, empty lines: the same jobs, and a bad row is found where it stands.
#[test]
fn line_ends_marks_and_empty_lines_change_nothing_and_lines_are_counted_right() {
    let (cluster, synergy) =
        (cluster::load("small").expect("built in"), profile::load("synergy").expect("built in"));
    let elastic = elastic();
    for (name, sound) in SOUND[..N_TRACES].iter().filter(|(name, _)| !name.ends_with(".json")) {
        let profiles = if MODELS_OF_ELASTIC.contains(name) { &elastic } else { &synergy };
        let setting = Setting::new(&cluster, profiles);
        let read = |text: &str| {
            let source = Source::from_bytes(*name, text.as_bytes().to_vec()).expect("text");
            format::read(&source, None, &setting)
        };
        let plain = read(sound).expect(name).workload;
        for end in ["\n", "\r\n", "\r"] {
            let lines: Vec<&str> = sound.trim_end().lines().collect();
            let variant = format!("\u{feff}{}", lines.join(&format!("{end}{end}")));
            let read_again = read(&variant).expect(name).workload;
            assert_eq!(
                (read_again.truths, facts(&read_again.jobs)),
                (plain.truths.clone(), facts(&plain.jobs)),
                "{name} {end:?}"
            );
            // After n lines and as many empty ones comes one that makes no sense.
            let spoilt = format!("{variant}{end}{end}what is this{end}");
            let error = read(&spoilt).expect_err(name);
            assert_eq!(error.location.line, 2 * lines.len() as u64 + 1, "{name} {end:?}: {error}");
        }
    }
}

#[test]
fn cells_in_quotes_may_hold_commas_and_line_ends() {
    let (cluster, synergy) =
        (cluster::load("small").expect("built in"), profile::load("synergy").expect("built in"));
    let text = "job_id,arrival_s,gpus,iterations,tenant\r\n\"a, b\",0,1,10,\"x\r\ny\"\r\nc,1,many,10,z\r\n";
    let source = Source::from_bytes("t.csv", text.into()).expect("text");
    let setting = Setting { bad_rows: BadRows::Skip, ..Setting::new(&cluster, &synergy) };
    let read = format::read(&source, None, &setting).expect("one row is sound");
    assert_eq!((&*read.workload.jobs[0].name, read.workload.tenants[0].as_str()), ("a, b", "x\ny"));
    assert_eq!((read.lines.of(read.workload.jobs[0].id), read.dropped[0].line), (Some(2), 4));
}

#[test]
fn a_quote_that_is_left_open_ends_the_reading_not_the_memory() {
    let (cluster, synergy) =
        (cluster::load("small").expect("built in"), profile::load("synergy").expect("built in"));
    let text = format!("job_id,arrival_s,gpus,iterations\n\"a,0,1,10\n{}", "b,0,1,10\n".repeat(2_000_000));
    let error = format::read(&Source::new("t.csv", text), None, &Setting::new(&cluster, &synergy))
        .expect_err("no end");
    assert!(error.to_string().contains("is a quote left open?"), "{error}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn arbitrary_text_never_panics(text in any::<String>(), name in "[a-z]{0,3}(\\.(csv|json|toml|ini|txt|trace))?") {
        read_everything(&name, &text);
    }

    #[test]
    fn spoilt_texts_never_panic(
        which in 0..SOUND.len(),
        spoils in proptest::collection::vec((any::<prop::sample::Index>(), 0..8usize, 0..NASTY.len()), 1..4),
    ) {
        let (name, sound) = SOUND[which];
        let mut text: Vec<char> = sound.chars().collect();
        for (place, length, nasty) in spoils {
            let from = place.index(text.len() + 1);
            let to = (from + length).min(text.len());
            text.splice(from..to, NASTY[nasty].chars());
        }
        read_everything(name, &text.into_iter().collect::<String>());
    }

    #[test]
    fn whole_cells_may_be_anything(which in 0..N_TRACES, cell in any::<prop::sample::Index>(), nasty in 0..NASTY.len()) {
        let (name, sound) = SOUND[which];
        let mut cells: Vec<&str> = sound.split(',').collect();
        let at = cell.index(cells.len());
        cells[at] = NASTY[nasty];
        read_everything(name, &cells.join(","));
    }
}
