//! What a generated workload, or one redrawn from a trace, is made of.

use std::str::FromStr;

use crate::error::InputError;

/// Everything that shapes a workload in addition to the cluster and the profiles.
#[derive(Clone, Debug, PartialEq)]
pub struct WorkloadOptions {
    /// The published generator whose rules are used.
    pub recipe: Recipe,
    /// How many jobs; for traces, `None` takes as many as there are.
    pub jobs: Option<usize>,
    /// Arrivals per hour, where they are drawn.
    pub jobs_per_hour: f64,
    /// All jobs arrive at once (a millisecond apart, in order).
    pub is_static: bool,
    /// Percentages of the model classes.
    pub split: Split,
    /// Whether jobs may have more than one GPU.
    pub multi_gpu: bool,
    /// How long drawn jobs are.
    pub lengths: Lengths,
    /// Where the durations of a trace's jobs come from.
    pub durations: Origin,
    /// Where the arrivals of a trace's jobs come from.
    pub arrivals: Origin,
    /// Which jobs of a Philly log count.
    pub philly: PhillyRules,
    /// Deadlines of jobs that are drawn with them.
    pub deadlines: DeadlineOptions,
    /// Data sets that drawn jobs read, by class; jobs of other classes read none that would have to be fetched.
    pub data: Vec<DataOptions>,
    /// Equal seeds give equal bytes.
    pub seed: u64,
}

/// More than this is a typing error.
const MOST_JOBS: usize = 100_000_000;
/// And so are more data sets than this.
const MOST_SETS: u32 = 10_000;

/// A published generator.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Recipe {
    /// Synergy (OSDI'22): classes by a split, no deadlines.
    #[default]
    Synergy,
    /// The same, with the random numbers of Synergy's own program: a seed gives the jobs that it gives there.
    SynergyArtifact,
    /// ElasticFlow (ASPLOS'23): elastic jobs with deadlines.
    Elasticflow,
}

/// How long drawn jobs are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Lengths {
    /// Half an hour to a week, 17 hours on average: Gavel's mix, Synergy's default.
    #[default]
    Long,
    /// Half an hour to eight hours: Synergy's small traces.
    Short,
}

/// Where a property of a trace's jobs comes from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Origin {
    /// From the distributions of the recipe.
    Drawn,
    /// As the trace has them.
    #[default]
    Trace,
}

/// Which jobs of a Philly log count; those whose attempts make no sense never do.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PhillyRules {
    /// Attempts together must take longer, seconds.
    pub shortest_s: f64,
    /// Attempts together must take less, seconds.
    pub longest_s: f64,
    /// Only jobs submitted strictly between these hours of the log, which then start at 0. Synergy takes 2400 to
    /// 3000 when it uses the log's durations.
    pub hours: Option<(f64, f64)>,
}

/// Deadlines of drawn jobs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DeadlineOptions {
    /// A deadline lies this many durations after the arrival: drawn between these two.
    pub tightness: (f64, f64),
    /// Share of jobs without a deadline, 0 to 1.
    pub best_effort: f64,
}

/// The data sets of one class of models.
#[derive(Clone, Debug, PartialEq)]
pub struct DataOptions {
    /// A class of models, as profiles name it.
    pub class: String,
    /// Number of data sets of this class.
    pub sets: u32,
    /// Their sizes in bytes: drawn between these two, each order of magnitude as likely as another.
    pub bytes: (u64, u64),
    /// How unequally they are used: the second is read `2^skew` times less often than the first, and so on (Zipf).
    pub skew: f64,
}

/// Percentages of model classes; ties go to the class named first.
#[derive(Clone, Debug, PartialEq)]
pub struct Split(pub Vec<(String, f64)>);

impl Default for WorkloadOptions {
    fn default() -> Self {
        WorkloadOptions {
            recipe: Recipe::Synergy,
            jobs: None,
            jobs_per_hour: 8.0,
            is_static: false,
            split: Split::default(),
            multi_gpu: false,
            lengths: Lengths::Long,
            durations: Origin::Trace,
            arrivals: Origin::Trace,
            philly: PhillyRules::default(),
            deadlines: DeadlineOptions::default(),
            data: Vec::new(),
            seed: 1,
        }
    }
}

impl Default for PhillyRules {
    /// Synergy's: the range of the durations that its generator draws.
    fn default() -> Self {
        PhillyRules { shortest_s: 60.0 * 10f64.powf(1.5), longest_s: 60.0 * 1e4, hours: None }
    }
}

impl Default for DeadlineOptions {
    fn default() -> Self {
        DeadlineOptions { tightness: (0.5, 1.5), best_effort: 0.0 }
    }
}

impl Split {
    /// Vision, language and speech, in percent.
    pub fn of(vision: f64, language: f64, speech: f64) -> Self {
        Split(vec![("vision".into(), vision), ("language".into(), language), ("speech".into(), speech)])
    }
}

impl Default for Split {
    /// The one Synergy's runner ships with.
    fn default() -> Self {
        Split::of(20.0, 70.0, 10.0)
    }
}

impl FromStr for Split {
    type Err = InputError;

    /// Reads `20,70,10`: vision, language, speech.
    fn from_str(text: &str) -> Result<Self, InputError> {
        let wrong = || {
            InputError::expected("split", "three percentages that add up to 100, as in 20,70,10").got(text)
        };
        let parts = text
            .split(',')
            .map(|p| p.trim().parse::<f64>())
            .collect::<Result<Vec<_>, _>>()
            .map_err(|_| wrong())?;
        match parts[..] {
            [vision, language, speech] => Split::of(vision, language, speech).checked().ok_or_else(wrong),
            _ => Err(wrong()),
        }
    }
}

impl Split {
    /// Itself, when it adds up to 100.
    pub(crate) fn checked(self) -> Option<Self> {
        let sum: f64 = self.0.iter().map(|(_, percent)| percent).sum();
        (self.0.iter().all(|(_, percent)| *percent >= 0.0) && (sum - 100.0).abs() < 1e-6).then_some(self)
    }
}

impl FromStr for Origin {
    type Err = InputError;

    fn from_str(text: &str) -> Result<Self, InputError> {
        match text {
            "drawn" => Ok(Origin::Drawn),
            "trace" => Ok(Origin::Trace),
            _ => Err(InputError::expected("options", "drawn or trace").got(text)),
        }
    }
}

impl WorkloadOptions {
    /// Refuses what cannot be drawn.
    pub fn check(&self) -> Result<(), InputError> {
        let wrong = |name: &str, what: &str, value: String| {
            Err(InputError::expected("options", what).at_name(name).got(value))
        };
        if !(self.jobs_per_hour.is_finite() && self.jobs_per_hour > 0.0) {
            return wrong("jobs per hour", "a number greater than 0", self.jobs_per_hour.to_string());
        }
        if let Some(jobs) = self.jobs.filter(|n| *n > MOST_JOBS) {
            return wrong("jobs", "at most 100 million", jobs.to_string());
        }
        if self.split.clone().checked().is_none() {
            return wrong("split", "percentages that add up to 100", format!("{:?}", self.split.0));
        }
        let (least, most) = self.deadlines.tightness;
        if !(least > 0.0 && most >= least && most.is_finite()) {
            return wrong(
                "deadline tightness",
                "two ascending numbers greater than 0",
                format!("{least}..{most}"),
            );
        }
        if !(0.0..=1.0).contains(&self.deadlines.best_effort) {
            return wrong(
                "best-effort share",
                "a number from 0 to 1",
                self.deadlines.best_effort.to_string(),
            );
        }
        self.data.iter().try_for_each(DataOptions::check)
    }
}

impl DataOptions {
    fn check(&self) -> Result<(), InputError> {
        let (least, most) = self.bytes;
        let wrong = match () {
            () if self.sets == 0 || self.sets > MOST_SETS => ("sets", "1 to 10,000", self.sets.to_string()),
            () if least == 0 || most < least => {
                ("size", "two ascending sizes greater than 0", format!("{least}..{most}"))
            }
            () if !(0.0..=10.0).contains(&self.skew) => {
                ("skew", "a number from 0 to 10", self.skew.to_string())
            }
            () => return Ok(()),
        };
        let (name, what, value) = wrong;
        Err(InputError::expected("options", what)
            .at_name(format!("data of {}, {name}", self.class))
            .got(value))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_split_must_add_up() {
        assert_eq!("20, 70,10".parse::<Split>(), Ok(Split::default()));
        for text in ["20,70", "20,70,20", "a,b,c", "-10,100,10", "nan,50,50"] {
            let message = text.parse::<Split>().expect_err(text).to_string();
            assert_eq!(
                message,
                format!(
                    "split: got \"{text}\", expected three percentages that add up to 100, as in 20,70,10"
                )
            );
        }
    }

    #[test]
    fn options_that_cannot_be_drawn_are_refused() {
        let options = WorkloadOptions { jobs_per_hour: 0.0, ..WorkloadOptions::default() };
        let message = options.check().expect_err("no arrivals").to_string();
        assert_eq!(message, "options, jobs per hour: got \"0\", expected a number greater than 0");
        assert_eq!(WorkloadOptions::default().check(), Ok(()));
    }
}
