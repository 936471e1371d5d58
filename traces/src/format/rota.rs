//! Rota's own trace: a table whose headings say what is there.
//!
//! Needed are `job_id`, `arrival_s`, `gpus` and one of `iterations` and `duration_s`; all else has a default. A
//! duration counts seconds at the proportional share. A column whose heading begins with `#` is a remark. `write_rota` is the
//! other half.

use std::sync::Arc;

use rota_core::ids::{DatasetId, NodeId};
use rota_core::job::{Costs, Deadline, GpuRequest, JobSpec};
use rota_core::profile::Profile;
use rota_core::time::Span;
use rota_core::workload::{Dataset, RecordedEnd, Truth};

use super::{Head, Imported, Models, Setting};
use crate::error::InputError;
use crate::jobs::JobList;
use crate::rows::{MOST_RUN_S, Row, Rows, UniqueNames, parse_time};
use crate::source::Source;
use crate::speeds::Speeds;
use crate::units::Bytes;

macro_rules! columns {
    (needed: $($needed:ident),*; optional: $($optional:ident),*) => {
        /// Every heading, in the order they are written.
        pub const COLUMNS: &[&str] = &[$(stringify!($needed),)* $(stringify!($optional)),*];

        struct Columns { $($needed: usize,)* $($optional: Option<usize>),* }

        impl Columns {
            fn of(rows: &Rows<'_>) -> Result<Self, InputError> {
                Ok(Columns {
                    $($needed: rows.need(&[stringify!($needed)])?,)*
                    $($optional: rows.find(&[stringify!($optional)])),*
                })
            }
        }
    };
}

columns!(
    needed: job_id, arrival_s, gpus;
    optional: iterations, duration_s, estimate, pace, model, batch, tenant, priority, gpu_levels, gpu_type, deadline_s,
        dataset, restart_s, checkpoint_s, checkpoint_every_s, ended, attempts
);

/// The two headings that no other table has together.
pub(crate) fn recognises(head: &Head<'_>) -> bool {
    head.has(&["job_id", "arrival_s"])
}

/// Reads Rota's trace.
pub fn read(source: &Source, setting: &Setting<'_>) -> Result<Imported, InputError> {
    let rows = Rows::with_header(source)?;
    if let Some((column, heading)) = rows.unknown_column(COLUMNS) {
        let near = COLUMNS.iter().find(|own| strsim::damerau_levenshtein(own, heading) <= 2);
        let near = near.or(COLUMNS.iter().find(|own| own.strip_suffix("_s") == Some(heading)));
        let hint = near.map(|own| format!(" (did you mean {own}?)")).unwrap_or_default();
        let what = format!("one of the columns {}{hint}", COLUMNS.join(", "));
        return Err(InputError::expected(&source.name, what).at_line(1).at_column(column).got(heading));
    }
    let columns = Columns::of(&rows)?;
    rows.need(&["iterations", "duration_s"])?;
    let mut reader = Reader {
        setting,
        models: Models::new(setting),
        speeds: Speeds::new(setting.cluster),
        names: UniqueNames::default(),
        list: JobList::default(),
    };
    let dropped = rows.each(setting.bad_rows, |row| reader.take(row, &columns))?;
    Ok(Imported { dropped, ..Imported::of(reader.list) })
}

struct Reader<'s> {
    setting: &'s Setting<'s>,
    models: Models<'s>,
    speeds: Speeds<'s>,
    names: UniqueNames,
    list: JobList,
}

impl Reader<'_> {
    fn take(&mut self, row: &Row<'_>, columns: &Columns) -> Result<(), InputError> {
        let Columns { job_id, arrival_s, gpus, .. } = *columns;
        let profile = self.profile(row, columns)?;
        let mut spec = JobList::plain(
            self.names.take(row, job_id)?,
            profile,
            row.gpus(gpus)?,
            0.0,
            row.arrival(arrival_s)?,
        );
        spec.batch = match row.maybe(columns.batch) {
            Some((column, _)) => row.whole(column)?,
            None => 0,
        };
        spec.gpus = GpuRequest { asked: spec.gpus.asked, levels: levels(row, columns.gpu_levels)? };
        spec.gpu_type = match row.maybe(columns.gpu_type) {
            Some((column, name)) => Some(self.setting.cluster.gpu_type_id(name).ok_or_else(|| {
                row.expected(
                    column,
                    format!("a GPU type of the cluster: {}", self.setting.cluster.gpu_types().join(", ")),
                )
            })?),
            None => None,
        };
        spec.priority = match row.maybe(columns.priority) {
            Some((column, _)) => row.whole(column)?,
            None => 0,
        };
        spec.deadline = deadline(row, columns.deadline_s)?;
        spec.costs = costs(row, columns, &spec)?;
        spec.dataset = self.dataset(row, columns.dataset)?;
        let truth = self.truth(row, columns, &mut spec)?;
        spec.tenant = self.list.tenant(row.maybe(columns.tenant).map_or("", |(_, name)| name));
        self.list.at_line(row.line);
        self.list.push_with(spec, truth);
        Ok(())
    }

    fn profile(&mut self, row: &Row<'_>, columns: &Columns) -> Result<Arc<Profile>, InputError> {
        match row.maybe(columns.model) {
            Some((column, name)) => self.models.find_or_plain(row, column, name),
            None => Ok(self.models.plain("")),
        }
    }

    /// The work, and into the spec its estimate, which is in the unit of the work.
    fn truth(&mut self, row: &Row<'_>, columns: &Columns, spec: &mut JobSpec) -> Result<Truth, InputError> {
        let (column, rate) = match (row.maybe(columns.iterations), row.maybe(columns.duration_s)) {
            (Some((column, _)), None) => (column, 1.0),
            (None, Some((column, _))) => (column, self.speeds.fair_rate(spec)),
            (_, _) => {
                let column = columns.iterations.or(columns.duration_s).unwrap_or(0);
                return Err(row.expected(column, "either iterations or duration_s"));
            }
        };
        let fair_rate = self.speeds.fair_rate(spec);
        let iterations = |column: usize| {
            let work = row.positive(column)? * rate;
            match work / fair_rate {
                too_long if too_long > MOST_RUN_S && fair_rate > 0.0 => {
                    Err(row.expected(column, "a job of at most 100 years"))
                }
                _ if work.is_finite() && work > 0.0 => Ok(work),
                _ => Err(row.expected(column, "a job that can run on this cluster")),
            }
        };
        let work = iterations(column)?;
        spec.estimated_work = match row.maybe(columns.estimate) {
            Some((column, _)) => iterations(column)?,
            None => work,
        };
        let pace = match row.maybe(columns.pace) {
            Some((column, _)) => row.positive(column)?,
            None => 1.0,
        };
        let attempts = match row.maybe(columns.attempts) {
            Some((column, _)) => row.whole(column)?,
            None => 0,
        };
        Ok(Truth { work, pace, end: ended(row, columns.ended)?, attempts })
    }

    /// `name:size@node`, where a data set named before needs only its name and one in the remote store no node.
    fn dataset(&mut self, row: &Row<'_>, column: Option<usize>) -> Result<Option<DatasetId>, InputError> {
        let Some((column, text)) = row.maybe(column) else { return Ok(None) };
        if let Some(known) = self.list.dataset(text) {
            return Ok(Some(known));
        }
        let wrong =
            || row.expected(column, "a data set with its size and perhaps its node, as in images:150GB@3");
        let (name, rest) = text.rsplit_once(':').ok_or_else(wrong)?;
        let (size, home) = rest.split_once('@').map_or((rest, None), |(size, home)| (size, Some(home)));
        let home = match home {
            Some(home) => {
                let node = home.parse().map(NodeId).map_err(|_| wrong())?;
                let there = self
                    .setting
                    .cluster
                    .node(node)
                    .ok_or_else(|| row.expected(column, "a node of the cluster after the @"));
                Some(there?.id)
            }
            None => None,
        };
        let dataset = Dataset { name: name.to_owned(), bytes: Bytes::parse(size).ok_or_else(wrong)?.0, home };
        match self.list.dataset(name) {
            Some(known) if self.list.dataset_at(known) == Some(&dataset) => Ok(Some(known)),
            Some(_) => {
                Err(row.expected(column, format!("the same size and node for {name} as in the rows above")))
            }
            None => Ok(Some(self.list.add_dataset(dataset))),
        }
    }
}

/// `1-2-4-8`, ascending.
fn levels(row: &Row<'_>, column: Option<usize>) -> Result<Box<[u32]>, InputError> {
    let Some((column, text)) = row.maybe(column) else { return Ok(Box::default()) };
    let levels: Option<Vec<u32>> = text.split('-').map(|level| level.trim().parse().ok()).collect();
    let is_sound =
        |levels: &Vec<u32>| levels.first() > Some(&0) && levels.windows(2).all(|pair| pair[0] < pair[1]);
    let levels =
        levels.filter(is_sound).ok_or_else(|| row.expected(column, "ascending GPU counts, as in 1-2-4-8"))?;
    Ok(levels.into())
}

/// A time, or steps `time:value|time:value` of ascending times.
fn deadline(row: &Row<'_>, column: Option<usize>) -> Result<Deadline, InputError> {
    let Some((column, text)) = row.maybe(column) else { return Ok(Deadline::None) };
    let wrong = || row.expected(column, "a time, or steps time:value|time:value with ascending times");
    if !text.contains(':') {
        return parse_time(text, 1.0).map(Deadline::Strict).ok_or_else(wrong);
    }
    let step = |step: &str| {
        let (time, value) = step.split_once(':')?;
        Some((parse_time(time, 1.0)?, value.parse::<f64>().ok().filter(|v| v.is_finite())?))
    };
    let steps: Option<Vec<_>> = text.split('|').map(step).collect();
    let steps = steps.filter(|s| s.windows(2).all(|pair| pair[0].0 < pair[1].0)).ok_or_else(wrong)?;
    Ok(Deadline::Soft(steps))
}

/// How the job ended, in a word.
fn ended(row: &Row<'_>, column: Option<usize>) -> Result<RecordedEnd, InputError> {
    let Some((column, text)) = row.maybe(column) else { return Ok(RecordedEnd::Unknown) };
    let known = RecordedEnd::WORDS.iter().find(|(_, word)| *word == text);
    known.map(|(end, _)| *end).ok_or_else(|| row.expected(column, "passed, failed or killed"))
}

/// Costs of its own where one is given; those left out are the profile's.
fn costs(row: &Row<'_>, columns: &Columns, spec: &JobSpec) -> Result<Option<Costs>, InputError> {
    let given = [columns.restart_s, columns.checkpoint_s, columns.checkpoint_every_s];
    if given.iter().all(|column| row.maybe(*column).is_none()) {
        return Ok(None);
    }
    let usual = spec.costs();
    let span = |column: Option<usize>, otherwise: Span| match row.maybe(column) {
        Some((column, _)) => row.seconds(column).map(Span::from_secs_f64),
        None => Ok(otherwise),
    };
    Ok(Some(Costs {
        restart: span(columns.restart_s, usual.restart)?,
        checkpoint: span(columns.checkpoint_s, usual.checkpoint)?,
        checkpoint_every: span(columns.checkpoint_every_s, usual.checkpoint_every)?,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::tests::{built_in, message};

    #[test]
    fn four_columns_are_enough() {
        let (cluster, profiles) = built_in("default", "synergy");
        let text = "gpus,job_id,duration_s,arrival_s\n2,a,100,5\n";
        let workload =
            read(&Source::new("t.csv", text), &Setting::new(&cluster, &profiles)).expect("enough").workload;
        assert_eq!(
            (workload.truths[0].work, workload.jobs[0].gpus.asked),
            (100.0, 2),
            "one iteration a second"
        );
        assert_eq!(workload.tenants, ["default"]);
    }

    #[test]
    fn a_duration_counts_at_the_proportional_share() {
        let (cluster, profiles) = built_in("cpu4", "synergy");
        let text = "job_id,arrival_s,gpus,duration_s,model,estimate\na,0,1,60,alexnet,30\n";
        let workload =
            read(&Source::new("t.csv", text), &Setting::new(&cluster, &profiles)).expect("sound").workload;
        let (work, estimate) = (workload.truths[0].work, workload.jobs[0].estimated_work);
        assert!((work - 125.0).abs() < 1e-9, "4 CPUs make it 1.25 times as fast: {work}");
        assert!((estimate - 62.5).abs() < 1e-9, "{estimate}");
    }

    #[test]
    fn mistakes_are_named() {
        let row = |heading: &str, cell: &str| {
            message(read, "t.csv", &format!("job_id,arrival_s,gpus,iterations,{heading}\na,0,1,10,{cell}\n"))
        };
        let cases = [
            ("deadline_s", "soon", "expected a time, or steps time:value|time:value with ascending times"),
            ("deadline_s", "9:1|8:1", "expected a time, or steps time:value|time:value with ascending times"),
            ("gpu_levels", "4-2", "expected ascending GPU counts, as in 1-2-4-8"),
            ("gpu_type", "H100", "expected a GPU type of the cluster: V100"),
            ("duration_s", "5", ""),
            (
                "dataset",
                "images",
                "expected a data set with its size and perhaps its node, as in images:150GB@3",
            ),
            ("dataset", "images:1GB@99", "expected a node of the cluster after the @"),
            ("priority", "high", "expected a whole number"),
            ("ended", "badly", "expected passed, failed or killed"),
            ("attempts", "-1", "expected a whole number"),
            ("restart_s", "-1", "expected a length of time, not negative"),
        ];
        for (heading, cell, problem) in cases {
            let expected = match heading {
                "duration_s" => {
                    "t.csv:2, column 4 (iterations): got \"10\", expected either iterations or duration_s"
                        .into()
                }
                _ => format!("t.csv:2, column 5 ({heading}): got \"{cell}\", {problem}"),
            };
            assert_eq!(row(heading, cell), expected);
        }
        let unknown = row("deadline", "5");
        assert!(
            unknown.starts_with("t.csv:1, column 5: got \"deadline\", expected one of the columns job_id,"),
            "{unknown}"
        );
    }
}
