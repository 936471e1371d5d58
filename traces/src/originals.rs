//! Traces as the drivers of the original programs need them: with the run times that a trace states in addition to the
//! work. These are not always the work at the profile's speed, and ElasticFlow's baselines go by them.
//!
//! Rota's own policies never see them; everything else reads traces with [`crate::format::read`].

use rota_core::time::{Span, Time};

use crate::error::InputError;
use crate::format::{self, Format, Imported, Setting, elasticflow, itp};
use crate::generate::Origin;
use crate::source::Source;

/// A trace with the run times that it states.
#[derive(Clone, Debug, Default)]
pub struct ForOriginals {
    /// What the ordinary reader returns.
    pub imported: Imported,
    /// Run times by job; none when the trace does not state them for every job, or when durations are drawn.
    pub durations: Option<Vec<Span>>,
}

/// Reads a trace as [`format::read`] does, and keeps the run times that it states.
pub fn read(
    source: &Source,
    format: Option<Format>,
    setting: &Setting<'_>,
) -> Result<ForOriginals, InputError> {
    let format = format::choose(source, format, setting)?;
    let ForOriginals { imported, durations } = match format {
        Format::Elasticflow => elasticflow::read_for_originals(source, setting)?,
        Format::Itp => itp::read_for_originals(source, setting)?,
        other => ForOriginals { imported: other.read(source, setting)?, durations: None },
    };
    let imported = imported.redrawn(setting)?;
    let n_jobs = imported.workload.jobs.len();
    let stated = durations.filter(|_| setting.options.durations == Origin::Trace);
    // Jobs past the end of the trace are those of its beginning again.
    let durations = stated.map(|times| times.iter().copied().cycle().take(n_jobs).collect());
    Ok(ForOriginals { imported, durations })
}

/// What was read with each arrival, in the order of job ids: sorted as a `JobList` sorts its jobs.
pub(crate) fn in_job_order<T>(mut by_arrival: Vec<(Time, T)>) -> impl Iterator<Item = T> {
    by_arrival.sort_by_key(|(arrival, _)| *arrival);
    by_arrival.into_iter().map(|(_, value)| value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::tests::built_in;
    use crate::generate::WorkloadOptions;

    fn durations(rows: &str, options: WorkloadOptions) -> Option<Vec<i64>> {
        let (cluster, profiles) = built_in("a100", "elasticflow-a100");
        let text = format!("job_id,submit_time,iteration,model_name,batch_size,num_gpu,duration\n{rows}");
        let setting = Setting { options, ..Setting::new(&cluster, &profiles) };
        let read = read(&Source::new("e.csv", text), None, &setting).expect("sound");
        read.durations.map(|times| times.into_iter().map(|time| time.0 / 1_000_000).collect())
    }

    const TWO: &str = "late,9,1,bert,64,1,90\nfirst,5,1,bert,64,1,50\n";

    #[test]
    fn run_times_follow_their_jobs_into_the_order_of_arrival() {
        assert_eq!(durations(TWO, WorkloadOptions::default()), Some(vec![50, 90]));
        let of_some = "late,9,1,bert,64,1,90\nfirst,5,1,bert,64,1,\n";
        assert_eq!(durations(of_some, WorkloadOptions::default()), None, "not stated for every job");
    }

    #[test]
    fn run_times_are_repeated_with_their_jobs_and_dropped_when_durations_are_drawn() {
        let repeated = WorkloadOptions { jobs: Some(3), is_static: true, ..WorkloadOptions::default() };
        assert_eq!(durations(TWO, repeated), Some(vec![50, 90, 50]));
        let drawn = WorkloadOptions { durations: Origin::Drawn, ..WorkloadOptions::default() };
        assert_eq!(durations(TWO, drawn), None);
    }
}
