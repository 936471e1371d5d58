//! A sound text of every reader, to be spoilt: by the tests of this crate and by `cargo fuzz`.

/// How many of the texts are traces; then come three clusters, a profile, a workload and two of faults.
pub const N_TRACES: usize = 19;

/// Names and texts.
pub const SOUND: [(&str, &str); 26] = [
    ("rota.csv", include_str!("seeds/rota.csv")),
    ("replay.trace", include_str!("seeds/replay.trace")),
    ("pollux.csv", include_str!("seeds/pollux.csv")),
    ("log.json", include_str!("seeds/log.json")),
    ("ef.csv", include_str!("seeds/ef.csv")),
    ("itp.csv", include_str!("seeds/itp.csv")),
    ("chronus.csv", include_str!("seeds/chronus.csv")),
    ("tiresias.csv", include_str!("seeds/tiresias.csv")),
    ("shockwave.trace", include_str!("seeds/shockwave.trace")),
    ("gavel.trace", include_str!("seeds/gavel.trace")),
    ("gavel-7.trace", include_str!("seeds/gavel-7.trace")),
    ("sia.csv", include_str!("seeds/sia.csv")),
    ("helios.csv", include_str!("seeds/helios.csv")),
    ("acme.csv", include_str!("seeds/acme.csv")),
    ("pai.csv", include_str!("seeds/pai.csv")),
    ("openb.csv", include_str!("seeds/openb.csv")),
    ("swf.txt", include_str!("seeds/swf.txt")),
    ("sacct.txt", include_str!("seeds/sacct.txt")),
    ("sacct.json", include_str!("seeds/sacct.json")),
    ("c.toml", include_str!("seeds/c.toml")),
    ("c.ini", include_str!("seeds/c.ini")),
    ("c.csv", include_str!("seeds/c.csv")),
    ("p.toml", include_str!("seeds/p.toml")),
    ("w.toml", include_str!("seeds/w.toml")),
    ("faults.toml", include_str!("seeds/faults.toml")),
    ("outages.csv", include_str!("seeds/outages.csv")),
];
