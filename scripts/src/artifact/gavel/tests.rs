//! Small runs that can be followed by hand.

use smallvec::smallvec;

use super::*;

/// Always the first.
struct First;

impl Draws for First {
    fn below(&mut self, _: usize) -> usize {
        0
    }
}

fn job(kind: usize, gpus: u32, steps: i64, arrival_s: f64) -> GavelJob {
    GavelJob { kind, gpus, steps, weight: 1.0, arrival_s }
}

fn ran(name: &str, jobs: &[GavelJob], n_gpus: u32) -> Run {
    let mut speeds = Speeds { alone: vec![smallvec![1.0], smallvec![2.0]], ..Speeds::default() };
    speeds.pairs.insert((0, 0), smallvec![[0.9, 0.8]]);
    let mut policy = policy(name, Box::new(First)).expect("a policy");
    let how = (Rounds::default(), Traits::of(name));
    let inputs = Inputs { jobs, types: &["v100".to_owned()], gpus: &[n_gpus], order: &[0], speeds: &speeds };
    run(inputs, how, policy.as_mut(), &mut First).expect("a run")
}

#[test]
fn a_job_alone_runs_round_after_round_until_it_is_done() {
    let run = ran("isolated", &[job(0, 1, 1_000, 0.0), job(1, 1, 1_000, 0.0)], 2);
    let finishes: Vec<_> = run.outcomes.iter().map(|outcome| outcome.finish_s).collect();
    assert_eq!(finishes, [Some(1_000.0), Some(500.0)]);
    assert_eq!((run.n_rounds, run.makespan_s), (4, 1_000.0), "the last one notices the end");
}

#[test]
fn a_newcomer_between_two_answers_waits_beside_an_idle_gpu() {
    let jobs = [job(0, 1, 5_000, 0.0), job(0, 1, 5_000, 400.0), job(0, 1, 100, 800.0)];
    let run = ran("max_min_fairness_perf", &jobs, 3);
    // An answer at 0 s counts as none, so the second job is answered at once.
    assert_eq!(run.outcomes[1].start_s, Some(720.0));
    // D3: the third arrives before the round at 1,080 s and starts after the next answer, which is due 1,920 s after that at 720 s.
    assert_eq!(run.outcomes[2].start_s, Some(2_880.0));
}

#[test]
fn a_job_with_fewer_steps_left_than_gpus_is_dropped() {
    let run = ran("fifo_perf", &[job(0, 4, 361, 0.0), job(0, 1, 10, 0.0)], 5);
    assert_eq!(run.outcomes[0], Outcome { start_s: Some(0.0), finish_s: None }, "D5");
    assert_eq!(run.outcomes[1].finish_s, Some(10.0));
}

#[test]
fn two_that_do_more_together_share_a_gpu_and_end_together() {
    let run = ran("fifo_packed", &[job(0, 1, 90, 0.0), job(0, 1, 80, 0.0)], 1);
    assert_eq!(run.outcomes.map_finishes(), [Some(100.0), Some(100.0)]);
    assert_eq!(run.outcomes[1].start_s, Some(0.0));
}

trait Finishes {
    fn map_finishes(&self) -> Vec<Option<f64>>;
}

impl Finishes for Vec<Outcome> {
    fn map_finishes(&self) -> Vec<Option<f64>> {
        self.iter().map(|outcome| outcome.finish_s.map(|finish| finish.round())).collect()
    }
}

#[test]
fn names_are_those_of_the_original() {
    assert!(policy("max_min_fairness_packed", Box::new(First)).is_ok());
    assert!(policy("allox_alpha=0.5", Box::new(First)).is_ok());
    let error = policy("las", Box::new(First)).err().expect("not Gavel's");
    assert_eq!(error.to_string(), "\"las\" is no policy of Gavel's");
    assert!(
        Traits::of("fifo").shuffles && Traits::of("fifo").leaves_idle && !Traits::of("fifo_perf").shuffles
    );
}
