//! The rules of a check, each with its name and how bad it is to break it.

/// How bad a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// Worth knowing.
    Note,
    /// Results will not mean what they seem to.
    Warning,
    /// A row cannot be used, or a job can never end.
    Error,
}

impl Severity {
    /// As it is printed.
    pub fn name(self) -> &'static str {
        match self {
            Severity::Note => "note",
            Severity::Warning => "warning",
            Severity::Error => "error",
        }
    }
}

macro_rules! rules {
    ($($variant:ident, $name:literal, $severity:ident, $about:literal;)*) => {
        /// What a check looks for.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum Rule { $(#[doc = $about] $variant),* }

        impl Rule {
            /// Every rule.
            pub const ALL: &'static [Rule] = &[$(Rule::$variant),*];

            /// Its name in the output.
            pub fn name(self) -> &'static str {
                match self { $(Rule::$variant => $name),* }
            }

            /// What it finds.
            pub fn about(self) -> &'static str {
                match self { $(Rule::$variant => $about),* }
            }

            /// Whether it is about all jobs together, and not about a cell.
            pub fn is_of_whole(self) -> bool {
                self >= Rule::LateBegin
            }

            /// How bad it is to break it.
            pub fn severity(self) -> Severity {
                match self { $(Rule::$variant => Severity::$severity),* }
            }
        }
    };
}

rules! {
    Unreadable, "unreadable-row", Error, "A row that makes no sense: a cell that is no number, a name that is there twice, a time before the trace begins.";
    TooManyGpus, "too-many-gpus", Error, "A job that asks for more GPUs than the cluster has of its type.";
    TooMuchGpuMemory, "too-much-gpu-memory", Error, "A job whose workers need more memory than the largest GPU has.";
    NoWork, "no-work", Error, "A job that has nothing to do.";
    SameName, "same-name", Error, "A job with the name of another one.";
    DeadlineBeforeArrival, "deadline-before-arrival", Warning, "A deadline that is over when the job arrives.";
    DeadlineTooTight, "deadline-too-tight", Warning, "A deadline that the job cannot meet alone on the cluster.";
    NotMeasured, "not-measured", Warning, "A model that was not measured with this batch on the cluster's GPUs: its speed is a guess.";
    LateBegin, "late-begin", Warning, "A trace whose first job arrives years after time 0: the times seem to be dates.";
    UnitOfDurations, "unit-of-durations", Warning, "Durations that seem to be in another unit than seconds.";
    Overload, "overload", Warning, "More GPU time asked for than the cluster has while jobs arrive: the queue grows to the end.";
    Backlog, "demand-over-capacity", Note, "A time in which jobs ask for more GPUs at once than the cluster has.";
    Gap, "gap", Note, "A time in which no job arrives, far longer than usual.";
    SameRow, "same-row", Note, "Jobs that equal another one in all but the name.";
}
