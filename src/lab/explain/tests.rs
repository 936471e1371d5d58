use rota_core::allocation::{GpuSet, Slice, WHOLE_GPU};
use rota_core::ids::{JobId, NodeId};
use rota_core::ledger::Stretch;
use rota_core::resources::Host;

use super::*;
use crate::results::samples::{run, seconds};

fn stretch(job: u32, node: u32, gpus: u64, share: u16, from_s: f64, to_s: f64) -> Stretch {
    let host = Host { cpu_micro: 0, mem_bytes: 0, storage_bps: 0 };
    let slice = Slice { node: NodeId(node), gpus: GpuSet(gpus), share, host };
    Stretch { job: JobId(job), slice, from: seconds(from_s), to: seconds(to_s) }
}

/// Job 1 (arrives at 1010 s, due at 1110 s, done at 1160.25 s) starts at 1030 s with 2 GPUs, loses one to job 2 at
/// 1060 s, is stopped from 1080 s to 1100 s while job 2 holds 4, and ends with 4 GPUs on two nodes.
fn scaled() -> RunResult {
    let mut run = run("elasticflow", 1, None);
    run.timeline = vec![
        stretch(0, 0, 0b1111, WHOLE_GPU, 1000.0, 1050.0),
        stretch(1, 1, 0b0011, WHOLE_GPU, 1030.0, 1060.0),
        stretch(1, 1, 0b0001, WHOLE_GPU, 1060.0, 1080.0),
        stretch(2, 1, 0b0010, WHOLE_GPU, 1060.0, 1080.0),
        stretch(2, 1, 0b1111, WHOLE_GPU, 1080.0, 1100.0),
        stretch(1, 0, 0b0011, WHOLE_GPU, 1100.0, 1160.25),
        stretch(1, 1, 0b0011, WHOLE_GPU, 1100.0, 1160.25),
    ];
    run
}

#[test]
fn what_a_job_held_is_joined_across_nodes() {
    let phases = explain(&scaled(), "job-1").expect("it is there").phases;
    let seen: Vec<_> = phases.iter().map(|p| (p.from_s, p.to_s, p.gpus, p.nodes.len())).collect();
    assert_eq!(seen, [(1030.0, 1060.0, 2.0, 1), (1060.0, 1080.0, 1.0, 1), (1100.0, 1160.25, 4.0, 2)]);
}

#[test]
fn waiting_names_who_held_the_gpus_meanwhile() {
    let waits = explain(&scaled(), "job-1").expect("it is there").waits;
    let seen: Vec<_> = waits.iter().map(|w| (w.from_s, w.to_s, w.gpus_held)).collect();
    assert_eq!(seen, [(1010.0, 1030.0, 4.0), (1080.0, 1100.0, 4.0)]);
    let holders: Vec<_> = waits.iter().map(|w| w.holders[0].job_id.as_str()).collect();
    assert_eq!(holders, ["job-0", "job-2"]);
}

#[test]
fn changes_name_who_gained_what_the_job_lost() {
    let moves = explain(&scaled(), "job-1").expect("it is there").moves;
    let seen: Vec<_> = moves.iter().map(|m| (m.at_s, m.gpus_before, m.gpus_after)).collect();
    assert_eq!(seen, [(1060.0, 2.0, 1.0), (1080.0, 1.0, 0.0), (1100.0, 0.0, 4.0)]);
    assert_eq!(moves[0].others, [Holder { job_id: "job-2".into(), gpus: 1.0 }]);
    assert_eq!(moves[1].others, [Holder { job_id: "job-2".into(), gpus: 3.0 }]);
}

#[test]
fn a_missed_deadline_is_weighed_against_the_waiting() {
    let text = explain(&scaled(), "job-1").expect("it is there").to_text();
    let late =
        "It missed its deadline by 50.25 s: it waited for 40 s in all, so waiting alone does not explain it.";
    assert!(text.contains(late), "{text}");
    assert!(text.contains("1,060 s: shrank from 2 to 1 GPU; at that moment job-2 (+1)"), "{text}");
    assert!(text.contains("1,080 s: stopped, from 1 GPU; at that moment job-2 (+3)"), "{text}");
}

#[test]
fn a_decline_keeps_the_words_of_the_policy_and_says_who_was_there() {
    let explanation = explain(&scaled(), "job-3").expect("it is there");
    let text = explanation.to_text();
    assert!(text.contains("It was declined: 3 GPUs short at 1130 s, \"see\" <timeline>."), "{text}");
    assert!(explanation.waits[0].holders.iter().any(|holder| holder.job_id == "job-1"), "{text}");
    assert!(explanation.phases.is_empty() && explanation.moves.is_empty());
}

#[test]
fn time_slices_count_as_parts_of_gpus() {
    let mut run = scaled();
    run.timeline = vec![stretch(1, 1, 0b0011, WHOLE_GPU / 2, 1030.0, 1160.25)];
    assert_eq!(explain(&run, "job-1").expect("it is there").phases[0].gpus, 1.0);
}

#[test]
fn a_folder_without_a_timeline_says_how_to_get_one() {
    let mut run = scaled();
    run.timeline.clear();
    let explanation = explain(&run, "job-1").expect("it is there");
    assert!(explanation.waits.is_empty() && !explanation.has_timeline);
    assert!(explanation.to_text().contains("--timeline"), "{}", explanation.to_text());
}

#[test]
fn a_job_that_is_not_there_is_refused_by_name() {
    let error = explain(&scaled(), "job-9").expect_err("there are five").to_string();
    assert_eq!(error, "the run of elasticflow has no job `job-9`; it has 5, the first is `job-0`");
}
