//! ElasticFlow's Figure 12 as printed: (a) the time to profile a model, (b) the cost of scaling and migrating it.
//!
//! Source of the numbers: the plot scripts of gudiandian/ElasticFlow-artifact (Apache-2.0), A100 GPUs. Its list for
//! deepspeech2 repeats bert's, which looks like a copy: it is kept, and marked where it is shown.

/// A change: GPUs before, after, and whether the job went to another node.
pub type ChangeKind = (u32, u32, bool);

/// The changes of Figure 12(b).
pub const CHANGES: [ChangeKind; 5] =
    [(1, 2, false), (2, 1, false), (8, 16, false), (16, 8, false), (8, 8, true)];

/// What was printed of one model.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Published {
    /// Name of the model in the paper.
    pub model: &'static str,
    /// Seconds to profile it.
    pub profiling_s: f64,
    /// Seconds for each of [`CHANGES`].
    pub changes_s: [f64; 5],
}

/// All models of the figure.
pub const FIGURE_12: [Published; 6] = [
    Published { model: "resnet50", profiling_s: 549.8, changes_s: [1.884, 1.659, 1.666, 1.787, 0.887] },
    Published { model: "vgg16", profiling_s: 550.0, changes_s: [1.82, 1.629, 2.407, 2.354, 3.209] },
    Published { model: "inceptionv3", profiling_s: 366.8, changes_s: [1.819, 1.099, 1.738, 1.733, 0.69] },
    Published { model: "gpt2", profiling_s: 336.1, changes_s: [2.344, 3.101, 3.203, 3.198, 2.119] },
    Published { model: "bert", profiling_s: 305.5, changes_s: [3.904, 2.611, 4.239, 4.222, 3.191] },
    Published { model: "deepspeech2", profiling_s: 337.7, changes_s: [3.904, 2.611, 4.239, 4.222, 3.191] },
];

/// What was printed of a model, whatever its name's ending.
pub fn of(model: &str) -> Option<&'static Published> {
    let same = |published: &&Published| {
        published.model == model || published.model.strip_suffix("v3") == model.strip_suffix('3')
    };
    FIGURE_12.iter().find(|published| published.model == model).or_else(|| {
        FIGURE_12
            .iter()
            .filter(|published| published.model.ends_with("v3") && model.ends_with('3'))
            .find(same)
    })
}

/// The printed seconds of a change.
pub fn seconds(published: &Published, change: ChangeKind) -> Option<f64> {
    let at = CHANGES.iter().position(|known| *known == change)?;
    published.changes_s.get(at).copied()
}
