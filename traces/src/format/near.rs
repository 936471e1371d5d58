//! What to say of a file that no format recognises: which of its headings are close to those of Rota's own table, what kind of
//! file it seems to be if not a trace, and which formats there are.

use super::Format;
use super::detect::Head;
use crate::error::InputError;
use crate::source::Source;

/// Headings that other tables use for a column of Rota's, in lower case.
const SYNONYMS: [(&str, &[&str]); 7] = [
    ("job_id", &["id", "jobid", "job", "name", "job_name"]),
    (
        "arrival_s",
        &[
            "arrival",
            "arrival_time",
            "submit",
            "submit_time",
            "submission_time",
            "submitted",
            "submit_s",
            "time",
            "timestamp",
        ],
    ),
    (
        "gpus",
        &[
            "gpu",
            "num_gpu",
            "num_gpus",
            "ngpu",
            "n_gpu",
            "gpu_num",
            "n_gpus",
            "ngpus",
            "gpu_count",
            "num_replicas",
            "gpus_requested",
        ],
    ),
    (
        "duration_s",
        &[
            "duration",
            "runtime",
            "run_time",
            "elapsed",
            "length",
            "length_s",
            "seconds",
            "job_length",
            "service_time",
        ],
    ),
    ("iterations", &["iteration", "iters", "steps", "num_iteration", "num_steps", "total_steps"]),
    ("deadline_s", &["deadline", "ddl", "due"]),
    ("tenant", &["user", "vc", "queue", "account", "group", "virtual_cluster"]),
];

/// Files that come with public traces and hold no jobs, known by their headings.
const NO_TRACES: [(&[&str], &str); 14] = [
    (&["job_num", "avg_run_time_gpu"], "a summary of clusters (Helios, Acme)"),
    (&["vc", "node num"], "a list of virtual clusters and their nodes"),
    (&["worker", "gpu", "batch_time_norm"], "measured mini-batch times"),
    (&["num_switch", "num_node_p_switch"], "a cluster: give it to --cluster"),
    (&["sn", "cpu_milli", "gpu"], "a list of nodes of a cluster (Alibaba openb)"),
    (&["num_nodes", "step_time"], "a profile of step times"),
    (&["placement", "step_time"], "a profile of step times"),
    (
        &["job_name", "inst_id", "start_time"],
        "PAI's table of jobs, which has no GPUs: its table of tasks has them",
    ),
    (&["inst_name", "worker_name", "inst_id"], "PAI's table of instances: its table of tasks has the GPUs"),
    (&["worker_name", "machine_cpu_usr"], "PAI's measurements of machines"),
    (&["worker_name", "gpu_wrk_util"], "PAI's measurements of instances"),
    (&["machine", "cap_gpu"], "a list of nodes of a cluster (PAI)"),
    (&["inst_id", "gpu_type_spec"], "PAI's groups of jobs"),
    (&["name", "num_gpu", "gpu_milli"], "a list of pods without times (Alibaba openb)"),
];

/// The error for a file in no known format.
pub(super) fn unknown(source: &Source, head: &Head<'_>) -> InputError {
    let wrong = |what: String| InputError::problem(&source.name, what).at_line(1).got(head.first);
    if let Some((_, what)) = NO_TRACES.iter().find(|(names, _)| head.has(names)) {
        return wrong(format!("expected a trace: this seems to be {what}"));
    }
    if head.cells().len() == 1 && head.has_any(&["duration", "runtime"]) {
        return wrong("expected a trace: this seems to be a list of run times without arrivals".into());
    }
    if head.first.is_empty() {
        return InputError::problem(&source.name, "expected a trace: the first line is empty").at_line(1);
    }
    if head.cells().len() == 1 && head.first.contains(';') {
        return wrong("expected commas between columns, not semicolons".into());
    }
    if head.is_json {
        let what = "expected a list of jobs (Philly's log) or an object with \"jobs\" (sacct --json); throughputs are for `rota profile import`";
        return InputError::problem(&source.name, what).at_line(1);
    }
    let close = close_headings(head);
    let differing = || close.iter().filter(|(own, theirs)| own != theirs);
    if close.len() >= 2 && differing().next().is_some() {
        let pairs: Vec<String> = differing().map(|(own, theirs)| format!("{own}={theirs}")).collect();
        let renames: Vec<String> =
            differing().map(|(own, theirs)| format!("`{theirs}` may be its `{own}`")).collect();
        return wrong(format!(
            "is not in a known format, but close to Rota's own table: {}. If so, say --map {}",
            renames.join(", "),
            pairs.join(",")
        ));
    }
    let names: Vec<_> = Format::ALL.iter().map(|entry| entry.name).collect();
    wrong(format!("expected a trace in one of the formats {} (name it if it is one)", names.join(", ")))
}

/// Rota's columns with the headings that may stand for them, each heading once.
fn close_headings<'s>(head: &Head<'s>) -> Vec<(&'static str, &'s str)> {
    let mut taken: Vec<&str> = Vec::new();
    let mut found = Vec::new();
    for (own, synonyms) in SYNONYMS {
        let exact = head.cells().iter().find(|cell| **cell == own);
        let like = |cell: &&&str| {
            let lower = cell.to_ascii_lowercase();
            synonyms.contains(&lower.as_str()) || strsim::damerau_levenshtein(&lower, own) == 1
        };
        let heading = exact.or_else(|| head.cells().iter().find(like)).filter(|cell| !taken.contains(cell));
        if let Some(heading) = heading {
            taken.push(heading);
            found.push((own, *heading));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::super::detect;
    use super::*;

    fn message(text: &str) -> String {
        detect(&Source::new("x.csv", text)).expect_err(text).to_string()
    }

    #[test]
    fn guessed_headings_are_named_with_those_they_may_stand_for() {
        let said = message("id,arrival,gpu,runtime\n1,2,3,4\n");
        assert!(said.contains("`arrival` may be its `arrival_s`"), "{said}");
        assert!(
            said.ends_with("say --map job_id=id,arrival_s=arrival,gpus=gpu,duration_s=runtime"),
            "{said}"
        );
    }

    #[test]
    fn files_that_are_no_traces_are_told_apart() {
        assert!(message("vc,node num\na,5\n").contains("a list of virtual clusters"));
        assert!(message("duration\n121\n").contains("run times without arrivals"));
        assert!(message("").contains("the first line is empty"));
        assert!(message("job_id;gpus\na;1\n").contains("not semicolons"));
        assert!(message("sn,cpu_milli,memory_mib,gpu,model\na,1,2,3,V100\n").contains("a list of nodes"));
    }
}
