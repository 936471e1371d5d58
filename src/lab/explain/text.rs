//! An explanation in sentences, the most important first.

use super::{DeadlineShare, Explanation, HeldPeriod, Holder, Limit, Move, Shortage, Wait, lack};
use crate::report::with_thousands;

/// Longer lists are cut in the text; JSON has all of them.
const MOST_LINES: usize = 12;

/// What is said of the whole job, without the lists of periods.
pub(super) fn facts(job: &Explanation) -> Vec<String> {
    let known = [Some(opening(job)), Some(fate(job)), lateness(job), lack::pace(job), lack::at_best(job)];
    known.into_iter().flatten().chain(not_seen(job)).chain(not_recorded(job)).collect()
}

fn not_seen(job: &Explanation) -> Option<String> {
    job.not_seen.as_ref().map(|why| format!("What it needed is not known: {why}."))
}

fn not_recorded(job: &Explanation) -> Option<String> {
    let text =
        "What ran where was not recorded in this folder: run it again with --timeline to see what it held.";
    (!job.has_timeline).then(|| text.to_owned())
}

pub(super) fn sentences(job: &Explanation) -> Vec<String> {
    let mut lines = vec![opening(job), fate(job)];
    lines.extend(lateness(job));
    lines.extend(lack::pace(job));
    list(&mut lines, "What its deadline asked for:", &job.deadline_shares, share);
    list(&mut lines, "When it had less than it needed:", &job.shortages, shortage);
    list(&mut lines, "When it ran slowly for lack of CPUs or memory:", &job.slow, lack::slow);
    lines.extend(lack::at_best(job));
    lines.extend(not_seen(job));
    if !job.has_timeline {
        lines.extend(not_recorded(job));
        return lines;
    }
    let heading = if job.status == "declined" { "Until its deadline:" } else { "Waiting:" };
    list(&mut lines, heading, &job.waits, wait);
    list(&mut lines, "What it held:", &job.phases, phase);
    list(&mut lines, "Changes:", &job.moves, change);
    lines
}

fn share(share: &DeadlineShare) -> String {
    match share.gpus {
        Some(needed) => format!("from {} s on: {}", number(share.from_s), gpus(f64::from(needed))),
        None => format!("from {} s on: more than it can use", number(share.from_s)),
    }
}

fn shortage(shortage: &Shortage) -> String {
    let (least, most) = shortage.gpus_free;
    let free = if least == most { format!("{most}") } else { format!("{least} to {most}") };
    let needed = shortage.gpus_needed.map_or(0.0, f64::from);
    let had = format!("it needed {} and had {}", gpus(needed), shortage.gpus_held);
    let what = match shortage.limit {
        Limit::Quota => {
            let (tenant, quota) = shortage.quota.clone().unwrap_or_default();
            let whose = if tenant.is_empty() { String::new() } else { format!(" `{tenant}`") };
            let may = gpus(f64::from(quota));
            format!(
                "its tenant's quota: {had}; {free} were free, but the jobs of its tenant{whose} may hold {may}"
            )
        }
        Limit::Gpus => format!("GPUs: {had}; {free} were free"),
        Limit::Places => {
            format!(
                "places: {had}; {free} were free, but never more than {} on one node",
                shortage.most_on_one_node
            )
        }
        Limit::Cpus => format!("CPUs: {had}; {free} GPUs were free, but too few CPUs with them"),
        Limit::Memory => format!("memory: {had}; {free} GPUs were free, but too little memory with them"),
        Limit::Time => format!(
            "time: with {} it could not be done by its deadline any more, nor with any number it may have",
            gpus(f64::from(shortage.gpus_held))
        ),
        Limit::Policy => format!("the policy's choice: {had}; {free} GPUs were free"),
    };
    let in_the_way = match shortage.holders.as_slice() {
        [] => String::new(),
        _ if shortage.limit == Limit::Policy => String::new(),
        holders => format!("; in the way: {}{}", named(holders, number), more(shortage.n_more)),
    };
    let (from, to) = (number(shortage.from_s), number(shortage.to_s));
    format!("{from} s to {to} s ({}): {what}{in_the_way}", span(shortage.to_s - shortage.from_s))
}

fn list<T>(lines: &mut Vec<String>, heading: &str, items: &[T], text: impl Fn(&T) -> String) {
    if items.is_empty() {
        return;
    }
    lines.push(heading.to_owned());
    lines.extend(items.iter().take(MOST_LINES).map(|item| format!("  {}", text(item))));
    if items.len() > MOST_LINES {
        lines.push(format!("  … and {} more (--json has all)", items.len() - MOST_LINES));
    }
}

fn opening(job: &Explanation) -> String {
    let deadline = match job.deadline_s {
        Some(time) => format!(", due at {} s, {} after that", number(time), span(time - job.arrival_s)),
        None => ", without a deadline".into(),
    };
    format!(
        "Job {} ({}, {} asked) under {}: submitted at {} s{deadline}.",
        job.job_id,
        job.model,
        gpus(f64::from(job.gpus)),
        job.policy,
        number(job.arrival_s)
    )
}

fn fate(job: &Explanation) -> String {
    let because = if job.reason.is_empty() { String::new() } else { format!(": {}", job.reason) };
    let started = match job.start_s {
        Some(start) if start > job.arrival_s => {
            format!("It first held GPUs at {} s, after {}", number(start), span(start - job.arrival_s))
        }
        Some(_) => "It held GPUs from its arrival".into(),
        None => "It never held GPUs".into(),
    };
    match (job.status, job.finish_s) {
        ("declined", _) => format!("It was declined{because}."),
        ("finished", Some(finish)) => {
            format!(
                "{started}, and was done at {} s, {} after its submission.",
                number(finish),
                span(finish - job.arrival_s)
            )
        }
        (status, _) => format!("{started}; at the end of the run it was {status}{because}."),
    }
}

/// Whether a deadline was met, and how waiting compares with what was missing.
fn lateness(job: &Explanation) -> Option<String> {
    let (finish, deadline) = (job.finish_s?, job.deadline_s?);
    if job.met == Some(true) {
        return Some(format!("It met its deadline with {} to spare.", span(deadline - finish)));
    }
    let late = finish - deadline;
    let waited: f64 = job.waits.iter().map(|wait| wait.to_s - wait.from_s).sum();
    let compared = match (job.has_timeline, waited) {
        (false, _) => String::new(),
        (true, 0.0) => ": it never waited, so it ran with too few GPUs or had too little time".into(),
        (true, waited) if waited >= late => {
            format!(": it waited for {} in all, which is more than it was late", span(waited))
        }
        (true, waited) => {
            format!(": it waited for {} in all, so waiting alone does not explain it", span(waited))
        }
    };
    Some(format!("It missed its deadline by {}{compared}.", span(late)))
}

fn wait(wait: &Wait) -> String {
    let free = match wait.gpus_free {
        Some((least, most)) if least == most => format!(", {least} free after each decision"),
        Some((least, most)) => format!(", {least} to {most} free after a decision"),
        None => ", no decision was taken".into(),
    };
    let holders = match wait.holders.as_slice() {
        [] => "no other job held any".into(),
        holders => format!("most by {}{}", named(holders, number), more(wait.n_more)),
    };
    format!(
        "{} s to {} s ({}): others held {} of {} GPUs on average{free}; {holders}",
        number(wait.from_s),
        number(wait.to_s),
        span(wait.to_s - wait.from_s),
        number(wait.gpus_held),
        wait.gpus_up
    )
}

fn phase(phase: &HeldPeriod) -> String {
    let gpus = gpus(phase.gpus);
    let (from, to) = (number(phase.from_s), number(phase.to_s));
    format!("{from} s to {to} s ({}): {gpus} on {}", span(phase.to_s - phase.from_s), phase.nodes.join(", "))
}

fn change(change: &Move) -> String {
    let (before, after) = (number(change.gpus_before), gpus(change.gpus_after));
    let what = match (change.gpus_before, change.gpus_after) {
        (_, 0.0) => format!("stopped, from {}", gpus(change.gpus_before)),
        (0.0, _) => format!("went on with {after}"),
        (b, a) if a > b => format!("grew from {before} to {after}"),
        (b, a) if a < b => format!("shrank from {before} to {after}"),
        _ => format!("moved with its {after}"),
    };
    let signed = |gpus: f64| if gpus > 0.0 { format!("+{}", number(gpus)) } else { number(gpus) };
    let others = match change.others.as_slice() {
        [] => "no other job changed".into(),
        others => format!("at that moment {}{}", named(others, signed), more(change.n_more)),
    };
    let deadline = match change.gpus_for_deadline {
        Some(needed) => format!(" (its deadline asked for {needed})"),
        None => String::new(),
    };
    format!("{} s: {what}{deadline}; {others}", number(change.at_s))
}

fn named(holders: &[Holder], amount: impl Fn(f64) -> String) -> String {
    holders
        .iter()
        .map(|holder| format!("{} ({})", holder.job_id, amount(holder.gpus)))
        .collect::<Vec<_>>()
        .join(", ")
}

pub(super) fn more(n_more: usize) -> String {
    if n_more == 0 { String::new() } else { format!(" and {n_more} more") }
}

/// A number of GPUs, with the noun in singular or plural.
fn gpus(amount: f64) -> String {
    format!("{} GPU{}", number(amount), if amount == 1.0 { "" } else { "s" })
}

/// At most two decimals, without trailing zeros; thousands are apart.
pub(super) fn number(value: f64) -> String {
    let text = format!("{value:.2}");
    let short = text.trim_end_matches('0').trim_end_matches('.');
    let (whole, part) = short.split_once('.').map_or((short, None), |(whole, part)| (whole, Some(part)));
    let whole = match whole {
        // An empty sum of floats is -0.
        "-0" if part.is_none() => "0".to_owned(),
        whole if value.abs() >= 1_000.0 => with_thousands(whole.parse().unwrap_or(value)),
        whole => whole.to_owned(),
    };
    part.map_or(whole.clone(), |part| format!("{whole}.{part}"))
}

/// A length of time in the unit people would use.
pub(super) fn span(seconds: f64) -> String {
    match seconds {
        s if s < 120.0 => format!("{} s", number(s)),
        s if s < 7_200.0 => format!("{:.0} min", s / 60.0),
        s => format!("{:.1} h", s / 3_600.0),
    }
}
