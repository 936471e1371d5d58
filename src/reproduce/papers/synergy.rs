//! Synergy (OSDI'22): Figures 1, 6 to 9 and 12, the optimum and the ratio of CPUs to GPUs.

use super::{Claim, How, Needed, PaperFigure, Series};

const ABSTRACT: &str = "Synergy (OSDI'22), artifact guide";
const LOG: &str = "The figure was made from a Philly log that is not public in that form; durations and GPU counts are drawn from \
                   the distributions of the artifact's own generator instead, so absolute times differ.";
const ONE_SEED: &str =
    "The artifact draws arrivals with one seed; `--set seeds=5` shows how much that matters.";
const NO_NUMBERS: &str = "The artifact plots these curves and names no numbers for them: the published claim is `up to 3.4x` over all \
                          experiments.";
const MIX: &str = "The mix of models behind the figure is not in the artifact's guide; 20,70,10 is used, in which few jobs starve \
                   under the greedy allocation.";
const PLACE: &str = "The artifact has no script under this figure's number: what is run is what the paper's section describes.";

const SINGLE: &str =
    "The published row (mean 21.9 h, p99 156.9 h) is FIFO with tune at 9 jobs/h on that log.";

const AT_NINE: Option<(&str, &[&str])> = Some(("jobs_per_hour", &["9"]));

/// Figures that `rota reproduce synergy` knows.
pub const SYNERGY: &[PaperFigure] = &[
    figure(
        "1",
        "LAS and SRTF with multi-GPU jobs against load",
        "synergy-1",
        &[LOG, NO_NUMBERS, ONE_SEED],
        0.5,
    ),
    PaperFigure {
        name: "6",
        title: "Philly's arrivals on 512 GPUs",
        how: How::Study("synergy-6"),
        needs: &[Needed {
            name: "trace",
            file: "philly.csv",
            below: "traces/philly-pollux",
            origin: "github.com/petuum/adaptdl, branch osdi21-artifact (simulator/traces/philly.csv)",
        }],
        published: &[],
        claim: Claim::TuneBeats("proportional"),
        caveats: &[
            "The original used Microsoft's cluster_job_log; this is a public extract of the same months (82,247 of 117,325 jobs, \
             without attempts and failures).",
            NO_NUMBERS,
        ],
        full_minutes: 1.0,
    },
    figure("7", "multi-GPU jobs against load", "synergy-7", &[LOG, NO_NUMBERS, ONE_SEED], 1.0),
    PaperFigure {
        published: &[
            Series {
                policy: "fifo+tune",
                figure: "avg_jct_s",
                along: AT_NINE,
                values: &[21.8766 * 3_600.0],
                source: ABSTRACT,
            },
            Series {
                policy: "fifo+tune",
                figure: "p99_jct_s",
                along: AT_NINE,
                values: &[156.933 * 3_600.0],
                source: ABSTRACT,
            },
        ],
        ..figure("8", "single-GPU jobs against load", "synergy-8", &[LOG, SINGLE, NO_NUMBERS, ONE_SEED], 1.0)
    },
    figure("9", "three mixes of models", "synergy-9", &[LOG, NO_NUMBERS, ONE_SEED], 0.5),
    figure(
        "10",
        "tune beside the optimum",
        "synergy-10",
        &[
            PLACE,
            "The paper says that tune is within 10 % of the optimum; the optimum there is an upper bound that ignores servers, \
             here it is an allocation that runs.",
        ],
        1.0,
    ),
    figure("11", "three to six CPUs for each GPU", "synergy-11", &[PLACE, LOG, NO_NUMBERS], 0.3),
    PaperFigure {
        claim: Claim::TuneBeats("greedy"),
        ..figure(
            "12",
            "DRF and Tetris, greedy and tuned",
            "synergy-12",
            &[LOG, MIX, NO_NUMBERS, ONE_SEED],
            0.5,
        )
    },
];

const fn figure(
    name: &'static str,
    title: &'static str,
    study: &'static str,
    caveats: &'static [&'static str],
    full_minutes: f64,
) -> PaperFigure {
    PaperFigure {
        name,
        title,
        how: How::Study(study),
        needs: &[],
        published: &[],
        claim: Claim::TuneBeats("proportional"),
        caveats,
        full_minutes,
    }
}
