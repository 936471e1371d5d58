//! One line for each run that broke promises, below every comparison: deadlines that admission promised and the rest of the
//! policy did not keep.

use crate::results::Results;

/// The lines, each with its end; empty where no promise was broken.
pub fn promises(results: &Results) -> String {
    let mut lines = String::new();
    for (name, run) in results.run_names().iter().zip(&results.runs) {
        let Some(promises) = run.summary.promises.as_ref().filter(|_| run.summary.missed > 0) else {
            continue;
        };
        let (missed, promised) = (run.summary.missed, run.summary.met + run.summary.missed);
        let percent = 100.0 * missed as f64 / promised as f64;
        let who = if promises.by == promises.kept_by { "it" } else { &promises.kept_by };
        lines.push_str(&format!(
            "{name}: of {promised} deadlines that {} promised, {who} missed {missed} ({percent:.1} %)\n",
            promises.by
        ));
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::Promises;
    use crate::results::samples::{results, run};

    #[test]
    fn broken_promises_are_counted_and_kept_ones_are_not_worth_a_line() {
        let with = |by: &str, kept_by: &str, met, missed| {
            let mut run = run("las", 1, None);
            run.summary.promises = Some(Promises { by: by.into(), kept_by: kept_by.into() });
            (run.summary.met, run.summary.missed) = (met, missed);
            run
        };
        let line = promises(&results(vec![with("elasticflow-admission", "las+tune", 43, 57)]));
        assert_eq!(
            line,
            "las: of 100 deadlines that elasticflow-admission promised, las+tune missed 57 (57.0 %)\n"
        );
        let line = promises(&results(vec![with("elasticflow", "elasticflow", 199, 1)]));
        assert_eq!(line, "las: of 200 deadlines that elasticflow promised, it missed 1 (0.5 %)\n");
        assert_eq!(promises(&results(vec![with("elasticflow", "elasticflow", 100, 0)])), "");
        assert_eq!(promises(&results(vec![run("las", 1, None)])), "");
    }
}
