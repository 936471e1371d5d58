//! `rota cancel`, `hold`, `release`, `requeue`, `priority` and `drain`: what people change about jobs and nodes.

use std::str::FromStr;

use anyhow::{Result, anyhow};
use clap::Args;
use rota_core::ids::JobId;
use rota_transport::message::{FromUser, JobChange, JobSelection, NodeService, ToUser};
use rota_transport::value::{Name, Text};

use super::client::{Client, HeadArgs};
use super::say_json;

/// A job by its number, or several: `5`, or `5-9`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct JobRange {
    first: u32,
    last: u32,
}

impl FromStr for JobRange {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let wrong = || format!("`{text}` is not a job: write a number, or a range such as 5-9");
        let number = |text: &str| text.parse::<u32>().map_err(|_| wrong());
        let (first, last) = match text.split_once('-') {
            Some((first, last)) => (number(first)?, number(last)?),
            None => (number(text)?, number(text)?),
        };
        if first > last { Err(wrong()) } else { Ok(JobRange { first, last }) }
    }
}

impl JobRange {
    /// Every job of it.
    pub(crate) fn jobs(self) -> impl Iterator<Item = JobId> {
        (self.first..=self.last).map(JobId)
    }
}

/// Which jobs a command is about.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct SelectionArgs {
    #[command(flatten)]
    pub head: HeadArgs,
    /// Numbers of the jobs, and ranges such as 5-9, of which jobs that have ended are left out [default:
    /// none]
    #[arg(value_name = "JOB", value_delimiter = ',', required_unless_present_any = ["array", "name", "user"])]
    pub jobs: Vec<JobRange>,
    /// All jobs that were submitted together with this one [default: none]
    #[arg(long, value_name = "JOB")]
    pub array: Vec<u32>,
    /// Of the jobs named, or of all, those with this name [default: any name]
    #[arg(short, long, value_name = "NAME")]
    pub name: Option<String>,
    /// Of the jobs named, or of all, those of this user; operators may name others [default: any user]
    #[arg(short, long, value_name = "USER")]
    pub user: Option<String>,
}

impl SelectionArgs {
    fn selection(&self) -> Result<JobSelection> {
        let text = |text: &Option<String>| Text::new(text.clone().unwrap_or_default());
        Ok(JobSelection {
            ranges: self.jobs.iter().map(|range| (JobId(range.first), JobId(range.last))).collect(),
            arrays: self.array.iter().map(|job| JobId(*job)).collect(),
            name: text(&self.name)?,
            user: text(&self.user)?,
        })
    }
}

/// Jobs and their new priority.
#[derive(Args, Clone, Debug)]
pub(crate) struct PriorityArgs {
    #[command(flatten)]
    pub head: HeadArgs,
    /// Number of the job, or a range such as 5-9
    #[arg(value_name = "JOB")]
    pub job: JobRange,
    /// The priority; orders that respect it run larger ones first
    #[arg(value_name = "N", allow_negative_numbers = true)]
    pub priority: i32,
}

impl PriorityArgs {
    /// As a selection and a change of it.
    pub(super) fn run(&self) -> Result<()> {
        let (head, jobs) = (self.head.clone(), vec![self.job]);
        run(&SelectionArgs { head, jobs, ..SelectionArgs::default() }, JobChange::Priority(self.priority))
    }
}

/// Changes jobs, and says which and how many.
pub(super) fn run(args: &SelectionArgs, change: JobChange) -> Result<()> {
    let request = FromUser::Change { jobs: args.selection()?, change };
    let mut changed = Vec::new();
    Client::new(&args.head)?.ask(&request, |answer| {
        if let ToUser::Changed(jobs) = answer {
            changed.extend(jobs);
        }
        Ok(())
    })?;
    let (word, is) = match change {
        JobChange::Cancel => ("cancelled", "cancelled".to_owned()),
        JobChange::Hold => ("held", "on hold".to_owned()),
        JobChange::Release => ("released", "released".to_owned()),
        JobChange::Requeue => ("requeued", "back in the queue".to_owned()),
        JobChange::Priority(priority) => ("changed", format!("of priority {priority}")),
    };
    if args.head.json {
        return say_json(&serde_json::json!({ word: changed }));
    }
    match changed.as_slice() {
        [job] => println!("job {job} is {is}"),
        jobs => println!("{} jobs are {is}: {}", jobs.len(), in_ranges(jobs)),
    }
    Ok(())
}

/// Numbers in ascending order as a short text: `3, 5-9`.
fn in_ranges(jobs: &[JobId]) -> String {
    let mut ranges: Vec<(u32, u32)> = Vec::new();
    for JobId(job) in jobs {
        match ranges.last_mut() {
            Some((_, last)) if last.checked_add(1) == Some(*job) => *last = *job,
            _ => ranges.push((*job, *job)),
        }
    }
    let text = |(first, last): &(u32, u32)| match first == last {
        true => first.to_string(),
        false => format!("{first}-{last}"),
    };
    ranges.iter().map(text).collect::<Vec<_>>().join(", ")
}

/// A node out of service, or back.
#[derive(Args, Clone, Debug)]
pub(crate) struct DrainArgs {
    #[command(flatten)]
    pub head: HeadArgs,
    /// Name of the node
    #[arg(value_name = "NODE")]
    pub node: String,
    /// Let the jobs that run there end first; meanwhile the node takes no new ones
    #[arg(long, conflicts_with = "undo")]
    pub when_idle: bool,
    /// Why, for `rota nodes` and `rota events` [default: no reason]
    #[arg(long, value_name = "TEXT", conflicts_with = "undo")]
    pub reason: Option<String>,
    /// Put the node back into service
    #[arg(long)]
    pub undo: bool,
}

/// Takes a node out of service, or back into it.
pub(super) fn drain(args: &DrainArgs) -> Result<()> {
    let service = match (args.undo, args.when_idle) {
        (true, _) => NodeService::In,
        (false, true) => NodeService::OutWhenIdle,
        (false, false) => NodeService::Out,
    };
    let node = Name::new(args.node.as_str()).map_err(|error| anyhow!("{}: {error}", args.node))?;
    let reason = Text::new(args.reason.clone().unwrap_or_default())?;
    Client::new(&args.head)?.text(&FromUser::ServiceNode { node, service, reason })?;
    if args.head.json {
        let (is_drained, when_idle) = (!args.undo, args.when_idle);
        return say_json(
            &serde_json::json!({ "node": args.node, "is_drained": is_drained, "when_idle": when_idle }),
        );
    }
    match service {
        NodeService::Out => println!("{} is out of service: its jobs move away", args.node),
        NodeService::OutWhenIdle => {
            println!("{} takes no new jobs, and is out of service when those there have ended", args.node);
        }
        NodeService::In => println!("{} is back in service", args.node),
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_is_a_number_or_two() {
        assert_eq!("5".parse(), Ok(JobRange { first: 5, last: 5 }));
        assert_eq!("5-9".parse(), Ok(JobRange { first: 5, last: 9 }));
        for wrong in ["", "9-5", "a", "5-", "-5", "1-2-3"] {
            assert!(wrong.parse::<JobRange>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn numbers_are_told_in_ranges() {
        assert_eq!(in_ranges(&[3, 5, 6, 7, 9].map(JobId)), "3, 5-7, 9");
    }
}
