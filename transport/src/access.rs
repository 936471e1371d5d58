//! Who may ask the head for what: one rule for each kind of request.
//!
//! The head asks [`FromUser::kind`] and [`RequestKind::rule`] before it looks at anything else in a request. The table in
//! `docs/live.md` is [`table`], and a test walks through it over QUIC. What a person's role is, and which jobs are theirs,
//! only the head knows.

use crate::identity::UserRole;
use crate::message::{FromUser, JobChange};

/// What a person with the least role gets of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reach {
    /// All of it, as everybody who may ask.
    Whole,
    /// Only what belongs to them; from `operate` on, everybody's.
    Own {
        /// What is theirs, as the table names it.
        theirs: &'static str,
        /// What operators get, as the table names it.
        all: &'static str,
    },
}

/// A rule of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rule {
    /// The least role that may ask.
    pub least: UserRole,
    /// How much of it a person may have.
    pub reach: Reach,
    /// What it is, as in `ada may not …`.
    pub action: &'static str,
    /// The command that asks for it.
    pub command: &'static str,
}

macro_rules! kinds {
    ($($(#[$doc:meta])* $kind:ident: $pattern:pat,)*) => {
        /// The kinds of requests, in the order of the messages.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum RequestKind {
            $($(#[$doc])* $kind,)*
        }

        impl RequestKind {
            /// All of them.
            pub const ALL: &[RequestKind] = &[$(RequestKind::$kind,)*];
        }

        impl FromUser {
            /// Which kind it is.
            pub fn kind(&self) -> RequestKind {
                match self {
                    $($pattern => RequestKind::$kind,)*
                }
            }
        }
    };
}

kinds! {
    /// The cluster in numbers.
    Status: FromUser::Status { .. },
    /// New jobs.
    Submit: FromUser::Submit { .. },
    /// Jobs to be cancelled.
    Cancel: FromUser::Cancel { .. },
    /// A list of jobs.
    Jobs: FromUser::Jobs { .. },
    /// A list of nodes.
    Nodes: FromUser::Nodes,
    /// A job's output.
    Logs: FromUser::Logs { .. },
    /// A node out of service, or back.
    Drain: FromUser::Drain { .. },
    /// What happened.
    Events: FromUser::Events { .. },
    /// Another policy, by name.
    SetPolicy: FromUser::SetPolicy { .. },
    /// The policy's files again.
    ReloadPolicy: FromUser::ReloadPolicy,
    /// Why a job waits.
    Explain: FromUser::Explain { .. },
    /// What another policy would do, by name.
    WhatIf: FromUser::WhatIf { .. },
    /// The whole journal.
    Journal: FromUser::Journal,
    /// The head's end.
    Shutdown: FromUser::Shutdown,
    /// What decisions depend on.
    Rules: FromUser::Rules,
    /// A jump in time.
    FastForward: FromUser::FastForward { .. },
    /// The end of everything that runs, and of the head.
    StopAll: FromUser::StopAll,
    /// Another policy, with its text.
    SetPolicyText: FromUser::SetPolicyText { .. },
    /// What another policy would do, with its text.
    WhatIfText: FromUser::WhatIfText { .. },
    /// Jobs to be cancelled, by number, range, array, name or user.
    CancelSome: FromUser::Change { change: JobChange::Cancel, .. },
    /// Jobs to be kept from running.
    Hold: FromUser::Change { change: JobChange::Hold, .. },
    /// Jobs that may run again.
    Release: FromUser::Change { change: JobChange::Release, .. },
    /// Jobs to be stopped and queued again.
    Requeue: FromUser::Change { change: JobChange::Requeue, .. },
    /// Jobs with another priority.
    Priority: FromUser::Change { change: JobChange::Priority(_), .. },
    /// A node out of service with a reason, at once or when it is idle; or back.
    ServiceNode: FromUser::ServiceNode { .. },
    /// Jobs that have ended.
    History: FromUser::History { .. },
    /// A node that cannot be reached, given up.
    GiveUp: FromUser::GiveUp { .. },
    /// A way into the page.
    SignIn: FromUser::SignIn { .. },
    /// When jobs will start.
    Forecast: FromUser::Forecast { .. },
}

impl RequestKind {
    /// Who may ask for it.
    pub fn rule(self) -> Rule {
        use UserRole::{Admin, Operate, Submit};
        const JOBS: Reach = Reach::Own { theirs: "own jobs", all: "all jobs" };
        const UP_TO_0: Reach = Reach::Own { theirs: "own jobs, up to 0", all: "all jobs" };
        const TENANTS: Reach = Reach::Own { theirs: "own tenants", all: "any tenant" };
        let (least, reach, action, command) = match self {
            RequestKind::Status => (Submit, Reach::Whole, "see the cluster in numbers", "rota top"),
            RequestKind::Submit => (Submit, TENANTS, "submit jobs", "rota submit"),
            RequestKind::Cancel => (Submit, JOBS, "cancel jobs", "rota cancel"),
            RequestKind::Jobs => (Submit, JOBS, "list jobs", "rota jobs"),
            RequestKind::Nodes => (Submit, JOBS, "list nodes and the jobs on them", "rota nodes"),
            RequestKind::Logs => (Submit, JOBS, "read the output of jobs", "rota logs"),
            RequestKind::Drain => (Operate, Reach::Whole, "drain nodes", "rota drain"),
            RequestKind::Events => (Submit, JOBS, "read the events", "rota events"),
            RequestKind::SetPolicy => (Operate, Reach::Whole, "choose the policy", "rota policy set"),
            RequestKind::ReloadPolicy => (Operate, Reach::Whole, "reload the policy", "rota policy reload"),
            RequestKind::Explain => (Submit, JOBS, "ask why a job waits", "rota explain"),
            RequestKind::WhatIf => (Operate, Reach::Whole, "try another policy", "rota whatif"),
            RequestKind::Journal => (Operate, Reach::Whole, "read the whole journal", "rota deploy"),
            RequestKind::Shutdown => (Admin, Reach::Whole, "end the head", "-"),
            RequestKind::Rules => (Operate, Reach::Whole, "read the head's rules", "rota deploy"),
            RequestKind::FastForward => (Operate, Reach::Whole, "skip time", "rota deploy --fast-forward"),
            RequestKind::StopAll => (Admin, Reach::Whole, "stop all jobs and the head", "rota up --stop"),
            RequestKind::SetPolicyText => {
                (Operate, Reach::Whole, "choose a policy and send its text", "rota policy set FILE")
            }
            RequestKind::WhatIfText => {
                (Operate, Reach::Whole, "try a policy and send its text", "rota whatif -p FILE")
            }
            RequestKind::CancelSome => {
                (Submit, JOBS, "cancel jobs by range, array, name or user", "rota cancel 5-9 --name N")
            }
            RequestKind::Hold => (Submit, JOBS, "hold jobs", "rota hold"),
            RequestKind::Release => (Submit, JOBS, "release jobs", "rota release"),
            RequestKind::Requeue => (Submit, JOBS, "requeue jobs", "rota requeue"),
            RequestKind::Priority => (Submit, UP_TO_0, "set the priority of jobs", "rota priority"),
            RequestKind::ServiceNode => {
                (Operate, Reach::Whole, "drain nodes with a reason", "rota drain --when-idle --reason R")
            }
            RequestKind::History => (Submit, JOBS, "read the history of jobs", "rota history"),
            RequestKind::GiveUp => {
                (Operate, Reach::Whole, "give up a node that cannot be reached", "rota give-up")
            }
            RequestKind::SignIn => (Submit, Reach::Whole, "sign in to the web page", "rota web login"),
            RequestKind::Forecast => (Submit, JOBS, "ask when jobs will start", "rota jobs"),
        };
        Rule { least, reach, action, command }
    }
}

impl Rule {
    /// What a role gets, as the table says it.
    pub fn grants(&self, role: UserRole) -> &'static str {
        match self.reach {
            _ if role < self.least => "no",
            Reach::Whole => "yes",
            Reach::Own { theirs, .. } if role < UserRole::Operate => theirs,
            Reach::Own { all, .. } => all,
        }
    }
}

/// The table of the documents, in Markdown.
pub fn table() -> String {
    let mut text = String::from("| what | command | submit | operate | admin |\n|---|---|---|---|---|\n");
    for kind in RequestKind::ALL {
        let rule = kind.rule();
        let command = if rule.command == "-" { "-".to_owned() } else { format!("`{}`", rule.command) };
        text.push_str(&format!("| {} | {command} |", rule.action));
        for (role, _) in UserRole::ALL {
            text.push_str(&format!(" {} |", rule.grants(role)));
        }
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_higher_role_never_gets_less() {
        for kind in RequestKind::ALL {
            let rule = kind.rule();
            let granted = UserRole::ALL.map(|(role, _)| rule.grants(role) != "no");
            assert!(granted.is_sorted(), "{kind:?}: {granted:?}");
            assert_eq!(rule.grants(UserRole::Admin), rule.grants(UserRole::Admin.max(rule.least)));
        }
    }

    #[test]
    fn the_least_role_changes_nothing_but_its_own_jobs() {
        let open: Vec<_> =
            RequestKind::ALL.iter().filter(|kind| kind.rule().least == UserRole::Submit).copied().collect();
        use RequestKind::{
            Cancel, CancelSome, Events, Explain, Forecast, History, Hold, Jobs, Logs, Nodes, Priority,
            Release, Requeue, SignIn, Status, Submit,
        };
        let own = [
            Status, Submit, Cancel, Jobs, Nodes, Logs, Events, Explain, CancelSome, Hold, Release, Requeue,
            Priority, History, SignIn, Forecast,
        ];
        assert_eq!(open, own);
    }
}
