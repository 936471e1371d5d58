//! How far ElasticFlow's greedy admission is from the optimum: no figure of the paper, which has no model to compare with.

use super::{How, Needed, PaperFigure};
use crate::reproduce::claims::{Claim, Claimant, Pairing, Scope, Test};
use crate::reproduce::quantity::{BROKEN, ENTERED, MET, WORSE_INSTANTS};

const BOTH: &[&str] = &["elasticflow", "elasticflow-opt"];

/// The comparison of admissions.
pub(super) const ADMISSION: PaperFigure = PaperFigure {
    name: "admission",
    title: "the greedy admission against a model's (elasticflow-opt)",
    how: How::Admission,
    over_time: None,
    needs: &[
        Needed {
            name: "testbed",
            file: "195job.csv",
            below: "traces/elasticflow-itp/elasticflow",
            origin: "github.com/microsoft/elasticflow-traces (data/*.tar.gz)",
            keeps: None,
        },
        Needed {
            name: "cluster10",
            file: "cluster10.csv",
            below: "traces/elasticflow-itp/elasticflow",
            origin: "github.com/microsoft/elasticflow-traces (data/*.tar.gz)",
            keeps: None,
        },
        Needed {
            name: "philly",
            file: "philly_103959.csv",
            below: "traces/philly-elasticflow",
            origin: "github.com/gudiandian/ElasticFlow-artifact (ElasticFlow/traces_for_ElasticFlow)",
            keeps: None,
        },
    ],
    published: &[],
    along: &["trace"],
    shows: &[ENTERED, MET, BROKEN, WORSE_INSTANTS],
    claims: &[
        ours(
            "model-never-admits-fewer",
            "in the state of the greedy admission, the model never admits fewer jobs",
            Test::None(&["elasticflow-opt"], WORSE_INSTANTS),
        ),
        ours("promises-are-kept", "every admitted job meets its deadline", Test::None(BOTH, BROKEN)),
        ours(
            "greedy-near-the-bound",
            "the greedy admission admits at least 95 % of the jobs that any plan could",
            Test::Within(Pairing::Named("elasticflow", &["any plan"]), ENTERED, 0.05 / 0.95),
        ),
        ours(
            "model-meets-more",
            "over whole runs the model meets at least as many deadlines as the greedy admission",
            Test::NeverBehind(Pairing::Named("elasticflow-opt", &["elasticflow"]), MET),
        ),
    ],
    attributed: None,
    without_original: &[],
    parameters: &[],
    uses_shipped_baselines: false,
    equal: None,
    caveats: &[
        "Two of the traces run on 4 servers: on the figures' clusters no job is declined that could have met its deadline alone.",
        "The original has no model to compare with.",
        "`any plan` is the model's bound with restarts ignored; no plan can admit more.",
    ],
    quick: "nothing is left out; it takes seconds",
    full_minutes: 0.5,
};

const fn ours(name: &'static str, says: &'static str, test: Test) -> Claim {
    Claim { name, says, by: Claimant::Rota, scope: Scope::Figure, test }
}
