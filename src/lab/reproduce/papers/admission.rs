//! How far ElasticFlow's greedy admission is from the optimum: no figure of the paper, which has no model to compare with.

use super::{How, Needed, PaperFigure};
use crate::reproduce::claims::{Claim, Claimant, Pairing, Test};
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
        },
        Needed {
            name: "cluster10",
            file: "cluster10.csv",
            below: "traces/elasticflow-itp/elasticflow",
            origin: "github.com/microsoft/elasticflow-traces (data/*.tar.gz)",
        },
        Needed {
            name: "philly",
            file: "philly_103959.csv",
            below: "traces/philly-elasticflow",
            origin: "github.com/gudiandian/ElasticFlow-artifact (ElasticFlow/traces_for_ElasticFlow)",
        },
    ],
    published: &[],
    along: &["trace"],
    shows: &[ENTERED, MET, BROKEN, WORSE_INSTANTS],
    claims: &[
        ours(
            "model-never-lets-fewer-in",
            "asked in the greedy's state, the model lets fewer in at no instant",
            Test::None(&["elasticflow-opt"], WORSE_INSTANTS),
        ),
        ours("promises-are-kept", "every job that is let in meets its deadline", Test::None(BOTH, BROKEN)),
        ours(
            "greedy-near-the-bound",
            "the greedy admission lets in all but 5 % of what any plan could",
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
    caveats: &[
        "Two of the traces run on 4 servers: on the figures' clusters nobody is declined who could have made it alone.",
        "The original has no model to compare with.",
        "`any plan` is the model's bound with restarts ignored; no plan can let more in.",
    ],
    quick: "nothing is left out: it takes seconds",
    full_minutes: 0.5,
};

const fn ours(name: &'static str, says: &'static str, test: Test) -> Claim {
    Claim { name, says, by: Claimant::Rota, test }
}
