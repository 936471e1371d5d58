//! Findings for people and for programs.

use std::fmt::Write as _;

use comfy_table::Table;

use super::blame::{Blame, Grant, Served};
use super::found::Counterexample;
use super::question::Question;
use super::{Findings, Tally};
use crate::report::{align_numbers, plain_table};

impl Findings {
    /// Whether a case beyond the margin was found.
    pub fn is_refuted(&self) -> bool {
        self.counterexample.is_some()
    }

    /// For programs.
    pub fn to_json(&self) -> String {
        serde_json::to_string_pretty(self).expect("names and numbers are plain JSON") + "\n"
    }

    /// For people.
    pub fn to_text(&self) -> String {
        let mut text =
            format!("{}\n{}\n", self.heading(), table_of(&self.tallies, self.margin, self.has_other()));
        let margin = percent(self.margin);
        match &self.counterexample {
            None if self.margin < 1e-5 => text.push_str("It holds in every case.\n"),
            None => {
                let _ = writeln!(text, "No case is beyond the margin of {margin}.");
            }
            Some(found) => text.push_str(&found.to_text()),
        }
        text
    }

    fn has_other(&self) -> bool {
        self.matches.iter().any(|of| of.against.is_some())
    }

    fn heading(&self) -> String {
        let list = |names: Vec<&str>| names.join(", ");
        let ours = list(self.matches.iter().map(|of| of.policy.as_str()).collect());
        let theirs = list(self.matches.iter().filter_map(|of| of.against.as_deref()).collect());
        let n = self.tallies.first().map_or(0, |tally| tally.n);
        let sizes = &self.sizes;
        let what = match self.question {
            Question::Jct => format!("mean completion time of {ours} over that of {theirs}"),
            Question::Speed => format!("first decision: total speed of {theirs} over that of {ours}"),
            Question::Property(property) => {
                let about = property.about();
                format!("{}: {} ({ours})", about.name, about.says)
            }
        };
        format!(
            "{what}\n{n} cases of up to {} nodes x {} GPUs and {} jobs{}, seed {}",
            sizes.nodes,
            sizes.gpus,
            sizes.jobs,
            if sizes.is_static { ", all there at once" } else { "" },
            self.seed
        )
    }
}

fn table_of(tallies: &[Tally], margin: f64, has_other: bool) -> Table {
    let mut table = plain_table();
    let beyond = if margin < 1e-5 { "broken".to_owned() } else { format!("worse by\n> {}", percent(margin)) };
    let mut header: Vec<&str> =
        vec!["", "cases", &beyond, "worse", "equal", "better", "mean ratio", "worst", "stops"];
    if has_other {
        header.push("stops of\nthe other");
    }
    table.set_header(header);
    for tally in tallies {
        let mean = format!("{:.4} ({:.4} to {:.4})", tally.mean, tally.mean_low, tally.mean_high);
        let counts = [tally.n, tally.n_beyond, tally.n_worse, tally.n_equal, tally.n_better];
        let mut row = vec![tally.name.clone()];
        row.extend(counts.map(|count| count.to_string()));
        row.extend([mean, ratio(tally.worst), tally.n_stops.to_string()]);
        if has_other {
            row.push(tally.n_stops_against.to_string());
        }
        table.add_row(row);
    }
    align_numbers(&mut table, 1);
    table
}

impl Counterexample {
    /// For people.
    pub fn to_text(&self) -> String {
        let mut text = format!(
            "\nThe worst is case {} with {}, at {}; shrunk to this one, at {}:\n\n",
            self.case,
            self.of.policy,
            ratio(self.drawn_ratio),
            ratio(self.ratio)
        );
        for line in self.scenario.lines() {
            let _ = writeln!(text, "{}", format!("    {line}").trim_end());
        }
        text.push_str(&self.explanation());
        text
    }

    /// The ratio and what is behind it, without the scenario.
    pub fn judgement(&self) -> String {
        let against = self.of.against.as_ref().map(|other| format!(" against {other}")).unwrap_or_default();
        format!("{}{against}: {}\n{}", self.of.policy, ratio(self.ratio), self.explanation())
    }

    /// What happened in it.
    pub fn explanation(&self) -> String {
        let mut text = String::new();
        if let Some(what) = &self.what {
            let _ = writeln!(text, "\nWhat was seen: {what}.");
        }
        if let Some(blame) = &self.blame {
            text.push_str(&blame.to_text(&self.of.policy, self.of.against.as_deref().unwrap_or("the other")));
        }
        let _ = writeln!(text, "\nCompletion times in seconds:");
        let seconds = |jct: Option<f64>| jct.map_or("never".to_owned(), |seconds| format!("{seconds:.0}"));
        let mut table = plain_table();
        let names = [Some("job"), Some(self.of.policy.as_str()), self.of.against.as_deref()];
        table.set_header(names.into_iter().flatten());
        for job in &self.jobs {
            let other = self.of.against.as_ref().map(|_| seconds(job.against_jct_s));
            table.add_row([Some(job.job.clone()), Some(seconds(job.jct_s)), other].into_iter().flatten());
        }
        let _ = writeln!(text, "{table}");
        text
    }
}

impl Blame {
    fn to_text(&self, policy: &str, against: &str) -> String {
        let mut text = format!("\nThe first bad decision is that at {} s:\n", self.at_s);
        let mut table = plain_table();
        table.set_header([
            "job",
            "could use",
            &format!("{policy} gives"),
            &format!("{against} would give"),
            "",
        ]);
        for job in &self.jobs {
            let asks = format!("{}, {} CPUs, {} GB", gpus(job.gpus), amount(job.cpus), amount(job.mem_gb));
            table.add_row([
                job.job.clone(),
                asks,
                granted(job.policy.as_ref()),
                granted(job.against.as_ref()),
                verdict(job),
            ]);
        }
        let (before, after) = (self.mean_jct_before_s, self.mean_jct_after_s);
        let _ = writeln!(text, "{table}");
        let _ = match after.is_finite() {
            true => writeln!(
                text,
                "Had {against} decided from here on, the mean completion time would be {before:.0} s; from the next round \
                 on it can only make it {after:.0} s."
            ),
            false => writeln!(
                text,
                "Had {against} decided from here on, the mean completion time would be {before:.0} s; from the next round \
                 on not all jobs end."
            ),
        };
        text
    }
}

fn verdict(job: &Served) -> String {
    match job.gain() {
        gain if gain < -1e-9 => "pays".to_owned(),
        gain if gain > 1e-9 => "gains".to_owned(),
        _ => String::new(),
    }
}

fn granted(grant: Option<&Grant>) -> String {
    let Some(grant) = grant else { return "waits".to_owned() };
    let nodes: Vec<String> = grant.nodes.iter().map(ToString::to_string).collect();
    let (on, cpus, mem) = (nodes.join("+"), amount(grant.cpus), amount(grant.mem_gb));
    format!("speed {:.2}: node {on}, {cpus} CPUs, {mem} GB", grant.speed)
}

fn gpus(n: u32) -> String {
    if n == 1 { "1 GPU".to_owned() } else { format!("{n} GPUs") }
}

/// At most two decimals.
fn amount(number: f64) -> String {
    let text = format!("{number:.2}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

fn ratio(ratio: f64) -> String {
    if ratio.is_finite() { format!("{ratio:.3}") } else { "endless".to_owned() }
}

fn percent(part: f64) -> String {
    format!("{} %", amount(100.0 * part))
}
