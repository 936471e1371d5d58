//! Sets of model profiles: what a trace's model names mean, in the order in which workloads draw them.
//!
//! The speed model itself is `rota_core::profile`; here is what only readers, generators and the reproduction of
//! originals need in addition.

mod file;
pub mod import;
mod measured;
mod write;

use std::collections::BTreeMap;
use std::sync::Arc;

use rota_core::profile::Profile;

use crate::error::InputError;
use crate::source::Source;

pub use file::read;
pub use measured::{Measured, MeasuredChange, MeasuredPoint};
pub use write::write;

/// The built-in profile sets: name and file, in the order they are listed to people.
pub const BUILT_IN: [(&str, &str); 7] = [
    ("synergy", include_str!("../../../configs/profiles/synergy.toml")),
    ("synergy-cpu4", include_str!("../../../configs/profiles/synergy-cpu4.toml")),
    ("synergy-cpu5", include_str!("../../../configs/profiles/synergy-cpu5.toml")),
    ("synergy-cpu6", include_str!("../../../configs/profiles/synergy-cpu6.toml")),
    ("elasticflow-a100", include_str!("../../../configs/profiles/elasticflow-a100.toml")),
    ("elasticflow-t4", include_str!("../../../configs/profiles/elasticflow-t4.toml")),
    ("pollux-t4", include_str!("../../../configs/profiles/pollux-t4.toml")),
];

/// Models by name, in the order of their file.
#[derive(Clone, Debug, PartialEq)]
pub struct ProfileSet {
    /// The name in the file, or the file's own without extension.
    pub name: String,
    entries: Vec<ProfileEntry>,
    by_name: BTreeMap<String, usize>,
}

/// One model of a set.
#[derive(Clone, Debug, PartialEq)]
pub struct ProfileEntry {
    /// Name, speed and costs, shared by all jobs of the model.
    pub profile: Arc<Profile>,
    /// Seconds of one iteration at the proportional share, as the file says: its inverse is the base rate, and
    /// dividing twice would lose the last digit that an original's rounding depends on.
    pub iteration_s: Option<f64>,
    /// Speed at the demand relative to the proportional share, as the source states it.
    pub ideal_speedup: Option<f64>,
    /// GPU counts an elastic job may run with, by batch size; empty when jobs of this model are not elastic.
    pub levels: BTreeMap<u32, Vec<u32>>,
    /// After how many iterations it is trained, by batch size, where that is known.
    pub trained: BTreeMap<u32, u64>,
    /// Whether workloads that draw models draw this one.
    pub is_drawn: bool,
    /// How it was measured, where that is known.
    pub measured: Option<Measured>,
}

/// A built-in profile set by name, or a profile file.
pub fn load(name_or_path: &str) -> Result<ProfileSet, InputError> {
    read(&source(name_or_path)?)
}

/// The text of a built-in profile set by name, or of a profile file.
pub fn source(name_or_path: &str) -> Result<Source, InputError> {
    Source::find(name_or_path, &BUILT_IN, "profile", "profiles", "sets")
}

impl ProfileEntry {
    /// A model of which only its speed is known.
    pub fn new(profile: Profile) -> Self {
        ProfileEntry {
            iteration_s: Some(1.0 / profile.base_rate),
            profile: Arc::new(profile),
            ideal_speedup: None,
            levels: BTreeMap::new(),
            trained: BTreeMap::new(),
            is_drawn: true,
            measured: None,
        }
    }
}

impl ProfileSet {
    /// A set from its models; of two with one name the first counts.
    pub fn new(name: impl Into<String>, entries: Vec<ProfileEntry>) -> Self {
        let mut by_name = BTreeMap::new();
        for (index, entry) in entries.iter().enumerate() {
            by_name.entry(entry.profile.name.clone()).or_insert(index);
        }
        ProfileSet { name: name.into(), entries, by_name }
    }

    /// All models, in the order of the file.
    pub fn entries(&self) -> &[ProfileEntry] {
        &self.entries
    }

    /// A model by name.
    pub fn entry(&self, model: &str) -> Option<&ProfileEntry> {
        self.by_name.get(model).and_then(|index| self.entries.get(*index))
    }

    /// A model's speed by name.
    pub fn get(&self, model: &str) -> Option<&Arc<Profile>> {
        self.entry(model).map(|e| &e.profile)
    }

    /// Speed at the demand relative to the proportional share, as the source states it.
    pub fn ideal_speedup(&self, model: &str) -> Option<f64> {
        self.entry(model)?.ideal_speedup
    }

    /// Seconds of one iteration at the proportional share, as the source states it.
    pub fn iteration_s(&self, model: &str) -> Option<f64> {
        self.entry(model)?.iteration_s
    }

    /// GPU counts an elastic job of this model and batch may run with; none when it is not elastic.
    pub fn levels(&self, model: &str, batch: u32) -> &[u32] {
        self.entry(model).and_then(|e| e.levels.get(&batch)).map_or(&[], Vec::as_slice)
    }

    /// The type of GPU all its curves were measured on, if it is one.
    pub fn gpu_type(&self) -> Option<&str> {
        let mut types =
            self.entries.iter().flat_map(|e| &e.profile.scale).map(|curve| curve.gpu_type.as_str());
        let first = types.next().filter(|name| !name.is_empty())?;
        types.all(|other| other == first).then_some(first)
    }

    /// The models that workloads draw.
    pub fn drawn(&self) -> impl Iterator<Item = &ProfileEntry> {
        self.entries.iter().filter(|e| e.is_drawn)
    }

    /// The models that workloads draw, with each batch size they have a curve for (0: the profile's own).
    pub fn templates(&self) -> Vec<(&ProfileEntry, u32)> {
        let of = |entry| {
            let e: &ProfileEntry = entry;
            let batches: Vec<u32> = e.profile.scale.iter().map(|c| c.batch).collect();
            if batches.is_empty() {
                vec![(entry, 0)]
            } else {
                batches.into_iter().map(|b| (entry, b)).collect()
            }
        };
        self.drawn().flat_map(of).collect()
    }

    /// The same with curves that hold on any GPU type, for clusters whose type was not measured.
    pub fn on_any_gpu_type(mut self) -> Self {
        for entry in &mut self.entries {
            let profile = Arc::make_mut(&mut entry.profile);
            profile.scale.iter_mut().for_each(|curve| curve.gpu_type.clear());
        }
        self
    }

    /// Both sets; a model of both has the curves of both, and otherwise what `self` says.
    pub fn and(mut self, other: &ProfileSet) -> Self {
        for theirs in &other.entries {
            match self.by_name.get(&theirs.profile.name).and_then(|index| self.entries.get_mut(*index)) {
                Some(ours) => {
                    Arc::make_mut(&mut ours.profile).scale.extend(theirs.profile.scale.iter().cloned());
                    for (batch, iterations) in &theirs.trained {
                        ours.trained.entry(*batch).or_insert(*iterations);
                    }
                    for (batch, levels) in &theirs.levels {
                        ours.levels.entry(*batch).or_insert_with(|| levels.clone());
                    }
                }
                None => {
                    self.by_name.insert(theirs.profile.name.clone(), self.entries.len());
                    self.entries.push(theirs.clone());
                }
            }
        }
        self.name = format!("{}+{}", self.name, other.name);
        self
    }

    /// The names of all models, for messages.
    pub(crate) fn names(&self) -> String {
        self.entries.iter().map(|e| e.profile.name.as_str()).collect::<Vec<_>>().join(", ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn synergys_models_are_drawn_in_the_originals_order() {
        let set = load("synergy").expect("built in");
        let drawn: Vec<_> = set.drawn().map(|e| e.profile.name.as_str()).collect();
        let zoo = [
            "alexnet",
            "res18",
            "res50",
            "mobilenet",
            "shufflenet",
            "gnmt",
            "transformer",
            "lstm",
            "m5",
            "deepspeech",
        ];
        assert_eq!(drawn, zoo);
        assert_eq!((set.iteration_s("lstm"), set.ideal_speedup("m5")), (Some(0.011), Some(2.5)));
        assert!(set.get("bert").is_some() && set.get("vae").is_some() && set.get("resnet").is_none());
    }

    /// Where the source's speed-up and its own grid differ by more than rounding, here is where and by how much.
    #[test]
    fn the_grid_at_the_demand_is_the_stated_speedup_but_for_three_models() {
        let mut differing = Vec::new();
        for set in
            ["synergy", "synergy-cpu4", "synergy-cpu5", "synergy-cpu6"].map(|name| load(name).expect(name))
        {
            for entry in set.entries() {
                let demand = entry.profile.demand_per_gpu;
                let grid = entry.profile.host.as_ref().expect("a grid").at(demand.cpus(), demand.mem_gb());
                let stated = entry.ideal_speedup.expect("stated");
                let tolerance = if set.name == "synergy" { 1e-12 } else { 0.01 };
                if (grid - stated).abs() > tolerance * stated {
                    differing.push(format!("{} {} {grid:.2} {stated:.2}", set.name, entry.profile.name));
                }
            }
        }
        assert_eq!(
            differing,
            [
                "synergy-cpu6 alexnet 1.68 2.18",
                "synergy-cpu6 shufflenet 1.65 2.59",
                "synergy-cpu6 m5 1.67 1.00"
            ]
        );
    }

    #[test]
    fn elasticflows_jobs_have_the_levels_of_the_original() {
        let a100 = load("elasticflow-a100").expect("built in");
        assert_eq!(a100.levels("bert", 64), [1, 2, 4, 8]);
        assert_eq!(a100.levels("resnet50", 64), [1, 2, 4, 8, 16, 32]);
        assert_eq!(a100.levels("deepspeech2", 32), [1, 2, 4, 8, 16, 32]);
        assert_eq!(a100.levels("resnet50_cifar10", 256), [1, 2, 4, 8], "more ran out of memory");
        assert_eq!(a100.templates().len(), 14);
        let t4 = load("elasticflow-t4").expect("built in");
        assert_eq!(t4.levels("yolov3", 64), [1, 2, 4]);
        assert_eq!(t4.levels("ncf", 32_768), [1]);
        assert_eq!(t4.get("ncf").and_then(|p| p.scale_curve("T4", 32_768)).map(|c| c.points.len()), Some(7));
    }

    #[test]
    fn sets_join_their_curves() {
        let both =
            load("elasticflow-a100").expect("built in").and(&load("elasticflow-t4").expect("built in"));
        let bert = both.get("bert").expect("in both");
        assert!(bert.scale_curve("A100", 64).is_some() && bert.scale_curve("T4", 384).is_some());
        assert!(both.get("yolov3").is_some());
        let any = load("elasticflow-t4").expect("built in").on_any_gpu_type();
        assert!(any.get("bert").is_some_and(|p| p.scale_curve("V100", 384).is_some()));
    }
}
