//! ElasticFlow (ASPLOS'23): Figures 6 to 11, the order of the schedulers on six traces, and its admission.

use super::admission::ADMISSION;
use super::elasticflow_numbers::{IN_6A, IN_6B, IN_7, IN_8A, IN_8B, IN_9, IN_10, IN_11, IN_ORDER, SIZES};
use super::{Attributed, How, Needed, PaperFigure};
use crate::reproduce::claims::{AlongAxis, Claim, Claimant, Pairing, Scope, Test};
use crate::reproduce::quantity::{
    ADMITTED, BEST_EFFORT_GAIN, DEADLINES, EFFICIENCY, GPUS_GIVEN, LATE, MAKESPAN,
};

const ITP: &str = "github.com/microsoft/elasticflow-traces (data/*.tar.gz)";
const ARTIFACT: &str = "github.com/gudiandian/ElasticFlow-artifact (ElasticFlow/traces_for_ElasticFlow)";
const GENERATOR: &str =
    "github.com/gudiandian/ElasticFlow-artifact (what its trace generator writes by default)";

const TESTBED: &str = "Published numbers were measured on a testbed; these are simulated.";
const POLLUX: &str =
    "Pollux, also in the figure, is another simulator, whose input is not public: it is not run here.";
const MENDED: &str = "The shipped policies do not have the defects of the original program and therefore meet other deadlines: \
                      docs/fidelity.md lists them, the table of defects shows what each does to this figure.";
const MENDED_WITHOUT_TABLE: &str = "The shipped policies do not have the defects of the original program and therefore meet other \
                      deadlines: docs/fidelity.md lists them; Figures 6, 8 and 9 have tables of what each defect does.";
const ROUNDS: &str = "Shipped policies decide at multiples of the slot, the original also between them when a job arrives: short jobs with \
                      little time to spare miss their deadlines by that wait (docs/fidelity.md, *Rounds*).";
const CHRONUS: &str = "chronus holds leases of 240 s, as the paper set its lease for these figures. By the original's rules it is ElasticFlow's \
                       port of Chronus to seconds (`--set edition=elasticflow`); a packed plan that is proved to reach the optimum of \
                       the port's model is used without solving the model (`--set plans=proved`).";
const EQUAL: &str =
    "policies that give every job the GPUs it asks for at once meet the same deadlines, because no job waits";
/// ElasticFlow's port of Chronus, with ticks of 240 s.
const PORT: &[(&str, &str, &str)] = &[("chronus", "edition", "elasticflow"), ("chronus", "plans", "proved")];
/// The same with ticks of 60 s, for the figures with slots of 60 s.
const PORT_BY_MINUTES: &[(&str, &str, &str)] =
    &[("chronus", "edition", "elasticflow"), ("chronus", "plans", "proved"), ("chronus", "check", "60")];
const NO_QUICK: &str = "nothing is left out; it takes seconds";

const LEADS: Claim = paper(
    "elasticflow-ahead",
    "elasticflow meets more deadlines than every other policy",
    Test::Ahead(Pairing::Everybody("elasticflow"), DEADLINES),
);
const NEVER_BEHIND: Claim = paper(
    "elasticflow-never-behind",
    "elasticflow meets at least as many deadlines as every other policy",
    Test::NeverBehind(Pairing::Everybody("elasticflow"), DEADLINES),
);
const AGREES: Claim = paper(
    "numbers-agree",
    "every ratio of deadlines met is the published one within 10 %",
    Test::Agrees(&[DEADLINES], 0.1),
);
const BY_1_46: Claim = paper(
    "at-least-1.46x",
    "elasticflow meets at least 1.46 times as many deadlines as every other policy",
    Test::ByFactor(Pairing::Everybody("elasticflow"), DEADLINES, 1.46),
);
const UP_TO_7_65: Claim = paper(
    "up-to-7.65x",
    "elasticflow meets 7.65 times as many deadlines as some other policy (the paper: up to 7.65x)",
    Test::UpTo(Pairing::Everybody("elasticflow"), DEADLINES, 7.645),
);

const ON_195: &[Needed] = &[itp("trace", "195job.csv")];
const ON_ELEVEN: &[Needed] = &[
    itp("cluster01", "cluster01.csv"),
    itp("cluster02", "cluster02.csv"),
    itp("cluster03", "cluster03.csv"),
    itp("cluster04", "cluster04.csv"),
    itp("cluster05", "cluster05.csv"),
    itp("cluster06", "cluster06.csv"),
    itp("cluster07", "cluster07.csv"),
    itp("cluster08", "cluster08.csv"),
    itp("cluster09", "cluster09.csv"),
    itp("cluster10", "cluster10.csv"),
    PHILLY,
];
const PHILLY: Needed = Needed {
    name: "philly",
    file: "philly_103959.csv",
    below: "traces/philly-elasticflow",
    origin: ARTIFACT,
    keeps: None,
};

/// Figures that `rota reproduce elasticflow` knows, besides the functional test.
pub(super) const ELASTICFLOW: &[PaperFigure] = &[
    PaperFigure {
        needs: ON_195,
        published: IN_6A,
        claims: &[
            LEADS,
            paper(
                "at-least-1.6x",
                "elasticflow meets at least 1.6 times as many deadlines as every other policy",
                Test::ByFactor(Pairing::Everybody("elasticflow"), DEADLINES, 1.6),
            ),
            AGREES,
        ],
        attributed: on(&[]),
        caveats: &[
            TESTBED,
            "The 25 jobs were never published; the first 25 of 195job.csv give the published counts of EDF and Tiresias by the \
             original's rules.",
            CHRONUS,
            POLLUX,
            ROUNDS,
            MENDED,
        ],
        ..figure("6a", "deadlines met by 25 jobs on 32 GPUs", How::Study("elasticflow-6a"), 0.1)
    },
    PaperFigure {
        needs: ON_195,
        published: IN_6B,
        claims: &[LEADS, BY_1_46, UP_TO_7_65, AGREES],
        attributed: on(&[]),
        caveats: &[TESTBED, CHRONUS, ROUNDS, MENDED],
        ..figure("6b", "deadlines met by 195 jobs on 128 GPUs", How::Study("elasticflow-6b"), 0.1)
    },
    PaperFigure {
        needs: ON_195,
        published: IN_7,
        over_time: Some("-p elasticflow,edf,tiresias --cluster a100 --round 4m --plot"),
        shows: &[DEADLINES, ADMITTED, LATE, GPUS_GIVEN],
        claims: &[
            LEADS,
            paper(
                "admitted-are-in-time",
                "every job that elasticflow admits meets its deadline",
                Test::None(&["elasticflow"], LATE),
            ),
        ],
        caveats: &[
            "The figure is drawn from the testbed's logs, which are not public; `GPUs over time` of each policy, on the page in \
             `over-time`, is the simulated counterpart of 7(a), whose average is the GPU time given; jobs admitted are that of 7(b). \
             The published deadlines met are Figure 6(b)'s.",
            TESTBED,
            ROUNDS,
            MENDED_WITHOUT_TABLE,
        ],
        ..figure(
            "7",
            "GPUs given and jobs admitted over time, 195 jobs on 128 GPUs",
            How::Study("elasticflow-7"),
            0.2,
        )
    },
    PaperFigure {
        needs: &[Needed {
            name: "trace",
            file: "elasticVpollux_e.csv",
            below: "traces/philly-elasticflow",
            origin: ARTIFACT,
            keeps: None,
        }],
        published: IN_8A,
        parameters: PORT_BY_MINUTES,
        claims: &[LEADS, AGREES],
        attributed: on(&[]),
        caveats: &[
            "Pollux is .523 in the figure and .5026 in the README of its run.",
            CHRONUS,
            POLLUX,
            ROUNDS,
            MENDED,
        ],
        ..figure("8a", "deadlines met by 195 jobs on 64 T4s, with Pollux", How::Study("elasticflow-8a"), 0.3)
    },
    PaperFigure {
        needs: ON_ELEVEN,
        published: IN_8B,
        along: &["trace"],
        parameters: PORT_BY_MINUTES,
        claims: &[LEADS, NEVER_BEHIND, AGREES],
        attributed: on(&[("trace", "philly_103959")]),
        caveats: &[
            "Philly's published numbers come out of the original program on 4 servers (EDF .0103, published .01), not on the 32 \
             that the artifact's newest script gives it and that are used here.",
            "Gandiva's published numbers do not come out of the released program: it gives .331 on cluster10, published .354.",
            "Two fixes after publication changed ElasticFlow and Tiresias in the original; its newest version is followed.",
            CHRONUS,
            ROUNDS,
            MENDED,
        ],
        quick: "three of eleven traces: on cluster03 jobs wait, as on most of them; on cluster10 and Philly hardly any does",
        ..figure("8b", "deadlines met by six schedulers on eleven traces", How::Study("elasticflow-8b"), 3.0)
    },
    PaperFigure {
        published: IN_9,
        along: &["cluster"],
        claims: &[
            paper(
                "both-are-needed",
                "elasticflow meets more deadlines than without admission control, without elasticity and without both",
                Test::Ahead(Pairing::Everybody("elasticflow"), DEADLINES),
            ),
            paper(
                "admission-helps",
                "EDF meets more deadlines with admission control than without",
                Test::Ahead(Pairing::Named("edf-admission", &["edf"]), DEADLINES),
            ),
            paper(
                "elasticity-helps",
                "EDF meets more deadlines with elasticity than without",
                Test::Ahead(Pairing::Named("elasticflow-open", &["edf"]), DEADLINES),
            ),
            paper(
                "admission-matters-when-scarce",
                "what admission control adds to elasticity is more on 64 GPUs than on 256",
                Test::LeadGrows(
                    Pairing::Named("elasticflow", &["elasticflow-open"]),
                    DEADLINES,
                    AlongAxis { name: "cluster", values: FEWER },
                ),
            ),
            AGREES,
        ],
        attributed: Some(Attributed {
            policies: &["elasticflow", "elasticflow-open", "edf", "edf-admission"],
            of: DEADLINES,
            at: &[("cluster", "a100-8")],
            at_quick: None,
        }),
        caveats: &[
            "The thousand jobs were drawn without a seed: ours are other jobs of the same distributions, three seeds of them (one with --quick).",
            "The paper's EDF+elasticity is the artifact's `ef`, ElasticFlow without admission control.",
            ROUNDS,
            MENDED,
        ],
        quick: "one seed in place of three",
        ..figure("9", "what admission control and elasticity each bring", How::Study("elasticflow-9"), 0.4)
    },
    PaperFigure {
        needs: &[Needed {
            name: "trace",
            file: "100jobs_1500lam.csv",
            below: "golden/elasticflow/traces",
            origin: GENERATOR,
            keeps: None,
        }],
        published: IN_10,
        over_time: Some("-p elasticflow,edf,gandiva,tiresias,themis --cluster a100 --round 4m --plot"),
        shows: &[EFFICIENCY, MAKESPAN, DEADLINES],
        claims: &[
            paper(
                "elasticflow-most-efficient",
                "the cluster's average efficiency is higher under elasticflow than under the figure's other policies",
                Test::Ahead(OF_FIGURE_10, EFFICIENCY),
            ),
            paper(
                "elasticflow-done-first",
                "the last job ends sooner under elasticflow than under the figure's other policies",
                Test::Ahead(OF_FIGURE_10, MAKESPAN),
            ),
            NEVER_BEHIND,
            paper(
                "numbers-agree",
                "every average efficiency, makespan and ratio of deadlines met is the published one within 10 %",
                Test::Agrees(&[EFFICIENCY, MAKESPAN, DEADLINES], 0.1),
            ),
        ],
        caveats: &[
            "The figure shows efficiency over time, which is drawn on the page in `over-time`; the published numbers are computed \
             from the logs behind it: the average of each curve over time, the end of the last job, the deadlines met.",
            "The port of Chronus knows no scaling: by the original's rules its efficiency counts every GPU as one.",
            CHRONUS,
            ROUNDS,
            MENDED_WITHOUT_TABLE,
        ],
        equal: Some(
            "policies that give every job the GPUs it asks for at once run them at the same speed, because no job waits",
        ),
        ..figure(
            "10",
            "cluster efficiency over time, 100 jobs on 128 GPUs",
            How::Study("elasticflow-10"),
            0.2,
        )
    },
    PaperFigure {
        published: IN_11,
        along: &["best_effort"],
        shows: &[DEADLINES, BEST_EFFORT_GAIN],
        claims: &[
            NEVER_BEHIND,
            paper(
                "best-effort-sooner-than-gandiva",
                "best-effort jobs end sooner under elasticflow than under gandiva",
                Test::Ahead(Pairing::Named("elasticflow", &["gandiva"]), BEST_EFFORT_GAIN),
            ),
            paper(
                "best-effort-later-under-edf",
                "best-effort jobs end later under EDF than under gandiva",
                Test::Ahead(Pairing::Named("gandiva", &["edf"]), BEST_EFFORT_GAIN),
            ),
            AGREES,
        ],
        caveats: &[
            "The artifact draws deadlines and best-effort jobs without a seed: ours are other jobs of the same distributions, five \
             seeds of them (one with --quick).",
            CHRONUS,
            "The port's converter gives best-effort jobs a deadline; here they have none under Chronus either.",
            ROUNDS,
            MENDED_WITHOUT_TABLE,
        ],
        quick: "three shares of best-effort jobs in place of nine, one seed in place of five",
        ..figure("11", "best-effort jobs among those with deadlines", How::Study("elasticflow-11"), 0.3)
    },
    PaperFigure {
        needs: &[
            itp("testbed", "195job.csv"),
            Needed {
                name: "generated",
                file: "100jobs_1500lam.csv",
                below: "golden/elasticflow/traces",
                origin: GENERATOR,
                keeps: None,
            },
            itp("cluster01", "cluster01.csv"),
            itp("cluster06", "cluster06.csv"),
            itp("cluster10", "cluster10.csv"),
            PHILLY,
        ],
        published: IN_ORDER,
        along: &["trace"],
        claims: &[NEVER_BEHIND],
        caveats: &[TESTBED, ROUNDS, MENDED_WITHOUT_TABLE],
        ..figure("order", "the order of the schedulers on six traces", How::Study("elasticflow-order"), 0.2)
    },
    ADMISSION,
];

/// Chronus is not in the figure, and its port counts every GPU as one, however little a job gains by it.
const OF_FIGURE_10: Pairing = Pairing::Named("elasticflow", &["edf", "gandiva", "tiresias", "themis"]);

/// From many GPUs to few.
const FEWER: &[&str] = &[SIZES[2], SIZES[1], SIZES[0]];

const fn figure(name: &'static str, title: &'static str, how: How, full_minutes: f64) -> PaperFigure {
    PaperFigure {
        name,
        title,
        how,
        over_time: None,
        needs: &[],
        published: &[],
        along: &[],
        shows: &[DEADLINES],
        claims: &[],
        attributed: None,
        without_original: &[],
        parameters: PORT,
        uses_shipped_baselines: false,
        equal: Some(EQUAL),
        caveats: &[],
        quick: NO_QUICK,
        full_minutes,
    }
}

/// ElasticFlow and its baselines in one place.
const fn on(at: &'static [(&'static str, &'static str)]) -> Option<Attributed> {
    Some(Attributed {
        policies: &["elasticflow", "edf", "gandiva", "tiresias", "themis"],
        of: DEADLINES,
        at,
        at_quick: None,
    })
}

const fn itp(name: &'static str, file: &'static str) -> Needed {
    Needed { name, file, below: "traces/elasticflow-itp/elasticflow", origin: ITP, keeps: None }
}

const fn paper(name: &'static str, says: &'static str, test: Test) -> Claim {
    Claim { name, says, by: Claimant::Paper, scope: Scope::Figure, test }
}
