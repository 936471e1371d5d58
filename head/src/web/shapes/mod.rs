//! What the API shows, as JSON: one shape for each thing, from which the OpenAPI document is made. Times that end in `_s` are seconds
//! on the head's clock, those that end in `_unix_s` seconds since 1970.

mod cluster;
mod forecast;
mod jobs;
mod nodes;
mod policy;
mod records;

pub(crate) use cluster::*;
pub(crate) use forecast::*;
pub(crate) use jobs::*;
pub(crate) use nodes::*;
pub(crate) use policy::*;
pub(crate) use records::*;

use rota_core::time::Time;
use serde::Serialize;
use utoipa::ToSchema;

/// A page of a list.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub(crate) struct Page<T> {
    /// What is on it.
    pub(crate) items: Vec<T>,
    /// How to ask for the next page: the parameter `cursor`; none on the last one.
    pub(crate) next: Option<String>,
    /// How many there are on all pages, where that is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) total: Option<u64>,
}

/// Why a request was not carried out.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub(crate) struct ErrorBody {
    /// What is wrong.
    pub(crate) error: ErrorText,
}

/// What is wrong with a request.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub(crate) struct ErrorText {
    /// A word for programs, such as `not-found`.
    pub(crate) code: &'static str,
    /// A sentence for people.
    pub(crate) message: String,
}

/// An answer in words.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub(crate) struct TextBody {
    /// The words.
    pub(crate) text: String,
}

/// Seconds on the head's clock.
pub(crate) fn seconds(time: Time) -> f64 {
    time.as_secs_f64()
}
