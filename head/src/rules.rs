//! What decisions depend on besides what happens: round length, guards and profiles. Written down at every start of the
//! head, so that a journal can be read without its head.

use std::collections::BTreeMap;
use std::sync::Arc;

use rota_core::ids::TenantId;
use rota_core::snapshot::Guards;
use rota_core::time::{Span, Time};
use rota_traces::error::InputError;
use rota_traces::profile::{self, ProfileSet};
use rota_traces::source::Source;
use serde::{Deserialize, Serialize};

use crate::record::Record;

/// Rules that hold from one start of the head to the next.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Rules {
    /// Time between rounds.
    pub round: Span,
    /// Whether rounds are held only when they are due.
    pub is_on_grid: bool,
    /// Seconds of jobs' time in a real second.
    pub time_scale: f64,
    /// Whether time in which nothing happens may be skipped.
    #[serde(default)]
    pub may_jump: bool,
    /// A job that has run for less is not preempted.
    pub min_run: Span,
    /// The most GPUs a tenant may hold, by name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub quotas: Vec<(String, u32)>,
    /// The profile set that jobs name models of.
    pub profiles: ProfileText,
}

/// A profile set as it was read, because the file may change later.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ProfileText {
    /// The name of a built-in set, or a path.
    pub name: String,
    /// The file's content, in TOML.
    pub text: String,
}

impl ProfileText {
    /// A built-in set by name, or a file.
    pub fn load(name_or_path: &str) -> Result<Self, InputError> {
        let Source { name, text, .. } = profile::source(name_or_path)?;
        Ok(ProfileText { name, text })
    }
}

impl Rules {
    /// Nothing but profiles and rounds a minute apart.
    pub fn plain(profiles: ProfileText) -> Self {
        let (round, min_run) = (Span::from_secs(60), Span::ZERO);
        Rules {
            round,
            is_on_grid: false,
            time_scale: 1.0,
            may_jump: false,
            min_run,
            quotas: Vec::new(),
            profiles,
        }
    }

    /// The models that jobs may name.
    pub fn profile_set(&self) -> Result<Arc<ProfileSet>, InputError> {
        let ProfileText { name, text } = &self.profiles;
        profile::read(&Source::new(name.as_str(), text.as_str())).map(Arc::new)
    }

    /// The rules of the last start in a journal, if its head wrote them down.
    pub fn last_in(journal: &[(Time, Record)]) -> Option<&Rules> {
        journal.iter().rev().find_map(|(_, record)| match record {
            Record::HeadStarted { rules, .. } => rules.as_deref(),
            Record::Image { image } => Some(image.rules()),
            _ => None,
        })
    }

    /// Guards of a scheduler that numbers tenants with a quota first, in this order.
    pub(crate) fn guards(&self) -> Guards {
        let quota = |(index, (_, gpus)): (usize, &(String, u32))| (TenantId::from(index), *gpus);
        let quota_gpus: BTreeMap<_, _> = self.quotas.iter().enumerate().map(quota).collect();
        Guards { min_run: self.min_run, quota_gpus }
    }
}
