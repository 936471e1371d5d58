//! One line on the gap to the optimum, below every comparison: how much speed each policy left on the table, and which models lost it.

use crate::results::{Results, SpeedGap};

/// The most runs that are named one by one.
const MOST_NAMED: usize = 8;
/// A model with less of the loss than this has the largest part of it, and not most.
const MOSTLY: f64 = 0.5;

/// The same as a sentence of a page; empty where there is none.
pub(super) fn on_the_table_sentence(results: &Results) -> String {
    let line = on_the_table(results);
    // A page has no options to name, and one run says by how many decisions.
    let told = match line.contains("(by ") && line.contains(ASK_MORE) {
        true => line.trim_end().replace(ASK_MORE, "").replace("(by ", "(by a sample of "),
        false => line.trim_end().replace(ASK_MORE, "; by a sample of decisions"),
    };
    match told.strip_prefix("left ") {
        Some(rest) => format!("Left {rest}."),
        // The name of a policy stays as it is written.
        None if !told.is_empty() => format!("{told}."),
        None => told,
    }
}

/// How to know it of every decision.
const ASK_MORE: &str = "; a sample of decisions: --bound asks the solver at every one";
/// What the best is for jobs with several GPUs.
const GANGS: &str = "; a gang counts with what it could use on as few nodes as can hold it, spread over more it might run faster";
/// The line, with its end; empty where no run's speed depends on CPUs and memory.
pub fn on_the_table(results: &Results) -> String {
    let names = results.run_names();
    let known: Vec<(&str, &SpeedGap)> = names
        .iter()
        .zip(&results.runs)
        .filter_map(|(name, run)| Some((name.as_str(), run.summary.speed_gap.as_ref()?)))
        .collect();
    let is_bounded = results.runs.iter().all(|run| !run.bounds.is_empty());
    let sample = if is_bounded { "" } else { ASK_MORE };
    let has_gangs = results.runs.iter().any(|run| run.jobs.iter().any(|job| job.gpus > 1));
    let more = format!("{}{sample}", if has_gangs { GANGS } else { "" });
    match known.as_slice() {
        [] => String::new(),
        [(name, gap)] => format!(
            "{name} leaves on the table at most {} of the speed of the jobs that run{} (by {} {}{more})\n",
            percent(gap.lost),
            whose(gap, ", "),
            gap.decisions,
            if gap.decisions == 1 { "decision" } else { "decisions" }
        ),
        several if several.len() <= MOST_NAMED => {
            let of_each: Vec<String> = several
                .iter()
                .map(|(name, gap)| format!("{name} {}{}", percent(gap.lost), in_brackets(gap)))
                .collect();
            format!(
                "left on the table, at most, of the speed of the jobs that run: {}{more}\n",
                of_each.join(", ")
            )
        }
        many => {
            let by_loss = |a: &&(&str, &SpeedGap), b: &&(&str, &SpeedGap)| a.1.lost.total_cmp(&b.1.lost);
            let ends = [many.iter().min_by(by_loss), many.iter().max_by(by_loss)];
            let ends: Vec<String> = ends
                .into_iter()
                .flatten()
                .map(|(name, gap)| format!("{} ({name}{})", percent(gap.lost), whose(gap, ", ")))
                .collect();
            format!(
                "left on the table, at most, of the speed of the jobs that run: from {}{more}\n",
                ends.join(" to ")
            )
        }
    }
}

fn percent(part: f64) -> String {
    match 100.0 * part {
        little if little > 0.0 && little < 0.1 => "0.1 %".to_owned(),
        percent => format!("{percent:.1} %"),
    }
}

fn in_brackets(gap: &SpeedGap) -> String {
    match whose(gap, "") {
        none if none.is_empty() => none,
        whose => format!(" ({whose})"),
    }
}

/// The model that loses most, and on which node if it is one. Empty where next to nothing is lost.
fn whose(gap: &SpeedGap, before: &str) -> String {
    let Some(worst) = gap.models.first().filter(|_| gap.lost >= 0.001) else { return String::new() };
    let most = if worst.part >= MOSTLY { "mostly" } else { "above all" };
    let node = worst.node.as_ref().map(|node| format!(" on {node}")).unwrap_or_default();
    format!("{before}{most} {}{node}", worst.model)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::samples::{results, run};
    use crate::results::{ModelLoss, RoundBound};

    fn with_gap(policy: &str, lost: f64, part: f64, node: Option<&str>) -> crate::results::RunResult {
        let mut run = run(policy, 1, None);
        run.jobs.iter_mut().for_each(|job| job.gpus = 1);
        let models = vec![ModelLoss { model: "alexnet".into(), part, node: node.map(str::to_owned) }];
        run.summary.speed_gap = Some(SpeedGap { lost, decisions: 17, models });
        run
    }

    #[test]
    fn one_run_says_how_much_whose_and_where() {
        let line = on_the_table(&results(vec![with_gap("fifo+tune", 0.0402, 0.7, Some("node-0"))]));
        assert_eq!(
            line,
            "fifo+tune leaves on the table at most 4.0 % of the speed of the jobs that run, mostly alexnet on node-0 (by \
             17 decisions; a sample of decisions: --bound asks the solver at every one)\n"
        );
    }

    #[test]
    fn several_runs_share_a_line_and_many_are_not_listed() {
        let (bad, good) = (with_gap("las", 0.2, 0.4, None), with_gap("las+tune", 0.0, 0.4, None));
        let line = on_the_table(&results(vec![bad.clone(), good.clone()]));
        assert!(
            line.contains(
                "the jobs that run: las 20.0 % (above all alexnet), las+tune 0.0 %; a sample of decisions"
            ),
            "{line}"
        );
        let mut many = vec![bad; 9];
        many.push(good);
        let line = on_the_table(&results(many));
        assert!(line.contains("from 0.0 % (las+tune) to 20.0 % (las, above all alexnet)"), "{line}");
        assert_eq!(line.lines().count(), 1);
        let page = on_the_table_sentence(&results(vec![with_gap("las", 0.2, 0.4, None)]));
        assert!(page.starts_with("las leaves") && !page.contains("--"), "{page}");
        assert!(page.ends_with("(by a sample of 17 decisions)."), "{page}");
    }

    #[test]
    fn where_gangs_run_it_is_said_what_their_best_is() {
        let mut gangs = with_gap("fifo+tune", 0.1, 0.7, None);
        gangs.bounds = vec![RoundBound { reached: 1.0, bound: 1.1 }];
        assert!(!on_the_table(&results(vec![gangs.clone()])).contains("gang"));
        gangs.jobs[0].gpus = 4;
        let line = on_the_table(&results(vec![gangs]));
        assert!(line.ends_with("(by 17 decisions; a gang counts with what it could use on as few nodes as can hold it, spread over more it might run faster)\n"), "{line}");
    }

    #[test]
    fn where_nothing_depends_on_cpus_nothing_is_said() {
        assert_eq!(on_the_table(&results(vec![run("edf", 1, None)])), "");
    }
}
