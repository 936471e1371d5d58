//! `rota submit --wait`: until jobs have ended, and what the command then returns.

use std::process::ExitCode;

use anyhow::Result;
use rota_core::ids::JobId;
use rota_transport::message::{JobStateView, JobView};
use rota_transport::value::{Lines, shown};

use super::client::Client;
use super::show;

/// Returned for a job that was stopped because of its time limit, as by `timeout`.
const TIME_LIMIT: u8 = 124;
/// Returned for a job that did not run: declined, or its launches could not be started or were lost.
const NOT_RUN: u8 = 125;
/// Returned for a job that was cancelled, as for a program that is interrupted.
const CANCELLED: u8 = 130;

/// Waits until these jobs have ended; returns their final states.
pub(crate) fn wait(client: &mut Client, ids: &[JobId]) -> Result<Vec<JobView>> {
    loop {
        let views = show::fetch(client, ids)?;
        if views.iter().all(|view| view.state.is_over()) {
            return Ok(views);
        }
        std::thread::sleep(std::time::Duration::from_millis(300));
    }
}

/// What to return for jobs that have ended: of the first that did not finish, what it ended with; its reason is printed.
pub(super) fn exit_code(ended: &[JobView]) -> ExitCode {
    let Some(view) = ended.iter().find(|view| view.state != JobStateView::Finished) else {
        return ExitCode::SUCCESS;
    };
    eprintln!("rota: job {} was not finished: {}", view.id, shown(view.reason.as_str(), Lines::Kept));
    ExitCode::from(code_of(view.state, view.exit_code))
}

fn code_of(state: JobStateView, exit_code: Option<i32>) -> u8 {
    match state {
        JobStateView::Finished => 0,
        JobStateView::TimeLimit => TIME_LIMIT,
        JobStateView::Cancelled => CANCELLED,
        JobStateView::Failed => {
            // A shell sees the lowest eight bits, and must not take a failure for a success.
            let code = exit_code.and_then(|code| u8::try_from(code & 0xff).ok());
            code.filter(|code| *code != 0).unwrap_or(NOT_RUN)
        }
        _ => NOT_RUN,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_is_never_a_success() {
        assert_eq!(code_of(JobStateView::Failed, Some(3)), 3);
        assert_eq!(code_of(JobStateView::Failed, Some(128 + 9)), 137);
        assert_eq!(code_of(JobStateView::Failed, Some(256)), NOT_RUN);
        assert_eq!(code_of(JobStateView::Failed, None), NOT_RUN);
        assert_eq!(code_of(JobStateView::Declined, None), NOT_RUN);
    }
}
