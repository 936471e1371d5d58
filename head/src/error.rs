//! Why a head cannot run.

use rota_traces::error::InputError;
use rota_transport::identity::IdentityError;
use rota_transport::quic::ListenError;
use rota_transport::value::ValueError;

use crate::cluster_state::ImageError;
use crate::decider::PolicyUseError;
use crate::roles::RolesError;
use crate::store::StoreError;
use crate::web::WebError;

/// A head that could not start, or had to end.
#[derive(Debug, thiserror::Error)]
pub enum HeadError {
    /// Its state directory cannot be used.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The image of its state cannot be used.
    #[error("the image of the state: {0}")]
    Image(#[from] ImageError),
    /// Its key or certificate cannot be used.
    #[error(transparent)]
    Identity(#[from] IdentityError),
    /// The file of roles cannot be used.
    #[error("--roles {0}")]
    Roles(#[from] RolesError),
    /// It cannot listen.
    #[error(transparent)]
    Listen(#[from] ListenError),
    /// The page cannot be served.
    #[error(transparent)]
    Web(#[from] WebError),
    /// Profiles that cannot be read.
    #[error(transparent)]
    Input(#[from] InputError),
    /// A time scale out of range.
    #[error("--time-scale: {0}")]
    TimeScale(ValueError),
    /// The policy that it should start with.
    #[error("policy {policy}: {error}")]
    Policy {
        /// Its name, as it was given.
        policy: String,
        /// Why it cannot be used.
        error: Box<PolicyUseError>,
    },
    /// The operating system refused a thread or a signal handler.
    #[error("the system refuses {what}: {error}")]
    System {
        /// The thing that the head needs, such as `a thread`.
        what: &'static str,
        /// The operating system's error.
        error: std::io::Error,
    },
    /// The listener is bound, and has no address.
    #[error("the listener has no address")]
    NoAddress,
}

/// A journal that cannot be replayed.
#[derive(Debug, thiserror::Error)]
pub enum ReplayError {
    /// The image that it begins with cannot be used, or profiles in its rules cannot be read.
    #[error(transparent)]
    Image(#[from] ImageError),
    /// A policy that cannot be used any more, or never could.
    #[error("policy {policy}: {error}")]
    Policy {
        /// Its name, parts joined by `+`.
        policy: String,
        /// Why it cannot be used.
        error: Box<PolicyUseError>,
    },
}
