//! Who may what, over QUIC with a real head: every row of the table in docs/live.md for every role, and what people could do
//! before there were roles.

use std::time::Duration;

use rota_core::ids::JobId;
use rota_core::time::Time;
use rota_transport::access::{self, RequestKind};
use rota_transport::identity::{Credentials, UserRole};
use rota_transport::message::{
    FromUser, HistoryFilter, JobChange, JobRequest, JobSelection, JobView, NodeService, PROTOCOL_VERSION,
    SignInBy, ToUser, WhichJobs,
};
use rota_transport::quic::Connector;
use rota_transport::value::{Iterations, LongText, Name, Text};

use crate::cluster::Cluster;

const PATIENCE: Duration = Duration::from_secs(60);
const SCRIPT: &str = "fn order(jobs, now) { rank(jobs.arrival) }\n";

fn text(text: &str) -> Text {
    Text::new(text).expect("a text")
}

/// Sends a request with a user's certificate, whatever the commands would have sent; the answers, or the refusal.
pub(crate) fn ask(cluster: &Cluster, user: &str, request: &FromUser) -> Result<Vec<ToUser>, String> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let asking = async {
        let folder = cluster.folder.path().join("pki/users").join(user);
        let connector =
            Connector::new(&Credentials::load(&folder).expect("credentials")).expect("a connector");
        let peer = connector.connect(cluster.address()).await.map_err(|error| error.to_string())?;
        let mut channel = peer.open().await.map_err(|error| error.to_string())?;
        channel.receiver.trust();
        channel.sender.send(request).await.map_err(|error| error.to_string())?;
        channel.sender.finish();
        let mut answers = Vec::new();
        let result = loop {
            match channel.receiver.receive::<ToUser>().await.map_err(|error| error.to_string())? {
                Some(ToUser::End) => break Ok(answers),
                Some(ToUser::Failed(why)) => break Err(why.to_string()),
                Some(answer) => answers.push(answer),
                None => break Err("the stream ended".into()),
            }
        };
        // As commands do: the head counts connections.
        peer.close("done");
        connector.leave().await;
        result
    };
    runtime.block_on(async { tokio::time::timeout(PATIENCE, asking).await.expect("an answer in time") })
}

fn a_job() -> JobRequest {
    let mut job = JobRequest::emulated(1);
    job.work = Iterations::new(1e6).expect("a count");
    job
}

fn submit(cluster: &Cluster, user: &str, job: JobRequest) -> Result<JobId, String> {
    let answers = ask(cluster, user, &FromUser::Submit { jobs: vec![job], key: rand::random() })?;
    match answers.as_slice() {
        [ToUser::Submitted(ids)] => Ok(ids[0]),
        other => panic!("{other:?}"),
    }
}

fn jobs(cluster: &Cluster, user: &str) -> Vec<JobView> {
    let answers = ask(cluster, user, &FromUser::Jobs { which: WhichJobs::All }).expect("listed");
    let views = answers.into_iter().map(|answer| match answer {
        ToUser::Jobs(views) => views,
        other => panic!("{other:?}"),
    });
    views.flatten().collect()
}

/// A request of a kind about a job of somebody else, who is `owner`.
fn about(kind: RequestKind, job: JobId) -> FromUser {
    let script = || vec![(text("mine.rhai"), LongText::new(SCRIPT).expect("short"))];
    match kind {
        RequestKind::Status => FromUser::Status { protocol: PROTOCOL_VERSION },
        RequestKind::Submit => {
            let mut foreign = a_job();
            foreign.tenant = text("somebody-else");
            FromUser::Submit { jobs: vec![foreign], key: rand::random() }
        }
        RequestKind::Cancel => FromUser::Cancel { jobs: vec![job] },
        RequestKind::Jobs => FromUser::Jobs { which: WhichJobs::These(vec![job]) },
        RequestKind::Nodes => FromUser::Nodes,
        RequestKind::Logs => FromUser::Logs { job, offset: 0 },
        RequestKind::Drain => {
            FromUser::Drain { node: Name::new("nowhere").expect("a name"), is_drained: true }
        }
        RequestKind::Events => FromUser::Events { from: 0 },
        RequestKind::SetPolicy => FromUser::SetPolicy { policy: text("fifo+proportional"), set: Vec::new() },
        RequestKind::ReloadPolicy => FromUser::ReloadPolicy,
        RequestKind::Explain => FromUser::Explain { job },
        RequestKind::WhatIf => FromUser::WhatIf { policy: text("las+tune"), set: Vec::new() },
        RequestKind::Journal => FromUser::Journal,
        RequestKind::Shutdown => FromUser::Shutdown,
        RequestKind::Rules => FromUser::Rules,
        RequestKind::FastForward => FromUser::FastForward { until: Time(1), n_iterations: 1 },
        RequestKind::StopAll => FromUser::StopAll,
        RequestKind::SetPolicyText => {
            FromUser::SetPolicyText { policy: text("mine.rhai"), set: Vec::new(), texts: script() }
        }
        RequestKind::WhatIfText => {
            FromUser::WhatIfText { policy: text("mine.rhai"), set: Vec::new(), texts: script() }
        }
        RequestKind::CancelSome => change(job, JobChange::Cancel),
        RequestKind::Hold => change(job, JobChange::Hold),
        RequestKind::Release => change(job, JobChange::Release),
        RequestKind::Requeue => change(job, JobChange::Requeue),
        RequestKind::Priority => change(job, JobChange::Priority(1)),
        RequestKind::ServiceNode => FromUser::ServiceNode {
            node: Name::new("nowhere").expect("a name"),
            service: NodeService::OutWhenIdle,
            reason: text("a new fan"),
        },
        RequestKind::History => FromUser::History { filter: HistoryFilter::default() },
        RequestKind::GiveUp => FromUser::GiveUp { node: Name::new("nowhere").expect("a name") },
        RequestKind::SignIn => FromUser::SignIn { by: SignInBy::Link },
        RequestKind::Forecast => FromUser::Forecast { jobs: vec![job] },
    }
}

fn change(job: JobId, change: JobChange) -> FromUser {
    FromUser::Change { jobs: JobSelection::these([job]), change }
}

/// Whether an answer shows anything of a job.
fn shows(answers: &[ToUser], job: JobId) -> bool {
    answers.iter().any(|answer| match answer {
        ToUser::Jobs(views) => views.iter().any(|view| view.id == job),
        ToUser::Nodes(views) => views.iter().any(|view| view.jobs.contains(&job)),
        ToUser::Events(views) => {
            views.iter().any(|view| view.text.as_str().starts_with(&format!("job {job} ")))
        }
        ToUser::Log { .. } | ToUser::Text(_) | ToUser::End => true,
        ToUser::Changed(jobs) => jobs.contains(&job),
        ToUser::History(views) => views.iter().any(|view| view.id == job),
        ToUser::Forecast(starts) => starts.iter().any(|start| start.job == job),
        ToUser::Status(_) | ToUser::Submitted(_) | ToUser::Failed(_) | ToUser::SignIn(_) => false,
    })
}

/// One cell of the table, tried: what the role gets of a request about a job of another person.
fn try_cell(cluster: &Cluster, kind: RequestKind, user: &str, says: &str, of_others: JobId) {
    let before = jobs(cluster, "ada").len();
    let result = ask(cluster, user, &about(kind, of_others));
    let what = format!("{kind:?} by {user}, the table says {says}: {result:?}");
    match says {
        "no" => {
            let refusal = result.expect_err(&what);
            assert!(refusal.contains(&format!("{user} may not {}", kind.rule().action)), "{what}");
        }
        "own jobs" => match kind {
            RequestKind::Nodes | RequestKind::Events | RequestKind::History => {
                assert!(!shows(&result.expect(&what), of_others), "{what}")
            }
            _ => assert!(result.expect_err(&what).contains("you have no job of this number"), "{what}"),
        },
        "own jobs, up to 0" => {
            assert!(result.expect_err(&what).contains("only operators"), "{what}");
            let error = ask(cluster, user, &change(of_others, JobChange::Priority(0))).expect_err(&what);
            assert!(error.contains("you have no job of this number"), "{error}");
        }
        "all jobs" => match kind {
            RequestKind::Cancel => assert!(result.is_ok(), "{what}"),
            RequestKind::History => assert!(!result.expect(&what).is_empty(), "{kind:?}"),
            // Whether a job has a start within the horizon is the forecast's business.
            RequestKind::Forecast => assert!(result.is_ok(), "{what}"),
            // The job is not on hold, or does not run; the request passed the table.
            RequestKind::Release | RequestKind::Requeue => {
                assert!(result.expect_err(&what).contains("none of the jobs named"), "{what}");
            }
            _ => assert!(shows(&result.expect(&what), of_others), "{what}"),
        },
        "own tenants" => {
            assert!(result.expect_err(&what).contains("may not submit for the tenant"), "{what}");
            assert_eq!(jobs(cluster, "ada").len(), before, "{what}");
        }
        "any tenant" => {
            assert!(matches!(result.expect(&what).as_slice(), [ToUser::Submitted(_)]), "{kind:?}")
        }
        "yes" => match kind {
            // This head was not started for it; the request passed the table.
            RequestKind::FastForward => {
                assert!(result.expect_err(&what).contains("does not skip time"), "{what}");
            }
            // This head has no page; the request passed the table.
            RequestKind::SignIn => assert!(result.expect_err(&what).contains("no web page"), "{what}"),
            // There is no node of this name; the request passed the table.
            RequestKind::Drain | RequestKind::ServiceNode | RequestKind::GiveUp => {
                assert!(result.expect_err(&what).contains("no such node"), "{what}");
            }
            _ => assert!(result.is_ok(), "{what}"),
        },
        other => panic!("the table says {other}, which nothing tries"),
    }
}

/// The rows of the table as the document has them.
fn documented() -> Vec<Vec<String>> {
    let text =
        std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/live.md")).expect("the document");
    let lines = text.lines().skip_while(|line| !line.starts_with("| what | command |")).skip(2);
    let rows = lines.take_while(|line| line.starts_with('|'));
    rows.map(|row| row.trim_matches('|').split('|').map(|cell| cell.trim().to_owned()).collect()).collect()
}

#[test]
fn every_line_of_the_table_in_the_documents_holds_for_every_role() {
    let in_code = access::table();
    let rows = documented();
    let text =
        std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/live.md")).expect("the document");
    assert!(text.contains(&in_code), "docs/live.md needs this table:\n{in_code}");
    assert_eq!(rows.len(), RequestKind::ALL.len());
    // What ends the head comes last, each with a head of its own.
    let is_end = |kind: RequestKind| matches!(kind, RequestKind::Shutdown | RequestKind::StopAll);
    let mut cluster = Cluster::start(1, 1, &["--policy", "fifo+proportional"]);
    for (role, name) in UserRole::ALL {
        cluster.issue(&format!("{name}-user"), name);
        assert_eq!(UserRole::of_name(name), Some(role));
    }
    let running = submit(&cluster, "ada", a_job()).expect("submitted");
    for pass in [false, true] {
        cluster.until("ada's first job runs", |cluster| cluster.jobs()[0]["state"] == "running");
        for (row, kind) in rows.iter().zip(RequestKind::ALL).filter(|(_, kind)| is_end(**kind) == pass) {
            for (column, (_, role)) in UserRole::ALL.iter().enumerate() {
                // The others wait for the only GPU, so that each can be cancelled.
                let of_others = match kind {
                    RequestKind::Nodes | RequestKind::Logs => running,
                    _ => submit(&cluster, "ada", a_job()).expect("submitted"),
                };
                try_cell(&cluster, *kind, &format!("{role}-user"), &row[column + 2], of_others);
                if pass && row[column + 2] == "yes" {
                    cluster.kill_head();
                    cluster.start_head();
                    cluster.until("the next head is ready", |cluster| cluster.status()["is_ready"] == true);
                }
            }
        }
    }
    let events = cluster.rota(&["events"]);
    for act in ["admin-user (admin) ended the head", "admin-user (admin) stopped all jobs and the head"] {
        assert!(events.contains(act), "{act}:\n{events}");
    }
    assert!(events.contains("operate-user (operate) had the policy's scripts read again"), "{events}");
}

#[test]
fn people_see_cancel_and_read_their_own_jobs_and_operators_everybodys() {
    let cluster = Cluster::start(1, 4, &["--round", "1s"]);
    for (user, role) in [("bob", "submit"), ("eve", "submit"), ("olga", "operate")] {
        cluster.issue(user, role);
    }
    let run = [
        "submit",
        "--gpus",
        "1",
        "--time",
        "1h",
        "--name",
        "secret-plan",
        "--",
        "/bin/sh",
        "-c",
        "echo bobs; exec sleep 600",
    ];
    assert_eq!(cluster.try_rota_as("bob", &run).expect("bob submits"), "job 0\n");
    assert_eq!(cluster.try_rota_as("eve", &run).expect("eve submits"), "job 1\n");
    cluster.until("both run", |cluster| cluster.jobs().iter().all(|job| job["state"] == "running"));
    for (user, own, other) in [("bob", "0", "1"), ("eve", "1", "0")] {
        let listed = cluster.try_rota_as(user, &["jobs", "--all"]).expect("listed");
        assert!(
            listed.contains(&format!("\n {own} ")) && !listed.contains(&format!("\n {other} ")),
            "{listed}"
        );
        assert_eq!(cluster.try_rota_as(user, &["logs", own]).expect("own output"), "bobs\n");
        let nodes = cluster.try_rota_as(user, &["nodes", "--json"]).expect("nodes");
        assert!(nodes.contains(&format!("\"jobs\":[{own}]")), "{nodes}");
        for refused in [&["logs", other], &["cancel", other], &["explain", other], &["jobs", other]] {
            let error = cluster.try_rota_as(user, refused).expect_err("not theirs");
            assert!(error.contains("you have no job of this number"), "{refused:?}: {error}");
        }
        let events = cluster.try_rota_as(user, &["events"]).expect("events");
        assert!(
            events.contains(&format!("job {own} ")) && !events.contains(&format!("job {other} ")),
            "{events}"
        );
        assert!(!events.contains("left-out") && !events.contains("node0 joined"), "{events}");
    }
    // A number that nobody has is refused in the same words as one of another person.
    let none = cluster.try_rota_as("bob", &["logs", "77"]).expect_err("nobody's");
    let others = cluster.try_rota_as("bob", &["logs", "1"]).expect_err("eve's");
    assert_eq!(none.replace("77", "1"), others);
    // A list with one foreign job cancels none.
    cluster.try_rota_as("bob", &["cancel", "0", "1"]).expect_err("one is eve's");
    assert!(cluster.jobs().iter().all(|job| job["state"] == "running"));
    assert_eq!(cluster.try_rota_as("olga", &["logs", "0"]).expect("an operator reads"), "bobs\n");
    cluster.try_rota_as("olga", &["cancel", "0"]).expect("an operator cancels");
    cluster.try_rota_as("eve", &["cancel", "1"]).expect("her own");
    let events = cluster.rota(&["events"]);
    assert!(
        events.contains("job 0 was cancelled by olga") && events.contains("job 1 was cancelled by eve"),
        "{events}"
    );
    let seen = cluster.try_rota_as("bob", &["events"]).expect("events");
    assert!(seen.contains("job 0 was cancelled by olga"), "{seen}");
}

#[test]
fn the_file_of_roles_counts_from_the_moment_it_is_written_and_a_bad_one_changes_nothing() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("roles");
    std::fs::write(&file, "bob submit vision\n").expect("written");
    let path = file.display().to_string();
    let cluster = Cluster::start(0, 1, &["--roles", &path, "--quota", "vision=1"]);
    cluster.issue("bob", "admin");
    cluster.issue("dan", "submit");
    let drain = ["drain", "node0"];
    let is_operator = |user: &str| {
        let error = cluster.try_rota_as(user, &drain).expect_err("no such node in any case");
        error.contains("no such node")
    };
    assert!(!is_operator("bob"), "the file narrows what the certificate says");
    std::fs::write(&file, "bob - vision\ndan operate\n").expect("written");
    cluster.until("the file is read again", |_| is_operator("bob") && is_operator("dan"));
    std::fs::write(&file, "dan none\nbob boss\n").expect("written");
    cluster.until("the error is in the journal", |cluster| {
        cluster.rota(&["events"]).contains("line 2: the role must be")
    });
    assert!(
        is_operator("dan") && !cluster.rota(&["events"]).contains("boss"),
        "the roles before stay in force"
    );
    std::fs::write(&file, "dan none\n").expect("written");
    cluster.until("dan is locked out", |cluster| {
        cluster.try_rota_as("dan", &["jobs"]).is_err_and(|error| error.contains("dan has no role"))
    });
}

#[test]
fn a_tenants_quota_is_not_escaped_by_calling_oneself_another() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("roles");
    std::fs::write(&file, "bob submit vision,nlp\nolga operate\n").expect("written");
    let path = file.display().to_string();
    let cluster = Cluster::start(1, 4, &["--round", "1s", "--roles", &path, "--quota", "vision=1"]);
    for user in ["bob", "dan", "olga"] {
        cluster.issue(user, "submit");
    }
    let run = |user: &str, more: &[&str]| {
        let args =
            [&["submit", "--gpus", "1", "--time", "1h"][..], more, &["--", "/bin/sleep", "600"]].concat();
        cluster.try_rota_as(user, &args)
    };
    for (user, tenant) in [("bob", "bob"), ("bob", "anything"), ("dan", "vision"), ("dan", "Dan")] {
        let error = run(user, &["--tenant", tenant]).expect_err("not theirs");
        assert!(error.contains(&format!("{user} may not submit for the tenant `{tenant}`")), "{error}");
    }
    run("bob", &[]).expect("for vision");
    run("bob", &["--tenant", "vision"]).expect("for vision");
    run("dan", &["--tenant", "dan"]).expect("for himself");
    run("olga", &["--tenant", "vision"]).expect("an operator submits for others");
    cluster.until("dan's job and one of vision run", |cluster| {
        let running = |user: &str| {
            cluster.jobs().iter().filter(|job| job["user"] == user && job["state"] == "running").count()
        };
        running("dan") == 1 && running("bob") + running("olga") == 1
    });
    let rounds = cluster.status()["n_rounds"].as_u64();
    // They take turns: while one is stopped for another, none of the three runs.
    cluster.until("two run in a later round", |cluster| {
        let running = cluster.jobs().iter().filter(|job| job["state"] == "running").count();
        assert!(running <= 2, "vision's quota holds for all three of its jobs: {running} run");
        running == 2 && cluster.status()["n_rounds"].as_u64() > rounds.map(|n| n + 2)
    });
}

#[test]
fn no_request_makes_the_head_read_a_file_and_texts_are_sent_and_survive_a_restart() {
    let folder = tempfile::tempdir().expect("a folder");
    let secret = folder.path().join("shadow");
    std::fs::write(&secret, "root:$6$saltsalt:19000\n").expect("written");
    let rhai = folder.path().join("shadow.rhai");
    std::fs::copy(&secret, &rhai).expect("copied");
    let mut cluster = Cluster::start(0, 1, &[]);
    for path in
        [secret.display().to_string(), rhai.display().to_string(), "/etc/passwd".into(), "../x.rhai".into()]
    {
        for request in [
            FromUser::WhatIf { policy: text(&path), set: Vec::new() },
            FromUser::SetPolicy { policy: text(&path), set: Vec::new() },
            FromUser::SetPolicy { policy: text(&format!("las+{path}")), set: Vec::new() },
        ] {
            let error = ask(&cluster, "ada", &request).expect_err("no path is read");
            assert!(error.contains("reads no paths") && !error.contains("root"), "{error}");
        }
    }
    // The command reads a file with its user's rights, or says that it cannot.
    let error = cluster.try_rota(&["whatif", "-p", "/etc/shadow"]).expect_err("no script");
    assert!(error.contains("ends in .rhai"), "{error}");
    let mine = folder.path().join("mine.rhai");
    std::fs::write(&mine, SCRIPT).expect("written");
    let mine_path = mine.display().to_string();
    assert!(cluster.rota(&["whatif", "-p", &mine_path]).contains("nothing would change"));
    cluster.rota(&["policy", "set", &format!("{mine_path}+tune")]);
    assert_eq!(cluster.status()["policy"], "mine.rhai+tune");
    std::fs::remove_file(&mine).expect("removed");
    cluster.rota(&["policy", "reload"]);
    cluster.kill_head();
    cluster.start_head();
    cluster.until("the head is back with the text of its journal", |cluster| {
        cluster.status()["policy"] == "mine.rhai+tune"
    });
    assert_eq!(cluster.status()["trouble"], "");
    let replayed = cluster.rota(&["replay", &cluster.path("head"), "--json"]);
    assert!(replayed.contains("\"first_difference\":null") || replayed.contains("equal"), "{replayed}");
}

#[test]
fn control_characters_are_refused_in_names_and_never_shown() {
    let cluster = Cluster::start(0, 1, &[]);
    for bad in ["a\u{1b}[2J", "a\u{9b}2J", "a\rb", "a\nb", "a\u{202e}b", "a\u{7f}"] {
        let set: [fn(&mut JobRequest, Text); 3] =
            [|job, bad| job.name = bad, |job, bad| job.tenant = bad, |job, bad| job.gpu_type = bad];
        for set in set {
            let mut job = a_job();
            set(&mut job, text(bad));
            let error = submit(&cluster, "ada", job).expect_err("refused");
            assert!(error.contains("control characters"), "{bad:?}: {error}");
        }
        // A model that is not there is refused in words that are shown; so is a policy.
        let error = cluster
            .try_rota(&["submit", "--emulate", "--iterations", "9", "--model", bad])
            .expect_err("refused");
        assert!(!error.trim_end().chars().any(|c| c.is_control() && c != '\n'), "{error:?}");
        let error = cluster.try_rota(&["policy", "set", bad]).expect_err("refused");
        assert!(!error.trim_end().chars().any(|c| c.is_control() && c != '\n'), "{error:?}");
    }
}

#[test]
fn a_revoked_person_loses_the_connection_they_have() {
    let cluster = Cluster::start(0, 1, &[]);
    cluster.issue("eve", "operate");
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .expect("a runtime");
    let peer = runtime.block_on(async {
        let folder = cluster.folder.path().join("pki/users/eve");
        let connector =
            Connector::new(&Credentials::load(&folder).expect("credentials")).expect("a connector");
        let peer = connector.connect(cluster.address()).await.expect("connected");
        let mut channel = peer.open().await.expect("a stream");
        channel.sender.send(&FromUser::Nodes).await.expect("sent");
        assert!(channel.receiver.receive::<ToUser>().await.expect("an answer").is_some());
        (connector, peer)
    });
    cluster.rota(&["pki", "revoke", "--pki", &cluster.path("pki"), "--user", "eve"]);
    let why =
        runtime.block_on(async { tokio::time::timeout(PATIENCE, peer.1.closed()).await.expect("in time") });
    assert!(why.contains("revoked"), "{why}");
    assert!(ask(&cluster, "eve", &FromUser::Nodes).is_err(), "and does not get another");
}
