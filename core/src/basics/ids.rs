//! Identifiers: small dense integers with a type each, so that a job is never mistaken for a node.
//!
//! Names as users write them (trace ids, host names) live in the specs; decisions only ever see these.

macro_rules! id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(
            Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash,
            serde::Serialize, serde::Deserialize,
        )]
        #[serde(transparent)]
        pub struct $name(pub u32);

        impl $name {
            /// The id as a position in a dense table.
            pub const fn index(self) -> usize {
                self.0 as usize
            }
        }

        impl From<usize> for $name {
            /// Panics above four billion: no table of ours grows that far.
            fn from(index: usize) -> Self {
                Self(u32::try_from(index).expect("dense ids fit 32 bits"))
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                self.0.fmt(f)
            }
        }
    };
}

id!(
    /// A job, numbered in the order of submission.
    JobId
);
id!(
    /// A node (server), numbered in the order of the cluster file.
    NodeId
);
id!(
    /// A tenant: user, group or virtual cluster.
    TenantId
);
id!(
    /// A data set that jobs read.
    DatasetId
);
id!(
    /// A kind of GPU; nodes of one type are interchangeable to a profile.
    GpuTypeId
);
id!(
    /// How many times a job was launched. A report that carries an older one is stale and dropped.
    Incarnation
);
