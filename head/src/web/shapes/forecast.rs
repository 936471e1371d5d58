//! Forecasts.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::Expected;

/// What is asked of a forecast; what is left out is as it is now.
#[derive(Clone, Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct ForecastQuestion {
    /// Another policy.
    pub(crate) policy: Option<String>,
    /// Its parameters.
    pub(crate) set: Vec<(String, String)>,
    /// Scripts that come with the request.
    pub(crate) texts: Vec<(String, String)>,
    /// How many runs.
    #[schema(minimum = 1, maximum = 64)]
    pub(crate) seeds: Option<u32>,
    /// How far estimates are off: the standard deviation of the logarithm of real work over estimated.
    #[schema(minimum = 0, maximum = 2)]
    pub(crate) noise: Option<f64>,
    /// How far ahead.
    pub(crate) horizon_s: Option<f64>,
}

/// The present state simulated ahead.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub(crate) struct ForecastShape {
    /// The policy that decides in it.
    pub(crate) policy: String,
    /// From when on.
    pub(crate) made_at_s: f64,
    /// Runs that it is made of.
    pub(crate) seeds: u32,
    /// How far estimates were taken to be off.
    pub(crate) noise: f64,
    /// Until then.
    pub(crate) horizon_s: f64,
    /// How long it took.
    pub(crate) took_ms: u64,
    /// The part of cases in which the real time is meant to lie from low to high.
    pub(crate) coverage: f64,
    /// Jobs that wait, by number; those that the person may see.
    pub(crate) jobs: Vec<ForecastJob>,
    /// GPUs in use: time, median, low, high.
    pub(crate) gpus_busy: Vec<[f64; 4]>,
    /// Jobs that wait: time, median, low, high.
    pub(crate) n_waiting: Vec<[f64; 4]>,
}

/// What a forecast says of a job.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
pub(crate) struct ForecastJob {
    /// Its number.
    pub(crate) job: u32,
    /// When it starts; none if it seldom does within the horizon.
    pub(crate) start: Option<Expected>,
    /// When it ends; none if it seldom does within the horizon.
    pub(crate) end: Option<Expected>,
    /// In how many runs it started within the horizon.
    pub(crate) n_started: u32,
}
