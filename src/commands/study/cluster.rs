//! `--on rota`: the shards of a study as jobs of a live Rota cluster, waited for.

use anyhow::Result;
use rota_core::ids::JobId;
use rota_transport::message::JobStateView;

use super::PartsArgs;
use super::shards::Shards;
use crate::commands::live::{Client, HeadArgs, SubmitArgs, job_requests, submit_jobs, wait_for_jobs};

/// Submits a job for each shard and waits for all.
pub(super) fn run(args: &PartsArgs, shards: &Shards, is_quiet: bool) -> Result<()> {
    let script = shards.write_script("$((${ROTA_ARRAY_INDEX:-0} + 1))")?;
    let (address, credentials) = (args.head.clone(), args.credentials.clone());
    let head = HeadArgs { head: address, credentials, ..HeadArgs::default() };
    let submit = SubmitArgs {
        name: Some("rota-study".into()),
        gpus: Some(1),
        time: Some(args.task_time),
        array: args.shards,
        command: vec!["sh".into(), script.display().to_string()],
        ..SubmitArgs::default()
    };
    let mut client = Client::new(&head)?;
    let ids = submit_jobs(&mut client, job_requests(&submit)?)?;
    if !is_quiet {
        eprintln!("submitted {} shards to the head as jobs {}", args.shards, named(&ids));
    }
    let ended = wait_for_jobs(&mut client, &ids)?;
    let failed = ended.iter().filter(|job| job.state != JobStateView::Finished);
    for job in failed {
        eprintln!("job {} was not finished: {}; what it did not run is run here", job.id, job.reason);
    }
    Ok(())
}

/// The numbers of an array, which the head gives in a row.
fn named(ids: &[JobId]) -> String {
    match ids {
        [first, .., last] => format!("{first} to {last}"),
        ids => ids.iter().map(ToString::to_string).collect(),
    }
}
