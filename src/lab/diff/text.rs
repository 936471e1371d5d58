//! A difference for people and for programs.

use std::fmt::{self, Write};

use super::{Change, Difference, Involved, Moment, Parting, State, What};

/// How many changes are listed for each side.
const MAX_LISTED: usize = 12;

impl Difference {
    /// For people.
    pub fn to_text(&self, a: &str, b: &str) -> String {
        let mut text = format!("A: {a}\nB: {b}\n");
        for (name, of_a, of_b) in &self.settings {
            // Writing to a string cannot fail.
            let _ = writeln!(text, "  {name}: {} | {}", or_dash(of_a), or_dash(of_b));
        }
        match &self.parting {
            Parting::Nowhere => text.push_str("\nEvery decision is the same.\n"),
            Parting::Jobs { index, a, b } => {
                let name = |job: &Option<String>| job.clone().unwrap_or_else(|| "nothing".to_owned());
                let _ = writeln!(
                    text,
                    "\nThe runs were not given the same jobs: number {} is {} in A and {} in B.",
                    index + 1,
                    name(a),
                    name(b)
                );
            }
            Parting::At(moment) => text.push_str(&moment_text(moment)),
        }
        if !self.figures.is_empty() {
            text.push_str("\nResults (A | B):\n");
            for (name, of_a, of_b) in &self.figures {
                let _ = writeln!(text, "  {name}: {of_a} | {of_b}");
            }
        }
        text
    }

    /// For programs.
    pub fn to_json(&self) -> String {
        serde_json::to_string_pretty(self).expect("names and numbers are plain JSON") + "\n"
    }
}

fn moment_text(moment: &Moment) -> String {
    let mut text = format!(
        "\nThe first difference is at {} s, after {} decisions alike.\n",
        moment.time_s, moment.n_decisions_before
    );
    for (side, state) in [("A", &moment.state_a), ("B", &moment.state_b)] {
        if let Some(State { waiting, running, gpus_held, gpus_up }) = state {
            let _ = writeln!(
                text,
                "  in {side} then: {running} jobs run on {gpus_held} of {gpus_up} GPUs, {waiting} wait"
            );
        }
    }
    list(&mut text, "only in A:", &moment.only_a);
    list(&mut text, "only in B:", &moment.only_b);
    list(&mut text, "in both:", &moment.both);
    text.push_str("  jobs concerned:\n");
    for job in moment.jobs.iter().take(MAX_LISTED) {
        let _ = writeln!(text, "    {job}");
    }
    if moment.jobs.len() > MAX_LISTED {
        let _ = writeln!(text, "    … and {} more", moment.jobs.len() - MAX_LISTED);
    }
    if !moment.has_timeline {
        text.push_str(
            "  One of the folders has no timeline.csv: only starts, ends and refusals were compared.\n",
        );
    }
    text
}

fn list(text: &mut String, heading: &str, changes: &[Change]) {
    if changes.is_empty() {
        return;
    }
    let _ = writeln!(text, "  {heading}");
    for change in changes.iter().take(MAX_LISTED) {
        let _ = writeln!(text, "    job {} {}", change.job_id, change.what);
    }
    if changes.len() > MAX_LISTED {
        let _ = writeln!(text, "    … and {} more", changes.len() - MAX_LISTED);
    }
}

impl fmt::Display for What {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            What::Holds { node, gpus, share, cpu_micro, mem_bytes } => {
                let gpus: Vec<String> = gpus.iter().map(u32::to_string).collect();
                let part = if *share == 1_000 { String::new() } else { format!(", {}‰ of each", share) };
                let (cpus, gigabytes) = (*cpu_micro as f64 / 1e6, *mem_bytes as f64 / 1e9);
                write!(f, "holds GPU {} of {node}{part}, {cpus} CPUs, {gigabytes} GB", gpus.join(" "))
            }
            What::Leaves { node } => write!(f, "leaves {node} before its end"),
            What::Finishes => f.write_str("finishes"),
            What::Starts => f.write_str("starts"),
            What::Ends { status } => write!(f, "is {status}"),
        }
    }
}

impl fmt::Display for Involved {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Involved { job_id, model, tenant, gpus, arrival_s, .. } = self;
        write!(
            f,
            "{job_id}: {model} of {tenant}, asks {gpus} GPU{}, arrived at {arrival_s} s",
            if *gpus == 1 { "" } else { "s" }
        )?;
        if let Some((a, b)) = self.held_gpu_s {
            write!(f, ", had held {a:.0} | {b:.0} GPU-seconds")?;
        }
        let time = |time: Option<f64>| time.map_or_else(|| "never".to_owned(), |time| format!("{time} s"));
        write!(f, "; starts {} | {}", time(self.start_s.0), time(self.start_s.1))?;
        write!(f, ", ends {} | {}", time(self.finish_s.0), time(self.finish_s.1))
    }
}

fn or_dash(text: &str) -> &str {
    if text.is_empty() { "–" } else { text }
}
