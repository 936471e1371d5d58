//! Numbers that figures show and claims are about: which way is better, and how they are written.

/// A number of a run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Quantity {
    /// Its name among the numbers of a row.
    pub name: &'static str,
    /// What people call it.
    pub shown: &'static str,
    /// Whether less is better.
    pub is_less_better: bool,
    /// How it is written.
    pub unit: Unit,
}

/// How a number is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Seconds, written in hours.
    Hours,
    /// A part of a whole.
    Part,
    /// How many times.
    Times,
    /// Whole things.
    Count,
}

/// Average job completion time.
pub const AVG_JCT: Quantity = time("avg_jct_s", "average JCT");
/// 99th percentile of the completion times.
pub const P99_JCT: Quantity = time("p99_jct_s", "99th percentile of JCT");
/// Average completion time of jobs without a deadline.
pub const BEST_EFFORT_JCT: Quantity = time("avg_best_effort_jct_s", "average JCT of best-effort jobs");
/// Jobs done by their deadline, of all with one.
pub const DEADLINES: Quantity = part("deadline_ratio", "deadlines met", false);
/// How fast all jobs run relative to one GPU each, by GPU of the cluster, averaged over the run.
pub const EFFICIENCY: Quantity = part("cluster_efficiency", "average cluster efficiency", false);
/// GPU time that jobs held, of what there was.
pub const GPUS_GIVEN: Quantity = part("gpu_util", "GPU time given to jobs", false);
/// Last end minus first arrival.
pub const MAKESPAN: Quantity = time("makespan_s", "makespan");
/// Jobs that admission let in.
pub const ADMITTED: Quantity = count("accepted", "jobs admitted", false);
/// Of these, jobs that ended after their deadline.
pub const LATE: Quantity = count("missed", "jobs that end late", true);
/// Jobs that met no step of their deadline, of all with one.
pub const MISSES: Quantity = part("miss_rate", "deadlines missed", true);
/// The part of all value that late jobs lost.
pub const LOST_VALUE: Quantity = part("lost_value", "value lost", true);
/// Gandiva's average completion time of best-effort jobs over the policy's.
pub const BEST_EFFORT_GAIN: Quantity = Quantity {
    name: "best_effort_gain",
    shown: "best-effort JCT, times shorter than Gandiva's",
    is_less_better: false,
    unit: Unit::Times,
};
/// Jobs admitted, each time in the same state.
pub const ENTERED: Quantity = count("entered", "jobs admitted, in the same states", false);
/// Jobs done by their deadline.
pub const MET: Quantity = count("met", "deadlines met", false);
/// Instants at which fewer were admitted than by the greedy admission.
pub const WORSE_INSTANTS: Quantity = count("worse_instants", "instants with fewer admitted", true);
/// Admitted jobs whose deadline was missed.
pub const BROKEN: Quantity = count("broken", "promises broken", true);

impl Quantity {
    /// How many times better the first value is: above 1 it leads.
    pub fn lead(&self, ours: f64, theirs: f64) -> f64 {
        let (better, worse) = if self.is_less_better { (theirs, ours) } else { (ours, theirs) };
        match (better == 0.0, worse == 0.0) {
            (true, true) => 1.0,
            (false, true) => f64::INFINITY,
            _ => better / worse,
        }
    }

    /// A value as people read it.
    pub fn text(&self, value: f64) -> String {
        match self.unit {
            Unit::Hours => format!("{:.2} h", value / 3_600.0),
            Unit::Part => format!("{value:.3}"),
            Unit::Times => format!("{value:.2}x"),
            Unit::Count => format!("{value:.0}"),
        }
    }
}

const fn time(name: &'static str, shown: &'static str) -> Quantity {
    Quantity { name, shown, is_less_better: true, unit: Unit::Hours }
}

const fn part(name: &'static str, shown: &'static str, is_less_better: bool) -> Quantity {
    Quantity { name, shown, is_less_better, unit: Unit::Part }
}

const fn count(name: &'static str, shown: &'static str, is_less_better: bool) -> Quantity {
    Quantity { name, shown, is_less_better, unit: Unit::Count }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lead_is_above_one_whichever_way_is_better() {
        assert_eq!((AVG_JCT.lead(50.0, 100.0), DEADLINES.lead(0.8, 0.4)), (2.0, 2.0));
        assert_eq!(
            (MISSES.lead(0.0, 0.0), MISSES.lead(0.0, 0.1), MISSES.lead(0.1, 0.0)),
            (1.0, f64::INFINITY, 0.0)
        );
    }

    #[test]
    fn numbers_are_written_as_people_read_them() {
        assert_eq!(
            (AVG_JCT.text(5_400.0), DEADLINES.text(0.94623), MET.text(12.0)),
            ("1.50 h".into(), "0.946".into(), "12".into())
        );
    }
}
