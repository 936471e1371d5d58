//! What ElasticFlow's paper says, number by number, with the source of each.
//!
//! Deadline satisfactory ratios, unless another quantity is named. The artifact plots its figures from numbers typed into
//! its scripts; those are the ones carried over here. Pollux is in two of them and is not run here.

use super::Series;
use crate::reproduce::quantity::{BEST_EFFORT_GAIN, DEADLINES, EFFICIENCY, MAKESPAN, Quantity};

const SIX_A: &str = "ElasticFlow (ASPLOS'23), Figure 6(a), a testbed of 32 A100s";
const SIX_B: &str = "ElasticFlow (ASPLOS'23), Figure 6(b), a testbed of 128 A100s";
const EIGHT_A: &str = "ElasticFlow (ASPLOS'23), Figure 8(a), simulated";
const EIGHT_B: &str = "ElasticFlow (ASPLOS'23), Figure 8(b), simulated";
const NINE: &str = "ElasticFlow (ASPLOS'23), Figure 9";
const TEN: &str = "ElasticFlow (ASPLOS'23), Figure 10, logs shipped with the artifact";
const ELEVEN: &str = "ElasticFlow (ASPLOS'23), Figure 11";

type Along = Option<(&'static str, &'static [&'static str])>;

/// Clusters of 64, 128 and 256 GPUs.
pub(super) const SIZES: &[&str] = &["a100-8", "a100", "a100-32"];
const BY_SIZE: Along = Some(("cluster", SIZES));
const BY_SHARE: Along =
    Some(("best_effort", &["0.1", "0.2", "0.3", "0.4", "0.5", "0.6", "0.7", "0.8", "0.9"]));
const BY_TRACE: Along = Some((
    "trace",
    &[
        "cluster01",
        "cluster02",
        "cluster03",
        "cluster04",
        "cluster05",
        "cluster06",
        "cluster07",
        "cluster08",
        "cluster09",
        "cluster10",
        "philly_103959",
    ],
));
const ON_TESTBED: Along = Some(("trace", &["195job"]));
const ON_GENERATED: Along = Some(("trace", &["100jobs_1500lam"]));
const ON_PAIR: Along = Some(("trace", &["cluster01", "cluster06", "cluster10", "philly_103959"]));

/// Figure 6(a).
pub(super) const IN_6A: &[Series] = &[
    ratios("elasticflow", None, &[0.64], SIX_A),
    ratios("edf", None, &[0.08], SIX_A),
    ratios("gandiva", None, &[0.24], SIX_A),
    ratios("tiresias", None, &[0.32], SIX_A),
    ratios("themis", None, &[0.28], SIX_A),
    ratios("chronus", None, &[0.40], SIX_A),
    ratios("pollux", None, &[0.32], SIX_A),
];

/// Figure 6(b).
pub(super) const IN_6B: &[Series] = &[
    ratios("elasticflow", None, &[0.6667], SIX_B),
    ratios("edf", None, &[0.0872], SIX_B),
    ratios("gandiva", None, &[0.2103], SIX_B),
    ratios("tiresias", None, &[0.4564], SIX_B),
    ratios("themis", None, &[0.3897], SIX_B),
    ratios("chronus", None, &[0.4103], SIX_B),
];

/// Figure 7 shows three of the schedulers of Figure 6(b).
pub(super) const IN_7: &[Series] = &[
    ratios("elasticflow", None, &[0.6667], SIX_B),
    ratios("edf", None, &[0.0872], SIX_B),
    ratios("tiresias", None, &[0.4564], SIX_B),
];

/// Figure 8(a).
pub(super) const IN_8A: &[Series] = &[
    ratios("elasticflow", None, &[0.728], EIGHT_A),
    ratios("edf", None, &[0.118], EIGHT_A),
    ratios("gandiva", None, &[0.09], EIGHT_A),
    ratios("tiresias", None, &[0.287], EIGHT_A),
    ratios("themis", None, &[0.312], EIGHT_A),
    ratios("chronus", None, &[0.262], EIGHT_A),
    ratios("pollux", None, &[0.523], EIGHT_A),
];

/// Figure 8(b): Microsoft's clusters 1 to 10, then Philly.
pub(super) const IN_8B: &[Series] = &[
    ratios(
        "elasticflow",
        BY_TRACE,
        &[0.788, 0.822, 0.455, 0.631, 0.832, 0.607, 0.665, 0.896, 0.938, 0.981, 0.87],
        EIGHT_B,
    ),
    ratios(
        "edf",
        BY_TRACE,
        &[0.182, 0.228, 0.095, 0.007, 0.375, 0.105, 0.046, 0.252, 0.800, 0.769, 0.01],
        EIGHT_B,
    ),
    ratios(
        "gandiva",
        BY_TRACE,
        &[0.246, 0.286, 0.314, 0.228, 0.228, 0.381, 0.351, 0.325, 0.329, 0.354, 0.15],
        EIGHT_B,
    ),
    ratios(
        "tiresias",
        BY_TRACE,
        &[0.478, 0.470, 0.401, 0.120, 0.420, 0.466, 0.346, 0.373, 0.468, 0.473, 0.32],
        EIGHT_B,
    ),
    ratios(
        "themis",
        BY_TRACE,
        &[0.464, 0.431, 0.389, 0.432, 0.430, 0.425, 0.437, 0.423, 0.456, 0.431, 0.33],
        EIGHT_B,
    ),
    ratios(
        "chronus",
        BY_TRACE,
        &[0.474, 0.445, 0.426, 0.450, 0.453, 0.432, 0.460, 0.447, 0.466, 0.454, 0.324],
        EIGHT_B,
    ),
];

/// Figure 9.
pub(super) const IN_9: &[Series] = &[
    ratios("edf", BY_SIZE, &[0.026, 0.118, 0.118], NINE),
    ratios("edf-admission", BY_SIZE, &[0.203, 0.326, 0.658], NINE),
    ratios("elasticflow-open", BY_SIZE, &[0.452, 0.835, 0.939], NINE),
    ratios("elasticflow", BY_SIZE, &[0.926, 0.949, 0.944], NINE),
];

/// Figure 10: the average of the curve over time, the end of the last job, and the deadlines met, all computed from the logs
/// behind it.
pub(super) const IN_10: &[Series] = &[
    in_logs("elasticflow", EFFICIENCY, &[0.1119]),
    in_logs("edf", EFFICIENCY, &[0.0538]),
    in_logs("gandiva", EFFICIENCY, &[0.1011]),
    in_logs("tiresias", EFFICIENCY, &[0.0987]),
    in_logs("themis", EFFICIENCY, &[0.0988]),
    in_logs("elasticflow", MAKESPAN, &[656_366.0]),
    in_logs("edf", MAKESPAN, &[1_358_163.0]),
    in_logs("gandiva", MAKESPAN, &[740_211.0]),
    in_logs("tiresias", MAKESPAN, &[740_161.0]),
    in_logs("themis", MAKESPAN, &[740_400.0]),
    in_logs("elasticflow", DEADLINES, &[1.0]),
    in_logs("edf", DEADLINES, &[0.92]),
    in_logs("gandiva", DEADLINES, &[0.79]),
    in_logs("tiresias", DEADLINES, &[1.0]),
    in_logs("themis", DEADLINES, &[0.99]),
];

/// Figure 11: (a) deadlines met, (b) best-effort jobs.
pub(super) const IN_11: &[Series] = &[
    ratios("elasticflow", BY_SHARE, &[0.74, 0.67, 0.67, 0.69, 0.68, 0.76, 0.82, 0.92, 0.95], ELEVEN),
    ratios("edf", BY_SHARE, &[0.09, 0.1, 0.15, 0.15, 0.23, 0.28, 0.44, 0.79, 0.95], ELEVEN),
    ratios("gandiva", BY_SHARE, &[0.25, 0.24, 0.2, 0.18, 0.19, 0.17, 0.18, 0.18, 0.16], ELEVEN),
    ratios("tiresias", BY_SHARE, &[0.46, 0.46, 0.44, 0.42, 0.43, 0.41, 0.44, 0.5, 0.53], ELEVEN),
    ratios("themis", BY_SHARE, &[0.41, 0.4, 0.37, 0.34, 0.36, 0.34, 0.35, 0.42, 0.37], ELEVEN),
    ratios("chronus", BY_SHARE, &[0.42, 0.42, 0.4, 0.37, 0.4, 0.39, 0.42, 0.5, 0.53], ELEVEN),
    gains("elasticflow", &[1.6, 1.37, 1.18, 1.11, 1.27, 1.24, 1.19, 1.16, 1.31]),
    gains("edf", &[0.05, 0.05, 0.05, 0.05, 0.07, 0.07, 0.08, 0.08, 0.1]),
    gains("tiresias", &[1.44, 1.39, 1.33, 1.31, 1.26, 1.27, 1.28, 1.3, 1.45]),
    gains("themis", &[1.37, 1.36, 1.34, 1.32, 1.26, 1.27, 1.29, 1.29, 1.46]),
    gains("chronus", &[1.5, 1.45, 1.4, 1.38, 1.29, 1.29, 1.28, 1.29, 1.44]),
];

/// Six traces of several figures.
pub(super) const IN_ORDER: &[Series] = &[
    ratios("elasticflow", ON_TESTBED, &[0.6667], SIX_B),
    ratios("edf", ON_TESTBED, &[0.0872], SIX_B),
    ratios("gandiva", ON_TESTBED, &[0.2103], SIX_B),
    ratios("tiresias", ON_TESTBED, &[0.4564], SIX_B),
    ratios("themis", ON_TESTBED, &[0.3897], SIX_B),
    ratios("elasticflow", ON_GENERATED, &[1.0], TEN),
    ratios("edf", ON_GENERATED, &[0.92], TEN),
    ratios("gandiva", ON_GENERATED, &[0.79], TEN),
    ratios("tiresias", ON_GENERATED, &[1.0], TEN),
    ratios("themis", ON_GENERATED, &[0.99], TEN),
    ratios("elasticflow", ON_PAIR, &[0.788, 0.607, 0.981, 0.87], EIGHT_B),
    ratios("edf", ON_PAIR, &[0.182, 0.105, 0.769, 0.01], EIGHT_B),
    ratios("gandiva", ON_PAIR, &[0.246, 0.381, 0.354, 0.15], EIGHT_B),
    ratios("tiresias", ON_PAIR, &[0.478, 0.466, 0.473, 0.32], EIGHT_B),
    ratios("themis", ON_PAIR, &[0.464, 0.425, 0.431, 0.33], EIGHT_B),
];

const fn ratios(policy: &'static str, along: Along, values: &'static [f64], source: &'static str) -> Series {
    Series { policy, of: DEADLINES, along, at: &[], values, source }
}

/// A number that follows from the logs behind Figure 10.
const fn in_logs(policy: &'static str, of: Quantity, values: &'static [f64]) -> Series {
    Series { policy, of, along: None, at: &[], values, source: TEN }
}

/// Figure 11(b): how many times shorter best-effort jobs take than under Gandiva.
const fn gains(policy: &'static str, values: &'static [f64]) -> Series {
    Series { policy, of: BEST_EFFORT_GAIN, along: BY_SHARE, at: &[], values, source: ELEVEN }
}
