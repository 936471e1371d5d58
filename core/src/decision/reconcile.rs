//! From what is wanted to what must be done: the fewest commands, stops first so that GPUs are free for starts.

use crate::check::CheckedPlan;
use crate::event::{Command, StopCause};
use crate::plan::{Hold, Verdict};
use crate::table::{JobPhase, JobTable};

/// The commands that change the state of `jobs` into that of the plan.
pub fn reconcile(jobs: &JobTable, checked: CheckedPlan) -> Vec<Command> {
    let mut commands = Vec::new();
    for row in 0..jobs.len() {
        if jobs.phase(row) == JobPhase::Running && !checked.runs(row) {
            commands.push(stop(jobs, row));
        }
    }
    let plan = checked.into_plan();
    let mut starts = Vec::new();
    let mut resizes = Vec::new();
    for run in plan.run {
        let Hold::Take(allocation) = run.what else { continue };
        let Some(row) = jobs.row(run.job) else { continue };
        let (job, held) = (run.job, jobs.allocation(row));
        let incarnation = jobs.incarnation(row);
        if jobs.phase(row) == JobPhase::Running && held.same_gpus(&allocation) {
            if *held != allocation {
                resizes.push(Command::Resize { job, incarnation, allocation });
            }
            continue;
        }
        if jobs.phase(row) == JobPhase::Running {
            commands.push(stop(jobs, row));
        }
        starts.push(Command::Start { job, incarnation: jobs.launch_after(incarnation), allocation });
    }
    let verdicts = plan.verdicts.into_iter().map(|(job, verdict)| match verdict {
        Verdict::Admit => Command::Admit { job },
        Verdict::Decline(reason) => Command::Decline { job, reason },
    });
    commands.extend(verdicts);
    commands.append(&mut resizes);
    commands.append(&mut starts);
    commands
}

fn stop(jobs: &JobTable, row: usize) -> Command {
    Command::Stop { job: jobs.id(row), incarnation: jobs.incarnation(row), cause: StopCause::Preempted }
}
