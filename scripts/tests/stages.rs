//! What stages can do beyond the shipped ones: admission, memory, wakes, free placement, plans in pure Rhai.

mod common;

use rota_core::check::check;
use rota_core::plan::{Hold, Plan, Verdict, Wake};
use rota_core::policy::Policy;
use rota_core::snapshot::Snapshot;
use rota_scripts::sample::{Size, snapshot};
use rota_scripts::{Limits, ScriptPolicy};

use common::policy;

fn instant() -> Snapshot {
    snapshot(Size { n_nodes: 2, n_old: 12, n_new: 6 })
}

#[track_caller]
fn decide(text: &str, instant: &Snapshot) -> Plan {
    let plan = policy(text, Limits::default()).decide(instant).unwrap_or_else(|error| panic!("{error}"));
    check(instant, plan.clone()).unwrap_or_else(|violation| panic!("{violation}"));
    plan
}

#[test]
fn admission_answers_for_each_job_and_waiting_ones_do_not_run() {
    let text = "fn admit(job, view) {\n    if job.id % 3 == 0 { accept() } else if job.id % 3 == 1 { decline(`no ${job.id}`) } else { wait() }\n}";
    let plan = decide(text, &instant());
    let verdicts: Vec<_> = plan.verdicts.iter().map(|(job, verdict)| (job.0, verdict.clone())).collect();
    let no = |id: u32| Verdict::Decline(format!("no {id}"));
    assert_eq!(verdicts, [(12, Verdict::Admit), (13, no(13)), (15, Verdict::Admit), (16, no(16))]);
    assert!(plan.run.iter().all(|run| run.job.0 < 12 || run.job.0 % 3 == 0), "{:?}", plan.run);
}

#[test]
fn memory_lasts_and_is_put_back_after_a_restart() {
    let text = "fn order(jobs, now) {\n    this.rounds = (this.rounds ?? 0) + 1;\n    print(this.rounds);\n    rank(jobs.arrival)\n}";
    let mut first = policy(text, Limits::default());
    assert_eq!(first.memory(), "", "nothing yet");
    for round in ["1", "2"] {
        assert_eq!(first.decide(&instant()).expect("it decides").notes, [round]);
    }
    assert_eq!(first.memory(), "{\"rounds\":2}");
    let mut second = policy(text, Limits::default());
    second.restore_memory(&first.memory()).expect("its own text");
    assert_eq!(second.decide(&instant()).expect("it decides").notes, ["3"]);
}

#[test]
fn only_when_all_parts_are_steady_is_the_policy() {
    let wake = |name| {
        let mut policy =
            ScriptPolicy::load(name, Limits::default()).unwrap_or_else(|error| panic!("{error}"));
        policy.decide(&instant()).expect("it decides").wake
    };
    assert_eq!(wake("fifo+tune+consolidate"), Wake::OnChange);
    assert_eq!(wake("las+tune"), Wake::NextRound);
}

#[test]
fn a_columns_order_is_the_same_as_the_slow_ones() {
    let instant = snapshot(Size { n_nodes: 8, n_old: 300, n_new: 50 });
    let fast = decide("fn order(jobs, now) { rank(-jobs.gpus, jobs.remaining) }", &instant);
    let slow = decide("fn order(jobs, now) { jobs.order_by(|job| [-job.gpus, job.remaining]) }", &instant);
    assert_eq!(fast.run, slow.run);
}

#[test]
fn a_second_ranking_is_not_led_astray_by_the_first() {
    let instant = snapshot(Size { n_nodes: 8, n_old: 300, n_new: 50 });
    let mut policy = policy("fn order(jobs, now) { rank(jobs.remaining) }", Limits::default());
    let first = policy.decide(&instant).expect("it decides");
    assert_eq!(policy.decide(&instant).expect("it decides again"), first, "the hint changes no result");
}

#[test]
fn nodes_with_the_highest_score_are_used_first() {
    let instant = snapshot(Size { n_nodes: 4, n_old: 0, n_new: 1 });
    let plan = decide("fn place(view) { by_score(|node, job| node.id) }", &instant);
    let Hold::Take(held) = &plan.run[0].what else { panic!("{plan:?}") };
    assert_eq!(held.slices[0].node.0, 3);
    let plan = decide("fn place(view) { by_score(|node, job| if node.id == 1 { 1.0 }) }", &instant);
    let Hold::Take(held) = &plan.run[0].what else { panic!("{plan:?}") };
    assert_eq!(held.slices[0].node.0, 1, "nodes without a score are not used");
}

#[test]
fn a_whole_heuristic_can_be_written_in_plain_rhai() {
    let text = "
        fn decide(view) {
            let plan = plan();
            for job in view.running { plan.keep(job); }
            let nodes = view.nodes.map(|n| #{ id: n.id, gpus: n.free_gpu_ids });
            for job in view.asking {
                for node in nodes {
                    if node.gpus.len >= job.gpus {
                        plan.run(job, [#{ node: node.id, gpus: node.gpus.extract(0, job.gpus) }]);
                        break;
                    }
                }
                if plan.len > 0 { break; }
            }
            plan.wake_at(view.now + 900);
            plan
        }";
    let instant = snapshot(Size { n_nodes: 2, n_old: 3, n_new: 4 });
    let plan = decide(text, &instant);
    assert!(plan.run.len() > 3, "the three that run, and one more: {plan:?}");
    assert!(
        matches!(plan.wake, Wake::AtOrOnChange(time) if time.as_secs_f64() == 1_500.0),
        "{:?}",
        plan.wake
    );
}

#[test]
fn a_total_up_to_a_key_is_the_sum_over_all_with_no_larger_one() {
    let text = r#"fn order(jobs, now) {
        let totals = jobs.remaining.total_up_to(jobs.gpus);
        let n_wrong = 0;
        for job in jobs {
            let sum = 0.0;
            for other in jobs { if other.gpus <= job.gpus { sum += other.remaining; } }
            if (totals.of(job) - sum).abs() > 1e-6 { n_wrong += 1; }
        }
        print(n_wrong);
        print(totals.most() == jobs.remaining.sum());
        rank(jobs.arrival)
    }"#;
    assert_eq!(decide(text, &instant()).notes, ["0", "true"]);
}
