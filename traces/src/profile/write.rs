//! Profiles as text that `read` reads: a set that goes through a file comes back as it was.

use std::fmt::Write;

use rota_core::profile::{HostCurve, Profile};
use rota_core::time::Span;

use super::{Measured, ProfileEntry, ProfileSet};

/// A set as Rota's profile file.
pub fn write(set: &ProfileSet) -> String {
    let mut text = String::from("format = 1\n");
    line(&mut text, "name", &quoted(&set.name));
    let sources: std::collections::BTreeSet<&str> =
        set.entries().iter().map(|entry| entry.profile.source.as_str()).filter(|s| !s.is_empty()).collect();
    if !sources.is_empty() {
        line(&mut text, "source", &quoted(&sources.into_iter().collect::<Vec<_>>().join("; ")));
    }
    set.entries().iter().for_each(|entry| write_entry(&mut text, entry));
    text
}

fn write_entry(text: &mut String, entry: &ProfileEntry) {
    let profile = &entry.profile;
    // The file's rates hold where its grid says 1; a curve that says it nowhere is written relative to its best corner.
    let share = profile.host.as_ref().map(share);
    let scale = share.map_or(1.0, |share| share.2);
    text.push_str("\n[[profile]]\n");
    line(text, "name", &quoted(&profile.name));
    if !profile.class.is_empty() {
        line(text, "class", &quoted(&profile.class));
    }
    if profile.batch > 0 {
        line(text, "batch", &profile.batch.to_string());
    }
    match entry.iteration_s.filter(|_| scale == 1.0) {
        Some(seconds) => line(text, "iteration_s", &seconds.to_string()),
        None if profile.scale.is_empty() || entry.iteration_s.is_some() => {
            line(text, "iteration_s", &(1.0 / (profile.base_rate * scale)).to_string());
        }
        None => {}
    }
    if let Some(speedup) = entry.ideal_speedup {
        line(text, "ideal_speedup", &speedup.to_string());
    }
    write_needs(text, profile);
    if !entry.is_drawn {
        line(text, "drawn", "false");
    }
    if let (Some(curve), Some((cpus, mem_gb, at_share))) = (&profile.host, share) {
        write_grid(text, curve, (cpus, mem_gb), at_share);
    }
    for curve in &profile.scale {
        text.push_str("\n[[profile.scale]]\n");
        if !curve.gpu_type.is_empty() {
            line(text, "gpu_type", &quoted(&curve.gpu_type));
        }
        line(text, "batch", &curve.batch.to_string());
        if let Some(iterations) = entry.trained.get(&curve.batch) {
            line(text, "iterations", &iterations.to_string());
        }
        if let Some(most) = entry.levels.get(&curve.batch).and_then(|levels| levels.last()) {
            line(text, "max_gpus", &most.to_string());
        }
        let points: Vec<String> =
            curve.points.iter().map(|(gpus, rate)| format!("[{gpus}, {}]", rate * scale)).collect();
        line(text, "points", &format!("[{}]", points.join(", ")));
    }
    if let Some(measured) = &entry.measured {
        write_measured(text, measured);
    }
}

fn write_needs(text: &mut String, profile: &Profile) {
    let demand = profile.demand_per_gpu;
    if demand != rota_core::resources::Host::NONE {
        let (mem, rate) = (amount(demand.mem_bytes), rate(demand.storage_bps));
        line(text, "demand", &format!("{{ cpus = {}, mem = {mem}, storage = {rate} }}", demand.cpus()));
    }
    if !profile.gpu_speed.is_empty() {
        let speeds: Vec<String> =
            profile.gpu_speed.iter().map(|(name, factor)| format!("{} = {factor}", quoted(name))).collect();
        line(text, "gpu_speed", &format!("{{ {} }}", speeds.join(", ")));
    }
    if !profile.spread.is_empty() {
        line(text, "spread", &list(profile.spread.iter()));
    }
    if !profile.storage_need.is_empty() {
        let needs = profile.storage_need.iter();
        let needs: Vec<String> =
            needs.map(|(mem, bps)| format!("{{ mem = {}, rate = {} }}", amount(*mem), rate(*bps))).collect();
        line(text, "storage_need", &format!("[{}]", needs.join(", ")));
    }
    if profile.gpu_mem_bytes > 0 {
        line(text, "gpu_mem", &amount(profile.gpu_mem_bytes));
    }
    for (name, span) in [("restart", profile.restart), ("checkpoint", profile.checkpoint)] {
        if span > Span::ZERO {
            line(text, name, &format!("\"{}s\"", span.as_secs_f64()));
        }
    }
}

/// Levels at which the curve is 1, or else its best corner and the value there.
fn share(curve: &HostCurve) -> (f64, f64, f64) {
    let levels = |c: usize, m: usize| (curve.cpus()[c], curve.mem_gb()[m], curve.at_level(c, m));
    let (n_cpus, n_mem) = (curve.cpus().len(), curve.mem_gb().len());
    let all = (0..n_cpus).flat_map(|c| (0..n_mem).map(move |m| (c, m)));
    let found = all.map(|(c, m)| levels(c, m)).find(|(_, _, value)| *value == 1.0);
    found.unwrap_or_else(|| levels(n_cpus - 1, n_mem - 1))
}

fn write_grid(text: &mut String, curve: &HostCurve, share: (f64, f64), at_share: f64) {
    let cpus = list(curve.cpus().iter());
    let mem = curve.mem_gb().iter().map(|gb| format!("\"{gb}GB\"")).collect::<Vec<_>>().join(", ");
    let share = format!("{{ cpus = {}, mem = \"{}GB\" }}", share.0, share.1);
    line(text, "grid", &format!("{{ cpus = {cpus}, mem = [{mem}], share = {share} }}"));
    text.push_str("speed = [\n");
    for c in 0..curve.cpus().len() {
        let row: Vec<f64> = (0..curve.mem_gb().len()).map(|m| curve.at_level(c, m) / at_share).collect();
        let _ = writeln!(text, "    {},", list(row.iter()));
    }
    text.push_str("]\n");
}

fn write_measured(text: &mut String, measured: &Measured) {
    text.push_str("\n[profile.measured]\n");
    let told = [
        ("command", &measured.command),
        ("machine", &measured.machine),
        ("day", &measured.day),
        ("tool", &measured.tool),
    ];
    for (name, value) in told.into_iter().filter(|(_, value)| !value.is_empty()) {
        line(text, name, &quoted(value));
    }
    if !measured.notes.is_empty() {
        let notes: Vec<String> = measured.notes.iter().map(|note| quoted(note)).collect();
        line(text, "notes", &format!("[{}]", notes.join(", ")));
    }
    if !measured.points.is_empty() {
        text.push_str("points = [\n");
        for point in &measured.points {
            let _ = writeln!(
                text,
                "    {{ gpus = {}, batch = {}, cpus = {}, mem = {}, iteration_s = {}, within_s = {}, runs = {} }},",
                point.gpus,
                point.batch,
                point.cpus,
                amount(point.mem.0),
                point.iteration_s,
                point.within_s,
                point.runs
            );
        }
        text.push_str("]\n");
    }
    if !measured.changes.is_empty() {
        text.push_str("changes = [\n");
        for change in &measured.changes {
            let _ = writeln!(
                text,
                "    {{ from = {}, to = {}, moved = {}, checkpoint_s = {}, restart_s = {} }},",
                change.from, change.to, change.moved, change.checkpoint_s, change.restart_s
            );
        }
        text.push_str("]\n");
    }
}

fn line(text: &mut String, name: &str, value: &str) {
    let _ = writeln!(text, "{name} = {value}");
}

fn quoted(text: &str) -> String {
    toml::Value::String(text.to_owned()).to_string()
}

fn list<'v>(values: impl Iterator<Item = &'v f64>) -> String {
    format!("[{}]", values.map(f64::to_string).collect::<Vec<_>>().join(", "))
}

fn amount(bytes: u64) -> String {
    format!("\"{}GB\"", bytes as f64 / 1e9)
}

fn rate(bps: u64) -> String {
    format!("\"{}MB/s\"", bps as f64 / 1e6)
}

#[cfg(test)]
mod tests {
    use super::super::{BUILT_IN, load, read};
    use super::*;
    use crate::source::Source;

    #[test]
    fn every_shipped_set_comes_back_as_it_was() {
        for (name, _) in BUILT_IN {
            let set = load(name).expect(name);
            let text = write(&set);
            let again = read(&Source::new(name, text.as_str())).unwrap_or_else(|e| panic!("{e}\n{text}"));
            assert_eq!(again, set, "{name}");
        }
    }

    #[test]
    fn what_was_measured_comes_back_too() {
        let text = "format = 1\n[[profile]]\nname = \"a \\\"b\\\"\"\niteration_s = 0.25\nrestart = \"1.884s\"\n\
            spread = [0.9, 0.5]\n[profile.measured]\ncommand = \"python train.py\"\nnotes = [\"one\"]\n\
            points = [{ gpus = 1, cpus = 2, mem = \"8GB\", iteration_s = 0.25, runs = 3 }]\n\
            changes = [{ from = 1, to = 2, checkpoint_s = 0.5, restart_s = 1.25 }]\n";
        let set = read(&Source::new("m.toml", text)).expect("sound");
        let measured = set.entries()[0].measured.as_ref().expect("measured");
        assert_eq!((measured.points[0].runs, measured.changes[0].to), (3, 2));
        assert_eq!(read(&Source::new("m.toml", write(&set))).expect("sound"), set);
    }
}
