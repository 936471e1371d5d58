//! Figures that are studies or comparisons: which script or options, what they need, what is published of them.
//!
//! ```text
//! figures (synergy, elasticflow) ─▶ PaperFigure ─▶ run by `rota reproduce` as a study or a comparison
//!                                        └ Series ─▶ beside: ours against the published numbers, and what holds
//! ```
//!
//! The runs themselves are `scripts/studies/*.rhai`, to be read and changed; nothing here runs anything.

mod beside;
mod elasticflow;
mod synergy;

pub use beside::{Found, beside, found_in_runs, found_in_study};
pub use elasticflow::ELASTICFLOW;
pub use synergy::SYNERGY;

/// A figure of a paper.
#[derive(Clone, Copy, Debug)]
pub struct PaperFigure {
    /// What the paper calls it.
    pub name: &'static str,
    /// What it shows.
    pub title: &'static str,
    /// How it is run.
    pub how: How,
    /// Files that are not shipped.
    pub needs: &'static [Needed],
    /// What the paper or its artifact says of it.
    pub published: &'static [Series],
    /// What the runs must show if the paper's conclusion holds.
    pub claim: Claim,
    /// What cannot be had again, and why.
    pub caveats: &'static [&'static str],
    /// Minutes that the whole takes on two cores.
    pub full_minutes: f64,
}

/// How a figure is run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum How {
    /// A shipped study of this name.
    Study(&'static str),
    /// `rota compare` with these options; the files needed are added to them.
    Compare(&'static str),
}

/// A file that is not shipped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Needed {
    /// The study's parameter, or the option, that it is given as.
    pub name: &'static str,
    /// The file.
    pub file: &'static str,
    /// Where it lies below a folder of public material.
    pub below: &'static str,
    /// Where it is published.
    pub origin: &'static str,
}

/// Published numbers of one policy.
#[derive(Clone, Copy, Debug)]
pub struct Series {
    /// The policy, as it is called here.
    pub policy: &'static str,
    /// The figure of a run.
    pub figure: &'static str,
    /// What varies along the series, and its values; nothing for a single number.
    pub along: Option<(&'static str, &'static [&'static str])>,
    /// The numbers.
    pub values: &'static [f64],
    /// Where they stand.
    pub source: &'static str,
}

/// A paper's conclusion, as something that runs can show.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Claim {
    /// The tuned allocation has the shorter average completion time, by a factor that grows with the load.
    TuneBeats(&'static str),
    /// ElasticFlow meets at least as many deadlines as everyone else.
    ElasticflowLeads,
}

/// A figure by its name.
pub fn find(figures: &'static [PaperFigure], name: &str) -> Option<&'static PaperFigure> {
    figures.iter().find(|figure| figure.name == name)
}

#[cfg(test)]
mod tests {
    use rota_scripts::shipped;

    use super::*;

    #[test]
    fn every_study_is_shipped_and_every_series_is_whole() {
        for figure in SYNERGY.iter().chain(ELASTICFLOW) {
            if let How::Study(name) = figure.how {
                assert!(shipped::STUDIES.iter().any(|study| study.name == name), "{name} is not shipped");
            }
            for series in figure.published {
                let n = series.along.map_or(1, |(_, at)| at.len());
                assert_eq!(series.values.len(), n, "{} {} of {}", figure.name, series.figure, series.policy);
            }
            assert!(figure.full_minutes > 0.0 && !figure.caveats.is_empty(), "{}", figure.name);
        }
    }
}
