//! Sentences about CPUs and memory: how fast a job was, what it lacked, which jobs held that, and what would have been best.

use super::text::{more, number, span};
use super::{Amount, Excess, Explanation, Slow};

/// How fast it ran over all, and what it held for that.
pub(super) fn pace(job: &Explanation) -> Option<String> {
    let (of_best, (cpus, cpus_wanted), (mem_gb, mem_wanted)) =
        (job.speed_of_best?, job.cpus_per_gpu?, job.mem_gb_per_gpu?);
    // Its demand is limited to the share of full nodes, even if its own nodes have more free.
    let of_what = if job.gpus > 1 {
        " on as few nodes as can hold it (spread over more, its GPUs might use more)"
    } else {
        ""
    };
    let there = if job.gpus > 1 { " there" } else { "" };
    let held = match cpus <= cpus_wanted && mem_gb <= mem_wanted {
        true => format!(
            "{} of the {} and {} of the {} GB that it can use{there}",
            number(cpus),
            cpus_of(cpus_wanted),
            number(mem_gb),
            number(mem_wanted)
        ),
        // Nothing is "3 of 1".
        false => format!(
            "{} and {} GB, and can use {} and {} GB{there}",
            cpus_of(cpus),
            number(mem_gb),
            cpus_of(cpus_wanted),
            number(mem_wanted)
        ),
    };
    Some(format!("It ran at {} of its best speed{of_what}: with each GPU it held {held}.", percent(of_best)))
}

fn cpus_of(n: f64) -> String {
    format!("{} {}", number(n), if n == 1.0 { "CPU" } else { "CPUs" })
}

/// One period in which it was slow.
pub(super) fn slow(slow: &Slow) -> String {
    let amount = |of: &Amount, unit: &str| {
        format!("{} of {} {unit} (its share is {})", number(of.held), number(of.wanted), number(of.share))
    };
    let had = format!("{}, {}", amount(&slow.cpus, "CPUs"), amount(&slow.mem_gb, "GB"));
    let mut text = format!(
        "{} s to {} s ({}): at {} of its best speed on {} with {had}",
        number(slow.from_s),
        number(slow.to_s),
        span(slow.to_s - slow.from_s),
        percent(slow.of_best),
        slow.nodes.join(", ")
    );
    for (of, unit) in [(&slow.cpus, "CPUs"), (&slow.mem_gb, "GB")] {
        if of.is_short() {
            text.push_str(&format!("; {} {unit} were free there", number(of.free)));
        }
    }
    if !slow.neighbours.is_empty() {
        let named: Vec<String> = slow.neighbours.iter().map(excess).collect();
        text.push_str(&format!("; next to it, above their share: {}{}", named.join(", "), more(slow.n_more)));
    }
    match slow.nodes_with_room {
        Some((_, 0)) => text.push_str("; no other node had room for all it can use"),
        Some((least, most)) => {
            let nodes = if least == most { most.to_string() } else { format!("{least} to {most}") };
            let noun = if (least, most) == (1, 1) { "node" } else { "nodes" };
            text.push_str(&format!("; {nodes} other {noun} had room for all it can use"));
        }
        None => {}
    }
    text
}

fn excess(excess: &Excess) -> String {
    let parts = [(excess.cpus, "CPUs"), (excess.mem_gb, "GB")];
    let parts: Vec<String> = parts
        .into_iter()
        .filter(|(amount, _)| *amount > 0.0)
        .map(|(amount, unit)| format!("{} {unit}", number(amount)))
        .collect();
    format!("job {} (by {})", excess.job_id, parts.join(", "))
}

/// What `opt` would have done, or why that was not computed.
pub(super) fn at_best(job: &Explanation) -> Option<String> {
    if let Some(why) = &job.not_asked {
        return Some(format!(
            "What opt would have done was not computed: {why} (rota solve --at computes it nevertheless)."
        ));
    }
    let best = job.at_best.as_ref()?;
    let mine = match (best.cpus, best.mem_gb, best.of_best) {
        (Some(cpus), Some(mem_gb), Some(of_best)) => format!(
            "would have given it {} CPUs and {} GB on {}, {} of its best speed",
            number(cpus),
            number(mem_gb),
            best.nodes.join(", "),
            percent(of_best)
        ),
        _ => "would not have placed it".to_owned(),
    };
    Some(format!(
        "At {} s opt {mine}; all jobs together: {} by {}, {} by opt, at most {} (proportional shares make 1 for each job).",
        number(best.at_s),
        number(best.reached),
        job.policy,
        number(best.best),
        number(best.bound)
    ))
}

fn percent(part: f64) -> String {
    format!("{:.0} %", 100.0 * part)
}
