//! ElasticFlow (ASPLOS'23): Figures 6, 7, 8(a), 9, 10 and 11. Figure 8(b) has a room of its own.

use super::{Claim, How, Needed, PaperFigure, Series};

const ITP: &str = "github.com/microsoft/elasticflow-traces (data/*.tar.gz)";
const ARTIFACT: &str = "github.com/gudiandian/ElasticFlow-artifact (ElasticFlow/traces_for_ElasticFlow)";

const SIX_A: &str = "ElasticFlow (ASPLOS'23), Figure 6(a), a testbed of 32 A100s";
const SIX_B: &str = "ElasticFlow (ASPLOS'23), Figure 6(b), a testbed of 128 A100s";
const EIGHT_A: &str = "ElasticFlow (ASPLOS'23), Figure 8(a), simulated";
const NINE: &str = "ElasticFlow (ASPLOS'23), Figure 9";
const TEN: &str = "ElasticFlow (ASPLOS'23), Figure 10, logs shipped with the artifact";
const ELEVEN: &str = "ElasticFlow (ASPLOS'23), Figure 11";

const TESTBED: &str = "Published numbers were measured on a testbed; these are simulated.";
const OTHERS: &str = "Chronus and Pollux, also in the figure, are other programs: `rota reproduce chronus`; Pollux is not reproduced.";
const TRACE_195: Needed =
    Needed { name: "trace", file: "195job.csv", below: "traces/elasticflow-itp/elasticflow", origin: ITP };

const SIZES: Option<(&str, &[&str])> = Some(("cluster", &["a100-8", "a100", "a100-32"]));
const SHARES: Option<(&str, &[&str])> =
    Some(("best_effort", &["0.1", "0.2", "0.3", "0.4", "0.5", "0.6", "0.7", "0.8", "0.9"]));

/// Figures that `rota reproduce elasticflow` knows beside 8(b).
pub const ELASTICFLOW: &[PaperFigure] = &[
    PaperFigure {
        name: "6a",
        title: "deadlines met by 25 jobs on 32 GPUs",
        how: How::Compare("-p elasticflow,edf,gandiva,tiresias,themis --jobs 25 --cluster a100-4 --round 4m"),
        needs: &[TRACE_195],
        published: &[
            ratio("edf", &[0.08], SIX_A),
            ratio("gandiva", &[0.24], SIX_A),
            ratio("tiresias", &[0.32], SIX_A),
            ratio("themis", &[0.28], SIX_A),
            ratio("elasticflow", &[0.64], SIX_A),
        ],
        claim: Claim::ElasticflowLeads,
        caveats: &[
            TESTBED,
            "The 25 jobs were never published; the first 25 of 195job.csv give the published counts of EDF and Tiresias in the \
             original program.",
            OTHERS,
        ],
        full_minutes: 0.1,
    },
    PaperFigure {
        name: "6b",
        title: "deadlines met by 195 jobs on 128 GPUs",
        how: How::Compare("-p elasticflow,edf,gandiva,tiresias,themis --cluster a100 --round 4m"),
        needs: &[TRACE_195],
        published: &SIX_B_NUMBERS,
        claim: Claim::ElasticflowLeads,
        caveats: &[TESTBED, OTHERS],
        full_minutes: 0.1,
    },
    PaperFigure {
        name: "7",
        title: "GPUs given and jobs admitted over time, 195 jobs on 128 GPUs",
        how: How::Compare("-p elasticflow,edf,tiresias --cluster a100 --round 4m --plot"),
        needs: &[TRACE_195],
        published: &SIX_B_NUMBERS,
        claim: Claim::ElasticflowLeads,
        caveats: &[
            "The figure is drawn from the testbed's logs, which are not public; the page's `GPUs over time` of each policy is the \
             simulated counterpart of 7(a), declined jobs in its table of 7(b).",
            TESTBED,
        ],
        full_minutes: 0.1,
    },
    PaperFigure {
        name: "8a",
        title: "deadlines met by 195 jobs on 64 T4s, beside Pollux",
        how: How::Compare(
            "-p elasticflow,edf,gandiva,tiresias,themis --cluster t4 --profiles elasticflow-t4 --round 1m",
        ),
        needs: &[Needed {
            name: "trace",
            file: "elasticVpollux_e.csv",
            below: "traces/philly-elasticflow",
            origin: ARTIFACT,
        }],
        published: &[
            ratio("edf", &[0.118], EIGHT_A),
            ratio("gandiva", &[0.09], EIGHT_A),
            ratio("tiresias", &[0.287], EIGHT_A),
            ratio("themis", &[0.312], EIGHT_A),
            ratio("elasticflow", &[0.728], EIGHT_A),
        ],
        claim: Claim::ElasticflowLeads,
        caveats: &[
            "Pollux (.523 in the figure, .5026 in its README) is another simulator, whose input is not public.",
            OTHERS,
        ],
        full_minutes: 0.1,
    },
    PaperFigure {
        name: "9",
        title: "what admission control and elasticity each bring",
        how: How::Study("elasticflow-9"),
        needs: &[],
        published: &[
            along("edf", SIZES, &[0.026, 0.118, 0.118], NINE),
            along("edf-admission", SIZES, &[0.203, 0.326, 0.658], NINE),
            along("elasticflow-open", SIZES, &[0.452, 0.835, 0.939], NINE),
            along("elasticflow", SIZES, &[0.926, 0.949, 0.944], NINE),
        ],
        claim: Claim::ElasticflowLeads,
        caveats: &[
            "The thousand jobs were drawn without a seed: ours are other jobs of the same distributions, three seeds of them.",
            "The paper's EDF+elasticity is the artifact's `ef`, ElasticFlow without admission control.",
        ],
        full_minutes: 0.2,
    },
    PaperFigure {
        name: "10",
        title: "cluster efficiency over time, 100 jobs on 128 GPUs",
        how: How::Compare("-p elasticflow,edf,gandiva,tiresias,themis --cluster a100 --round 4m --plot"),
        needs: &[Needed {
            name: "trace",
            file: "100jobs_1500lam.csv",
            below: "golden/elasticflow/traces",
            origin: "github.com/gudiandian/ElasticFlow-artifact (what its trace generator writes by default)",
        }],
        published: &[
            ratio("edf", &[0.92], TEN),
            ratio("gandiva", &[0.79], TEN),
            ratio("tiresias", &[1.0], TEN),
            ratio("themis", &[0.99], TEN),
            ratio("elasticflow", &[1.0], TEN),
        ],
        claim: Claim::ElasticflowLeads,
        caveats: &[
            "The figure shows efficiency over time, which is drawn on the page; the numbers beside ours are the deadlines met in \
             the same logs.",
            OTHERS,
        ],
        full_minutes: 0.1,
    },
    PaperFigure {
        name: "11",
        title: "best-effort jobs among those with deadlines",
        how: How::Study("elasticflow-11"),
        needs: &[],
        published: &[
            along("edf", SHARES, &[0.09, 0.1, 0.15, 0.15, 0.23, 0.28, 0.44, 0.79, 0.95], ELEVEN),
            along("gandiva", SHARES, &[0.25, 0.24, 0.2, 0.18, 0.19, 0.17, 0.18, 0.18, 0.16], ELEVEN),
            along("tiresias", SHARES, &[0.46, 0.46, 0.44, 0.42, 0.43, 0.41, 0.44, 0.5, 0.53], ELEVEN),
            along("themis", SHARES, &[0.41, 0.4, 0.37, 0.34, 0.36, 0.34, 0.35, 0.42, 0.37], ELEVEN),
            along("elasticflow", SHARES, &[0.74, 0.67, 0.67, 0.69, 0.68, 0.76, 0.82, 0.92, 0.95], ELEVEN),
            gain("edf", &[0.05, 0.05, 0.05, 0.05, 0.07, 0.07, 0.08, 0.08, 0.1]),
            gain("tiresias", &[1.44, 1.39, 1.33, 1.31, 1.26, 1.27, 1.28, 1.3, 1.45]),
            gain("themis", &[1.37, 1.36, 1.34, 1.32, 1.26, 1.27, 1.29, 1.29, 1.46]),
            gain("elasticflow", &[1.6, 1.37, 1.18, 1.11, 1.27, 1.24, 1.19, 1.16, 1.31]),
        ],
        claim: Claim::ElasticflowLeads,
        caveats: &[
            "The artifact draws deadlines and best-effort jobs without a seed: ours are other jobs of the same distributions, five \
             seeds of them.",
            OTHERS,
        ],
        full_minutes: 0.3,
    },
];

const SIX_B_NUMBERS: [Series; 5] = [
    ratio("edf", &[0.0872], SIX_B),
    ratio("gandiva", &[0.2103], SIX_B),
    ratio("tiresias", &[0.4564], SIX_B),
    ratio("themis", &[0.3897], SIX_B),
    ratio("elasticflow", &[0.6667], SIX_B),
];

const fn ratio(policy: &'static str, values: &'static [f64], source: &'static str) -> Series {
    Series { policy, figure: "deadline_ratio", along: None, values, source }
}

const fn along(
    policy: &'static str,
    along: Option<(&'static str, &'static [&'static str])>,
    values: &'static [f64],
    source: &'static str,
) -> Series {
    Series { policy, figure: "deadline_ratio", along, values, source }
}

/// Figure 11(b): how many times shorter best-effort jobs take than under Gandiva.
const fn gain(policy: &'static str, values: &'static [f64]) -> Series {
    Series { policy, figure: super::beside::BEST_EFFORT_GAIN, along: SHARES, values, source: ELEVEN }
}
