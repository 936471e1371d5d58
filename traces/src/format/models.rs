//! Model names of traces, looked up in the profile set.

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};

use rota_core::job::JobSpec;
use rota_core::profile::Profile;

use super::Setting;
use crate::error::InputError;
use crate::profile::{self, ProfileEntry};
use crate::rows::Row;
use crate::speeds::Speeds;

/// The model of jobs of which nothing is known but how long they take: one iteration a second, whatever they get.
/// `plain:NAME` is the same with a name of its own.
pub const PLAIN: &str = "plain";

/// Finds models and remembers the plain ones: jobs of one name share a profile.
pub(crate) struct Models<'s> {
    setting: &'s Setting<'s>,
    plain: BTreeMap<String, Arc<Profile>>,
    speeds: Speeds<'s>,
}

impl<'s> Models<'s> {
    pub(crate) fn new(setting: &'s Setting<'s>) -> Self {
        Models { setting, plain: BTreeMap::new(), speeds: Speeds::new(setting.cluster) }
    }

    /// The model named in a cell.
    pub(crate) fn find(&self, row: &Row<'_>, column: usize) -> Result<&'s ProfileEntry, InputError> {
        let profiles = self.setting.profiles;
        let name = row.text(column);
        profiles.entry(name).ok_or_else(|| {
            let what = format!("a model of {}: {}{}", profiles.name, profiles.names(), elsewhere(name));
            row.expected(column, what)
        })
    }

    /// The model named in a cell, of the set or plain.
    pub(crate) fn find_or_plain(
        &mut self,
        row: &Row<'_>,
        column: usize,
        name: &str,
    ) -> Result<Arc<Profile>, InputError> {
        if let Some(profile) = self.setting.profiles.get(name) {
            return Ok(profile.clone());
        }
        match name.strip_prefix(PLAIN).map(|rest| (rest, rest.strip_prefix(':'))) {
            Some(("", _)) => Ok(self.plain("")),
            Some((_, Some(own_name))) => Ok(self.plain(own_name)),
            _ => {
                let profiles = self.setting.profiles;
                let what = format!(
                    "a model of {}: {}{}; or plain:{name}, a model without a profile, which takes its duration whatever it gets",
                    profiles.name,
                    profiles.names(),
                    elsewhere(name)
                );
                Err(row.expected(column, what))
            }
        }
    }

    /// A plain model, with a name of its own or none.
    pub(crate) fn plain(&mut self, own_name: &str) -> Arc<Profile> {
        if let Some(known) = self.plain.get(own_name) {
            return known.clone();
        }
        let name = if own_name.is_empty() { PLAIN.to_owned() } else { format!("{PLAIN}:{own_name}") };
        let profile = Arc::new(Profile::plain(name, 1.0));
        self.plain.insert(own_name.to_owned(), profile.clone());
        profile
    }

    /// Refuses a job that asks for more GPUs than there are, or than its model was measured with.
    pub(crate) fn check_gpus(
        &mut self,
        row: &Row<'_>,
        column: usize,
        spec: &JobSpec,
    ) -> Result<(), InputError> {
        let reach = self.speeds.reach(spec.gpu_type);
        let asked = spec.gpus.asked;
        if asked > reach.n_gpus {
            let cluster = &self.setting.cluster.name;
            let what = format!("at most {} GPUs: cluster {cluster} has no more for it", reach.n_gpus);
            return Err(row.expected(column, what));
        }
        let curve = spec.profile.scale_curve(reach.gpu_type, spec.batch);
        match curve.and_then(|curve| curve.points.last()).filter(|most| asked > most.0) {
            None => Ok(()),
            Some((most, _)) => {
                let what = format!(
                    "at most {most} GPUs: {} with batch {} was not measured with more on {}",
                    spec.profile.name, spec.batch, reach.gpu_type
                );
                Err(row.expected(column, what))
            }
        }
    }

    /// Refuses a job whose model was measured, but not with its batch on the cluster's GPUs: its speed would be made up.
    pub(crate) fn check_measured(
        &mut self,
        row: &Row<'_>,
        column: usize,
        spec: &JobSpec,
    ) -> Result<(), InputError> {
        if self.speeds.is_measured(spec) {
            return Ok(());
        }
        let gpu_type = self.speeds.reach(spec.gpu_type).gpu_type;
        let here = spec.profile.scale.iter().filter(|c| c.gpu_type == gpu_type || c.gpu_type.is_empty());
        let batches: Vec<_> = here.map(|curve| curve.batch.to_string()).collect();
        let batches = if batches.is_empty() { "none".to_owned() } else { batches.join(", ") };
        let what =
            format!("a batch size of {} that was measured on {gpu_type}: {batches}", spec.profile.name);
        Err(row.expected(column, what))
    }
}

/// The built-in sets that have a model, by its name.
static BUILT_IN_MODELS: LazyLock<BTreeMap<String, Vec<&str>>> = LazyLock::new(|| {
    let mut sets: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    for (name, _) in profile::BUILT_IN {
        let set = profile::load(name).ok();
        for entry in set.iter().flat_map(profile::ProfileSet::entries) {
            sets.entry(entry.profile.name.clone()).or_default().push(name);
        }
    }
    sets
});

/// Where else a model is known, for messages.
fn elsewhere(model: &str) -> String {
    match BUILT_IN_MODELS.get(model) {
        None => String::new(),
        Some(sets) => format!(" (--profiles {} has {model})", sets.join(" or ")),
    }
}
