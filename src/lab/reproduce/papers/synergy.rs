//! Synergy (OSDI'22): Figures 1, 6 to 9 and 12, the optimum and the ratio of CPUs to GPUs.

use super::{Attributed, How, Needed, PaperFigure, Series};
use crate::reproduce::claims::{AlongAxis, Claim, Claimant, Pairing, Test};
use crate::reproduce::quantity::{AVG_JCT, P99_JCT, Quantity};

const GUIDE: &str = "Synergy (OSDI'22), artifact guide: FIFO with tune, 9 jobs/h, one GPU for each job";
const DRAWS: &str = "Jobs are those that the artifact's program draws with its seed, 42 (`rota simulate --workload \
                     synergy-artifact`): with one GPU for each job nothing of the Philly log is left in them but their number. \
                     `--set seeds=5` adds four more seeds.";
const SYNTHETIC: &str = "GPU counts came from a Philly log that is not public in that form; jobs are those of the artifact's \
                         synthetic mode with its seed, 42. `--set seeds=5` adds four more seeds.";
const NO_NUMBERS: &str = "The artifact plots these curves and names no numbers for them: published is `up to 3.4x` over all experiments.";
const PLACE: &str = "The artifact has no script under this figure's number: what is run is what the paper's section describes.";
const CRITICAL: &str = "At 9 jobs/h the jobs ask for as much as the cluster can give (151 of 128 GPUs at their proportional shares, 132 if \
                        each had its demand), so that the queue of FIFO hangs on the draw: by the original's rules the published \
                        21.9 h come out for seed 42, and 27.7, 43.4 and 19.5 h for seeds 43 to 45.";
const QUICK_SINGLE: &str = "a quarter of the jobs on a quarter of the cluster (32 GPUs) at a quarter of the load, so that queues are as \
                            long as in the figure; jobs per hour are to be read times four";
const QUICK_MULTI: &str = "a quarter of the jobs on a quarter of the cluster (32 GPUs) at a quarter of the load, so that queues are as \
                           long as in the figure; jobs per hour are to be read times four, and jobs of 8 GPUs weigh more";

const LOAD: AlongAxis = AlongAxis { name: "jobs_per_hour", values: &[] };
const CPUS: AlongAxis = AlongAxis { name: "cluster", values: &["cpu6", "cpu5", "cpu4", "default"] };
const AGAINST_SHARES: Pairing = Pairing::Allocations("tune", "proportional");
const AGAINST_GREEDY: Pairing = Pairing::Allocations("tune", "greedy");
const TIMES: &[Quantity] = &[AVG_JCT, P99_JCT];

const NEVER_SLOWER: Claim = paper(
    "tune-never-slower",
    "average JCT with tune is nowhere longer than with proportional shares",
    Test::NeverBehind(AGAINST_SHARES, AVG_JCT),
);
const TAIL: Claim = paper(
    "tail-never-longer",
    "the 99th percentile of JCT with tune is nowhere longer than with proportional shares",
    Test::NeverBehind(AGAINST_SHARES, P99_JCT),
);
const GROWS: Claim = paper(
    "lead-grows-with-load",
    "tune's lead over proportional shares is larger at the highest load than at the lowest",
    Test::LeadGrows(AGAINST_SHARES, AVG_JCT, LOAD),
);
const AT_MOST: Claim = paper(
    "up-to-3.4x",
    "somewhere average JCT with tune is shorter by 3.4x, the most over all of the paper's experiments",
    Test::UpTo(AGAINST_SHARES, AVG_JCT, 3.4),
);
const AGAINST_LOAD: &[Claim] = &[NEVER_SLOWER, GROWS, TAIL, AT_MOST];

/// Figures that `rota reproduce synergy` knows.
pub const SYNERGY: &[PaperFigure] = &[
    PaperFigure {
        caveats: &[SYNTHETIC, NO_NUMBERS],
        quick: QUICK_MULTI,
        ..figure("1", "LAS and SRTF with multi-GPU jobs against load", "synergy-1", AGAINST_LOAD, 1.0)
    },
    PaperFigure {
        needs: &[Needed {
            name: "trace",
            file: "philly.csv",
            below: "traces/philly-pollux",
            origin: "github.com/petuum/adaptdl, branch osdi21-artifact (simulator/traces/philly.csv)",
        }],
        along: &[],
        without_original: &[
            "fifo+proportional",
            "fifo+tune",
            "las+proportional",
            "las+tune",
            "srtf+proportional",
            "srtf+tune",
        ],
        claims: &[NEVER_SLOWER, TAIL, AT_MOST],
        caveats: &[
            "The original used Microsoft's cluster_job_log; this is a public extract of the same months (82,247 of 117,325 jobs, \
             without attempts and failures).",
            "The original's rules are not run: the extract has jobs of 32 GPUs and more, and the program knows 1, 2, 4, 8 and 16.",
            NO_NUMBERS,
        ],
        quick: "the first 8,000 jobs: the cluster is not full yet, so that queues are missing",
        ..figure("6", "Philly's arrivals on 512 GPUs", "synergy-6", &[], 4.0)
    },
    PaperFigure {
        caveats: &[SYNTHETIC, NO_NUMBERS],
        quick: QUICK_MULTI,
        ..figure("7", "multi-GPU jobs against load", "synergy-7", AGAINST_LOAD, 2.0)
    },
    PaperFigure {
        published: &[published(AVG_JCT, &[21.8766 * 3_600.0]), published(P99_JCT, &[156.933 * 3_600.0])],
        shows: TIMES,
        claims: &[
            NEVER_SLOWER,
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
        }),
        caveats: &[DRAWS, CRITICAL, NO_NUMBERS],
        ..figure("8", "single-GPU jobs against load", "synergy-8", &[], 4.0)
    },
    PaperFigure {
        along: &["split", "jobs_per_hour"],
        attributed: Some(Attributed {
            policies: &["las+tune", "las+proportional"],
            of: AVG_JCT,
            at: &[("jobs_per_hour", "9"), ("split", "50,0,50")],
        }),
        ..figure("9", "three mixes of models", "synergy-9", AGAINST_LOAD, 2.0)
    },
    PaperFigure {
        along: &[],
        claims: &[
            paper(
                "within-10-percent-of-opt",
                "average JCT with tune is within 10 % of the optimum's under every order",
                Test::Within(Pairing::Allocations("tune", "opt"), AVG_JCT, 0.1),
            ),
            NEVER_SLOWER,
        ],
        caveats: &[
            PLACE,
            "The original's optimum is not run: it pays levels that no set of servers may have, and which of several equal optima it \
             takes hangs on its solver (docs/fidelity.md); the shipped `opt` is an allocation that runs.",
        ],
        without_original: &["fifo+opt", "srtf+opt"],
        quick: "40 jobs in place of 120, one seed",
        ..figure("10", "tune beside the optimum", "synergy-10", &[], 2.0)
    },
    PaperFigure {
        along: &["cluster"],
        claims: &[
            NEVER_SLOWER,
            TAIL,
            ours(
                "lead-grows-with-scarcity",
                "tune's lead over proportional shares is larger with 3 CPUs for each GPU than with 6",
                Test::LeadGrows(AGAINST_SHARES, AVG_JCT, CPUS),
            ),
        ],
        caveats: &[PLACE, DRAWS, NO_NUMBERS],
        quick: "3,000 jobs in place of 7,000, measured earlier: queues are shorter than in the figure",
        ..figure("11", "three to six CPUs for each GPU", "synergy-11", &[], 1.0)
    },
    PaperFigure {
        claims: &[
            paper(
                "tune-never-slower-than-greedy",
                "average JCT with tune is nowhere longer than with the greedy allocation",
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
        }),
        caveats: &[
            DRAWS,
            "The guide does not name the mix of models behind this figure: 20,70,10, the program's own, is run; `--set split=33,33,34` \
             runs another.",
            NO_NUMBERS,
        ],
        ..figure("12", "DRF and Tetris, greedy and tuned", "synergy-12", &[], 2.0)
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
        shows: &[AVG_JCT],
        claims,
        attributed: None,
        without_original: &[],
        caveats: &[DRAWS, NO_NUMBERS],
        quick: QUICK_SINGLE,
        full_minutes,
    }
}

const fn paper(name: &'static str, says: &'static str, test: Test) -> Claim {
    Claim { name, says, by: Claimant::Paper, test }
}

const fn ours(name: &'static str, says: &'static str, test: Test) -> Claim {
    Claim { name, says, by: Claimant::Rota, test }
}

const fn published(of: Quantity, values: &'static [f64]) -> Series {
    Series { policy: "fifo+tune", of, along: None, at: &[("jobs_per_hour", "9")], values, source: GUIDE }
}
