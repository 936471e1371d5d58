//! Synergy (OSDI'22): Figures 1, 6 to 9 and 12, tune against the optimum, and the ratio of CPUs to GPUs.

use super::{Attributed, How, Keeps, Needed, PaperFigure, Series};
use crate::reproduce::claims::{AlongAxis, Claim, Claimant, Pairing, Scope, Test};
use crate::reproduce::quantity::{AVG_JCT, P99_JCT, Quantity};

const GUIDE: &str = "Synergy (OSDI'22), artifact guide: FIFO with tune, 9 jobs/h, one GPU for each job";
const DRAWS: &str = "Jobs are those that the artifact's program draws with its seed, 42 (`rota simulate --workload \
                     synergy-artifact`): with one GPU for each job, only their number comes from the Philly log. \
                     `--set seeds=5` adds four more seeds.";
const SYNTHETIC: &str = "GPU counts came from a Philly log that is not public in that form; jobs are those of the artifact's \
                         synthetic mode with its seed, 42. `--set seeds=5` adds four more seeds.";
const NO_NUMBERS: &str = "The artifact plots these curves and states no numbers for them; the paper states `up to 3.4x` over all its experiments.";
const PLACE: &str =
    "The artifact has no script with this figure's number; what is run follows the paper's section.";
const CRITICAL: &str = "At 9 jobs/h the jobs ask for as much as the cluster can give (151 of 128 GPUs at their proportional shares, 132 if \
                        each had its demand), so that the length of FIFO's queue depends on the draw: by the original's rules the published \
                        21.9 h come out for seed 42, and 27.7, 43.4 and 19.5 h for seeds 43 to 45.";
const QUICK_SINGLE: &str = "a quarter of the jobs on a quarter of the cluster (32 GPUs) at a quarter of the load, so that queues are as \
                            long as in the figure; multiply jobs per hour by four";
const QUICK_MULTI: &str = "a quarter of the jobs on a quarter of the cluster (32 GPUs) at a quarter of the load, so that queues are as \
                           long as in the figure; multiply jobs per hour by four; a job of 8 GPUs is a larger part of the cluster";

const LOAD: AlongAxis = AlongAxis { name: "jobs_per_hour", values: &[] };
const CPUS: AlongAxis = AlongAxis { name: "cluster", values: &["cpu6", "cpu5", "cpu4", "default"] };
const AGAINST_SHARES: Pairing = Pairing::Allocations("tune", "proportional");
const AGAINST_GREEDY: Pairing = Pairing::Allocations("tune", "greedy");
const TIMES: &[Quantity] = &[AVG_JCT, P99_JCT];

const NEVER_SLOWER: Claim = paper(
    "tune-never-slower",
    "average JCT with tune is never longer than with proportional shares",
    Test::NeverBehind(AGAINST_SHARES, AVG_JCT),
);
const TAIL: Claim = paper(
    "tail-never-longer",
    "the 99th percentile of JCT with tune is never longer than with proportional shares",
    Test::NeverBehind(AGAINST_SHARES, P99_JCT),
);
const GROWS: Claim = paper(
    "lead-grows-with-load",
    "tune's lead over proportional shares is larger at the highest load than at the lowest",
    Test::LeadGrows(AGAINST_SHARES, AVG_JCT, LOAD),
);
const AHEAD_UNDER_LOAD: Claim = paper(
    "tune-ahead-under-load",
    "at the highest load average JCT with tune is shorter than with proportional shares, under every order",
    Test::AheadAtEnd(AGAINST_SHARES, AVG_JCT, LOAD),
);
const AT_MOST: Claim = Claim {
    name: "up-to-3.4x",
    says: "in some experiment average JCT is 3.4 times shorter with tune than with proportional shares",
    by: Claimant::Paper,
    scope: Scope::Paper,
    test: Test::UpTo(AGAINST_SHARES, AVG_JCT, 3.4),
};
const AGAINST_LOAD: &[Claim] = &[NEVER_SLOWER, AHEAD_UNDER_LOAD, GROWS, TAIL, AT_MOST];

/// Figures that `rota reproduce synergy` knows.
pub const SYNERGY: &[PaperFigure] = &[
    PaperFigure {
        caveats: &[SYNTHETIC, NO_NUMBERS],
        quick: QUICK_MULTI,
        ..figure("1", "LAS and SRTF with multi-GPU jobs against load", "synergy-1", AGAINST_LOAD, 0.4)
    },
    PaperFigure {
        needs: &[Needed {
            name: "trace",
            file: "philly.csv",
            below: "traces/philly-pollux",
            origin: "github.com/petuum/adaptdl, branch osdi21-artifact (simulator/traces/philly.csv)",
            // The reader of the original's program skips the others.
            keeps: Some(Keeps { column: "num_gpus", values: &["1", "2", "4", "8", "16"] }),
        }],
        along: &[],
        claims: &[NEVER_SLOWER, TAIL, AT_MOST],
        caveats: &[
            "The original used Microsoft's cluster_job_log; this is a public extract of the same months (82,247 of 117,325 jobs, \
             without attempts and failures).",
            "Jobs of 12, 24, 32, 64 and 128 GPUs, 90 of the 82,247, are left out: the original's reader skips GPU counts other than \
             1, 2, 4, 8 and 16.",
            NO_NUMBERS,
        ],
        quick: "nothing is left out; it takes seconds",
        ..figure("6", "Philly's arrivals on 512 GPUs", "synergy-6", &[], 0.3)
    },
    PaperFigure {
        caveats: &[SYNTHETIC, NO_NUMBERS],
        quick: QUICK_MULTI,
        ..figure("7", "multi-GPU jobs against load", "synergy-7", AGAINST_LOAD, 0.7)
    },
    PaperFigure {
        published: &[published(AVG_JCT, &[21.8766 * 3_600.0]), published(P99_JCT, &[156.933 * 3_600.0])],
        claims: &[
            NEVER_SLOWER,
            AHEAD_UNDER_LOAD,
            GROWS,
            TAIL,
            AT_MOST,
            paper(
                "numbers-agree",
                "average and 99th percentile of JCT of FIFO with tune at 9 jobs/h are the published ones within 1 %",
                Test::Agrees(TIMES, 0.01),
            ),
        ],
        attributed: Some(Attributed {
            policies: &["fifo+tune", "fifo+proportional"],
            of: AVG_JCT,
            at: &[("jobs_per_hour", "9")],
            at_quick: Some(&[("jobs_per_hour", "2.25")]),
        }),
        caveats: &[DRAWS, CRITICAL, NO_NUMBERS],
        ..figure("8", "single-GPU jobs against load", "synergy-8", &[], 1.0)
    },
    PaperFigure {
        along: &["split", "jobs_per_hour"],
        attributed: Some(Attributed {
            policies: &["las+tune", "las+proportional"],
            of: AVG_JCT,
            at: &[("jobs_per_hour", "9"), ("split", "50,0,50")],
            at_quick: Some(&[("jobs_per_hour", "2.25"), ("split", "50,0,50")]),
        }),
        ..figure("9", "three mixes of models", "synergy-9", AGAINST_LOAD, 1.0)
    },
    PaperFigure {
        shows: &[AVG_JCT],
        claims: &[
            paper(
                "within-10-percent-of-opt",
                "average JCT with tune is at most 10 % longer than with opt, at every load and under every order",
                Test::Within(Pairing::Allocations("tune", "opt"), AVG_JCT, 0.1),
            ),
            NEVER_SLOWER,
            AHEAD_UNDER_LOAD,
        ],
        caveats: &[
            PLACE,
            "The original's opt pays every job the speed of its level in the model, also where no set of servers could give it, so \
             it is a bound and no schedule; equal optima are many, and which one its program follows depends on its solver. The \
             shipped opt is an allocation that runs.",
            "Smaller than in the paper, 32 GPUs and the short mix, because an optimum is solved at every round.",
        ],
        quick: "two loads in place of four, 120 jobs in place of 240, one seed in place of three",
        ..figure("10", "tune against the optimum", "synergy-10", &[], 2.0)
    },
    PaperFigure {
        along: &["cluster"],
        claims: &[
            NEVER_SLOWER,
            TAIL,
            AT_MOST,
            ours(
                "lead-grows-with-scarcity",
                "tune's lead over proportional shares is larger with 3 CPUs for each GPU than with 6",
                Test::LeadGrows(AGAINST_SHARES, AVG_JCT, CPUS),
            ),
        ],
        caveats: &[PLACE, DRAWS, NO_NUMBERS],
        quick: "3,000 jobs in place of 7,000, so that queues are shorter than in the figure",
        ..figure("11", "three to six CPUs for each GPU", "synergy-11", &[], 0.2)
    },
    PaperFigure {
        claims: &[
            paper(
                "tune-never-slower-than-greedy",
                "average JCT with tune is never longer than with the greedy allocation",
                Test::NeverBehind(AGAINST_GREEDY, AVG_JCT),
            ),
            paper(
                "lead-over-greedy-grows-with-load",
                "tune's lead over the greedy allocation is larger at the highest load than at the lowest",
                Test::LeadGrows(AGAINST_GREEDY, AVG_JCT, LOAD),
            ),
        ],
        attributed: Some(Attributed {
            policies: &["drf+tune", "drf+greedy", "tetris+tune", "tetris+greedy"],
            of: AVG_JCT,
            at: &[("jobs_per_hour", "9")],
            at_quick: Some(&[("jobs_per_hour", "2.25")]),
        }),
        shows: &[AVG_JCT],
        caveats: &[
            DRAWS,
            "The guide does not name the mix of models behind this figure: 20,70,10, the program's own, is run; `--set split=33,33,34` \
             runs another.",
            NO_NUMBERS,
        ],
        ..figure("12", "DRF and Tetris, greedy and tuned", "synergy-12", &[], 0.7)
    },
];

const fn figure(
    name: &'static str,
    title: &'static str,
    study: &'static str,
    claims: &'static [Claim],
    full_minutes: f64,
) -> PaperFigure {
    PaperFigure {
        name,
        title,
        how: How::Study(study),
        over_time: None,
        needs: &[],
        published: &[],
        along: &["jobs_per_hour"],
        shows: TIMES,
        claims,
        attributed: None,
        without_original: &[],
        parameters: &[],
        uses_shipped_baselines: false,
        equal: None,
        caveats: &[DRAWS, NO_NUMBERS],
        quick: QUICK_SINGLE,
        full_minutes,
    }
}

const fn paper(name: &'static str, says: &'static str, test: Test) -> Claim {
    Claim { name, says, by: Claimant::Paper, scope: Scope::Figure, test }
}

const fn ours(name: &'static str, says: &'static str, test: Test) -> Claim {
    Claim { name, says, by: Claimant::Rota, scope: Scope::Figure, test }
}

const fn published(of: Quantity, values: &'static [f64]) -> Series {
    Series { policy: "fifo+tune", of, along: None, at: &[("jobs_per_hour", "9")], values, source: GUIDE }
}
