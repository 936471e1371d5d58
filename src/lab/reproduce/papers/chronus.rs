//! Chronus (SoCC'21): deadlines missed and completion times of best-effort jobs, compared with the baselines it names.

use super::{How, Needed, PaperFigure};
use crate::reproduce::chronus::CAVEATS;
use crate::reproduce::claims::{Claim, Claimant, Pairing, Scope, Test};
use crate::reproduce::quantity::{BEST_EFFORT_JCT, LOST_VALUE, MISSES};

/// The schedulers that its paper compares with.
const BASELINES: &[&str] = &["fifo", "srtf", "edf", "tiresias", "themis", "gandiva"];
const AGAINST: Pairing = Pairing::Named("chronus", BASELINES);
const OURS_AGAINST: Pairing = Pairing::Named("just-in-time", &["chronus", "edf", "themis", "srtf"]);

/// The figure that `rota reproduce chronus` knows.
pub(super) const CHRONUS: &[PaperFigure] = &[PaperFigure {
    name: "baselines",
    title: "deadlines missed and best-effort completion times, Chronus and its baselines on its traces",
    how: How::Chronus,
    over_time: None,
    needs: &[
        slo("trace_job_Philly_SLO.csv"),
        slo("trace_job_Philly_MIX1.csv"),
        slo("trace_job_Philly_MIX2.csv"),
    ],
    published: &[],
    along: &["trace"],
    shows: &[MISSES, LOST_VALUE, BEST_EFFORT_JCT],
    claims: &[
        paper(
            "fewer-misses",
            "chronus misses fewer deadlines than each baseline",
            Test::Ahead(AGAINST, MISSES),
        ),
        paper(
            "misses-up-to-14.7x",
            "on one of these traces chronus misses 14.7 times fewer deadlines than a baseline (the paper: up to, over all its traces)",
            Test::UpTo(AGAINST, MISSES, 14.7),
        ),
        paper(
            "best-effort-sooner",
            "best-effort jobs end sooner under chronus than under each baseline",
            Test::Ahead(AGAINST, BEST_EFFORT_JCT),
        ),
        paper(
            "best-effort-up-to-19.9x",
            "on one of these traces best-effort jobs end 19.9 times sooner under chronus than under a baseline (the paper: up to)",
            Test::UpTo(AGAINST, BEST_EFFORT_JCT, 19.9),
        ),
        ours(
            "just-in-time-misses-fewest",
            "just-in-time misses fewer deadlines than chronus, EDF, Themis and SRTF",
            Test::Ahead(OURS_AGAINST, MISSES),
        ),
        ours(
            "just-in-time-best-effort",
            "best-effort jobs end sooner under just-in-time than under chronus",
            Test::Ahead(Pairing::Named("just-in-time", &["chronus"]), BEST_EFFORT_JCT),
        ),
    ],
    attributed: None,
    without_original: &[],
    parameters: &[],
    uses_shipped_baselines: true,
    equal: None,
    caveats: &CAVEATS,
    quick: "the first 2,000 jobs of each trace on 40 nodes, which are more crowded than the figure's 120: several times as many deadlines are missed",
    full_minutes: 8.0,
}];

const fn slo(file: &'static str) -> Needed {
    Needed {
        name: "trace",
        file,
        below: "traces/philly-chronus",
        origin: "https://github.com/S-Lab-System-Group/ChronusArtifact (code/data/exp)",
        keeps: None,
    }
}

const fn paper(name: &'static str, says: &'static str, test: Test) -> Claim {
    Claim { name, says, by: Claimant::Paper, scope: Scope::Figure, test }
}

const fn ours(name: &'static str, says: &'static str, test: Test) -> Claim {
    Claim { name, says, by: Claimant::Rota, scope: Scope::Figure, test }
}
