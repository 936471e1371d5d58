//! The head's page and API as browsers and programs meet them: real processes, plain HTTP on loopback.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::FAST;
use crate::cluster::Cluster;

/// A head with a page, and how somebody speaks to it.
pub(crate) struct Page {
    pub(crate) cluster: Cluster,
    pub(crate) address: SocketAddr,
}

/// An answer.
pub(crate) struct Answer {
    pub(crate) status: u16,
    headers: Vec<(String, String)>,
    pub(crate) body: String,
}

impl Answer {
    fn json(&self) -> Value {
        serde_json::from_str(&self.body)
            .unwrap_or_else(|error| panic!("{error}: {} {}", self.status, self.body))
    }

    fn header(&self, name: &str) -> &str {
        self.headers.iter().find(|(known, _)| known == name).map_or("", |(_, value)| value)
    }
}

impl Page {
    pub(crate) fn start(n_agents: usize, n_gpus: u32, more: &[&str]) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("an address");
        drop(listener);
        let web = address.to_string();
        let args = [&FAST[..], &["--web", &web], more].concat();
        Page { cluster: Cluster::start(n_agents, n_gpus, &args), address }
    }

    pub(crate) fn token(&self, user: &str) -> String {
        let token = self.cluster.try_rota_as(user, &["web", "login", "--token"]).expect("signed in");
        token.trim().to_owned()
    }

    /// Sends a request as it is written.
    pub(crate) fn raw(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> Answer {
        let mut stream = TcpStream::connect(self.address).expect("connected");
        stream.set_read_timeout(Some(Duration::from_secs(120))).expect("set");
        let mut text = format!("{method} {path} HTTP/1.1\r\nConnection: close\r\n");
        if !headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("host")) {
            text.push_str(&format!("Host: {}\r\n", self.address));
        }
        headers.iter().for_each(|(name, value)| text.push_str(&format!("{name}: {value}\r\n")));
        if !body.is_empty() {
            text.push_str(&format!("Content-Length: {}\r\n", body.len()));
        }
        stream.write_all(format!("{text}\r\n{body}").as_bytes()).expect("sent");
        let mut bytes = Vec::new();
        stream.read_to_end(&mut bytes).expect("an answer");
        parse(&String::from_utf8_lossy(&bytes))
    }

    pub(crate) fn get(&self, token: &str, path: &str) -> Answer {
        self.raw("GET", path, &[("Authorization", &format!("Bearer {token}"))], "")
    }

    pub(crate) fn post(&self, token: &str, path: &str, body: &Value) -> Answer {
        let bearer = format!("Bearer {token}");
        let headers = [("Authorization", bearer.as_str()), ("Content-Type", "application/json")];
        self.raw("POST", path, &headers, &body.to_string())
    }

    /// What a good answer says.
    pub(crate) fn see(&self, token: &str, path: &str) -> Value {
        let answer = self.get(token, path);
        assert_eq!(answer.status, 200, "{path}: {}", answer.body);
        answer.json()
    }

    pub(crate) fn until(&self, what: &str, mut holds: impl FnMut() -> bool) {
        let limit = Instant::now() + Duration::from_secs(240);
        while !holds() {
            assert!(Instant::now() < limit, "timed out waiting for: {what}\n{}", self.cluster.head_log());
            std::thread::sleep(Duration::from_millis(100));
        }
    }
}

fn parse(text: &str) -> Answer {
    let (head, body) = text.split_once("\r\n\r\n").unwrap_or((text, ""));
    let mut lines = head.lines();
    let status = lines.next().and_then(|line| line.split(' ').nth(1)).and_then(|code| code.parse().ok());
    let headers: Vec<(String, String)> = lines
        .filter_map(|line| line.split_once(": "))
        .map(|(name, value)| (name.to_ascii_lowercase(), value.to_owned()))
        .collect();
    let is_chunked = headers.iter().any(|(name, value)| name == "transfer-encoding" && value == "chunked");
    let body = if is_chunked { unchunked(body) } else { body.to_owned() };
    Answer { status: status.unwrap_or(0), headers, body }
}

fn unchunked(mut rest: &str) -> String {
    let mut whole = String::new();
    while let Some((length, after)) = rest.split_once("\r\n") {
        let length = usize::from_str_radix(length.trim(), 16).unwrap_or(0);
        let Some(piece) = after.get(..length).filter(|_| length > 0) else { break };
        whole.push_str(piece);
        rest = after.get(length + 2..).unwrap_or("");
    }
    whole
}

#[test]
fn nobody_gets_in_without_a_link_and_a_link_works_once_for_one_browser() {
    let page = Page::start(1, 2, &[]);
    let status = |path: &str| page.raw("GET", path, &[], "").status;
    assert_eq!(["/api/v1/status", "/metrics", "/api/v1/stream", "/api/none"].map(status), [401; 4]);
    assert_eq!(["/healthz", "/readyz", "/"].map(status), [200, 200, 303]);
    let refused = page.raw("GET", "/api/v1/status", &[], "").json();
    assert_eq!(refused["error"]["code"], "unauthorized");
    let rebound = page.raw("GET", "/", &[("Host", "rebound.example:80")], "");
    assert_eq!(rebound.status, 403);
    let link = page.cluster.rota(&["web", "login"]);
    let path = link.trim().split_once(&page.address.to_string()).expect("its address").1.to_owned();
    let entered = page.raw("GET", &path, &[], "");
    assert_eq!((entered.status, entered.header("location")), (303, "/live.html"), "{}", entered.body);
    let cookie = entered.header("set-cookie");
    assert!(cookie.contains("HttpOnly") && cookie.contains("SameSite=Strict"), "{cookie}");
    assert_eq!(page.raw("GET", &path, &[], "").status, 403, "used up");
    let cookie = cookie.split(';').next().expect("a cookie").to_owned();
    let me = page.raw("GET", "/api/v1/me", &[("Cookie", &cookie)], "");
    assert!(me.header("content-security-policy").starts_with("default-src 'none'"), "{:?}", me.headers);
    let me = me.json();
    assert_eq!((&me["user"], &me["role"]), (&json!("ada"), &json!("admin")), "{me}");
    let csrf = me["csrf"].as_str().expect("a secret").to_owned();
    let origin = format!("http://{}", page.address);
    let body = json!({"jobs": [{"emulate": true, "time_s": 60}]}).to_string();
    let submit = |headers: &[(&str, &str)]| {
        let own = [("Cookie", cookie.as_str()), ("Content-Type", "application/json")];
        page.raw("POST", "/api/v1/jobs", &[&own, headers].concat(), &body).status
    };
    let token = ("X-Rota-Csrf", csrf.as_str());
    assert_eq!(submit(&[]), 403, "another page may have made the browser ask");
    assert_eq!(submit(&[("Origin", &origin)]), 403, "without the session's secret");
    assert_eq!(submit(&[("Origin", "http://evil.example"), token]), 403);
    assert_eq!(submit(&[token]), 403, "without an origin");
    assert_eq!(submit(&[("Origin", &origin), token]), 201);
    let leave = [("Cookie", cookie.as_str()), ("Origin", &origin), token];
    assert_eq!(page.raw("POST", "/api/v1/logout", &leave, "").status, 204);
    assert_eq!(page.raw("GET", "/api/v1/me", &[("Cookie", &cookie)], "").status, 401, "signed out");
}

#[test]
fn a_program_follows_a_job_from_its_submission_to_its_end() {
    let page = Page::start(2, 4, &[]);
    let token = page.token("ada");
    let job = json!({"name": "<script>alert(1)</script>", "model": "res50", "gpus": 2, "work": 400, "emulate": true});
    let submission = json!({"jobs": [job, {"gpus": 8, "time_s": 360000, "emulate": true, "name": "wide"},
        {"gpus": 8, "time_s": 360000, "emulate": true, "name": "last"}], "key": 7});
    let submitted = page.post(&token, "/api/v1/jobs", &submission);
    assert_eq!((submitted.status, submitted.json()), (201, json!({"ids": [0, 1, 2]})));
    assert_eq!(page.post(&token, "/api/v1/jobs", &submission).json(), json!({"ids": [0, 1, 2]}), "not twice");
    page.until("the first runs", || page.see(&token, "/api/v1/jobs/0")["state"] == "running");
    let running = page.see(&token, "/api/v1/jobs/0");
    assert_eq!(running["name"], "<script>alert(1)</script>");
    assert_eq!(running["placement"][0]["gpus"].as_array().map(Vec::len), Some(2), "{running}");
    assert_eq!(running["request"]["launcher"], "emulated");
    let held: Vec<_> = page.see(&token, "/api/v1/nodes")["items"]
        .as_array()
        .expect("nodes")
        .iter()
        .flat_map(|node| node["gpus"].as_array().cloned().unwrap_or_default())
        .filter(|gpu| gpu["job"] == 0)
        .collect();
    assert_eq!(held.len(), 2, "on the map too");
    let why = page.see(&token, "/api/v1/jobs/2/explain");
    assert!(why["text"].as_str().is_some_and(|text| text.contains("by the forecast")), "{why}");
    assert!(why["start"]["low_s"].as_f64() <= why["start"]["median_s"].as_f64(), "{why}");
    let forecast = page.see(&token, "/api/v1/forecast");
    assert!(
        forecast["jobs"].as_array().is_some_and(|jobs| jobs.iter().any(|job| job["job"] == 2)),
        "{forecast}"
    );
    assert!(page.cluster.rota(&["jobs"]).contains("in "), "the same in the list of the command line");
    page.until("the first is done", || page.see(&token, "/api/v1/jobs/0")["state"] == "finished");
    let history = page.see(&token, "/api/v1/jobs/0/history");
    let last = history["attempts"].as_array().and_then(|attempts| attempts.last());
    assert_eq!(last.map(|last| &last["end"]), Some(&json!("finished")), "{history}");
    assert!(history["events"].as_array().is_some_and(|events| events.len() >= 2), "{history}");
    let changed =
        page.post(&token, "/api/v1/jobs/change", &json!({"jobs": {"ids": [1, 2]}, "change": "cancel"}));
    assert_eq!((changed.status, changed.json()), (200, json!({"changed": [1, 2]})));
    let again = page.post(&token, "/api/v1/jobs/change", &json!({"jobs": {"ids": [1]}, "change": "cancel"}));
    assert_eq!((again.status, &again.json()["error"]["code"]), (409, &json!("conflict")));
    // Pages of one list, of jobs that have ended and have not, in any order.
    let ids = json!({"jobs": [{"gpus": 1, "time_s": 3600, "emulate": true}, {"gpus": 1, "time_s": 3600, "emulate": true}]});
    page.post(&token, "/api/v1/jobs", &ids);
    for (sort, order) in
        [("id", "asc"), ("name", "desc"), ("state", "asc"), ("started", "desc"), ("ended", "asc")]
    {
        let (mut found, mut cursor) = (Vec::new(), String::new());
        loop {
            let path = format!("/api/v1/jobs?which=all&limit=2&sort={sort}&order={order}&cursor={cursor}");
            let part = page.see(&token, &path);
            assert_eq!(part["total"], 5, "{part}");
            found.extend(part["items"].as_array().expect("jobs").iter().filter_map(|job| job["id"].as_u64()));
            match part["next"].as_str() {
                Some(next) => next.clone_into(&mut cursor),
                None => break,
            }
        }
        found.sort_unstable();
        assert_eq!(found, [0, 1, 2, 3, 4], "sorted by {sort}");
    }
    let ended = page.see(&token, "/api/v1/jobs?which=ended&state=cancelled&text=WIDE");
    assert_eq!(ended["items"][0]["id"], 1, "{ended}");
    let events = page.see(&token, "/api/v1/events?kind=job-cancelled");
    assert_eq!(events["items"].as_array().map(Vec::len), Some(2), "{events}");
    assert_eq!(events["items"][0]["user"], "ada", "{events}");
    let usage = page.see(&token, "/api/v1/history/usage?by=user,state");
    assert!(
        usage["rows"]
            .as_array()
            .is_some_and(|rows| rows.iter().any(|row| row["key"] == json!(["ada", "finished"]))),
        "{usage}"
    );
}

#[test]
fn roles_hold_for_the_api_as_for_the_command_line() {
    let page = Page::start(1, 4, &[]);
    page.cluster.issue("bob", "submit");
    let (ada, bob) = (page.token("ada"), page.token("bob"));
    page.post(&ada, "/api/v1/jobs", &json!({"jobs": [{"gpus": 2, "time_s": 36000, "emulate": true}]}));
    page.until("it runs", || page.see(&ada, "/api/v1/jobs/0")["state"] == "running");
    assert_eq!(page.get(&bob, "/api/v1/jobs/0").status, 404, "others' numbers are not told");
    assert_eq!(page.see(&bob, "/api/v1/jobs")["items"], json!([]));
    let gpus = page.see(&bob, "/api/v1/nodes/node0")["gpus"].clone();
    let shown: Vec<_> = gpus.as_array().expect("GPUs").iter().map(|gpu| gpu["job"].clone()).collect();
    assert_eq!(
        shown.iter().filter(|job| **job == -1).count(),
        2,
        "busy, and with whose job is not told: {gpus}"
    );
    assert!(gpus.as_array().expect("GPUs").iter().all(|gpu| gpu.get("tenant").is_none()), "{gpus}");
    let forbidden = [
        ("/api/v1/nodes/node0/service", json!({"service": "out"})),
        ("/api/v1/policy/what-if", json!({"policy": "fifo"})),
        ("/api/v1/policy/set", json!({"policy": "fifo"})),
        ("/api/v1/policy/reload", json!({})),
        ("/api/v1/forecast", json!({"policy": "fifo"})),
        ("/api/v1/head/shutdown", json!({})),
        ("/api/v1/jobs", json!({"jobs": [{"gpus": 1, "time_s": 60, "emulate": true, "priority": 5}]})),
    ];
    for (path, body) in forbidden {
        let answer = page.post(&bob, path, &body);
        assert_eq!(
            (answer.status, &answer.json()["error"]["code"]),
            (403, &json!("forbidden")),
            "{path}: {}",
            answer.body
        );
    }
    for path in ["/api/v1/rules", "/api/v1/journal"] {
        assert_eq!(page.get(&bob, path).status, 403, "{path}");
    }
    let may = page.see(&bob, "/api/v1/me")["may"].clone();
    assert!(
        may.as_array().is_some_and(|may| may.contains(&json!("submit")) && !may.contains(&json!("drain"))),
        "{may}"
    );
    let would = page.post(&ada, "/api/v1/policy/what-if", &json!({"policy": "fifo+proportional"}));
    assert_eq!(
        (would.status, &would.json()["text"]),
        (200, &json!("nothing would change")),
        "{}",
        would.body
    );
    let bad =
        json!({"policy": "mine.rhai", "texts": [["mine.rhai", "fn order(jobs, now) { rank(jobs.arival) }"]]});
    let bad = page.post(&ada, "/api/v1/policy/what-if", &bad);
    assert!(bad.status == 422 && bad.body.contains("mine.rhai:1"), "{} {}", bad.status, bad.body);
    let set = page.post(&ada, "/api/v1/policy/set", &json!({"policy": "fifo+proportional"}));
    assert_eq!(set.status, 200, "{}", set.body);
    assert_eq!(page.see(&ada, "/api/v1/policy")["name"], "fifo+proportional");
    assert_eq!(
        page.post(&ada, "/api/v1/nodes/node0/service", &json!({"service": "out", "reason": "a fan"})).status,
        200
    );
    assert!(page.cluster.rota(&["events"]).contains("ada"), "actions are in the journal with who did them");
    assert_eq!(page.see(&ada, "/api/v1/nodes/node0")["drained_reason"], "a fan");
}

#[test]
fn viewers_see_a_change_within_a_second_and_only_what_is_theirs() {
    let page = Page::start(1, 4, &[]);
    page.cluster.issue("bob", "submit");
    let (ada, bob) = (page.token("ada"), page.token("bob"));
    let open = |token: &str| {
        let mut stream = TcpStream::connect(page.address).expect("connected");
        stream.set_read_timeout(Some(Duration::from_secs(60))).expect("set");
        let request = format!(
            "GET /api/v1/stream HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {token}\r\n\r\n",
            page.address
        );
        stream.write_all(request.as_bytes()).expect("sent");
        BufReader::new(stream)
    };
    let next = |stream: &mut BufReader<TcpStream>, wanted: &str| -> Value {
        let (mut kind, mut line) = (String::new(), String::new());
        loop {
            line.clear();
            assert!(stream.read_line(&mut line).expect("a line") > 0, "the stream ended");
            if let Some(is) = line.strip_prefix("event: ") {
                is.trim().clone_into(&mut kind);
            }
            if let Some(data) = line.strip_prefix("data: ").filter(|_| kind == wanted) {
                return serde_json::from_str(data).expect("JSON");
            }
        }
    };
    let (mut of_ada, mut of_bob) = (open(&ada), open(&bob));
    let first = next(&mut of_ada, "snapshot");
    assert_eq!(
        (&first["status"]["n_gpus"], first["nodes"].as_array().map(Vec::len)),
        (&json!(4), Some(1)),
        "{first}"
    );
    assert_eq!(first["columns"]["jobs"][0], "id");
    next(&mut of_bob, "snapshot");
    page.post(&ada, "/api/v1/jobs", &json!({"jobs": [{"gpus": 1, "time_s": 36000, "emulate": true}]}));
    let sent = Instant::now();
    loop {
        let delta = next(&mut of_ada, "delta");
        if delta["jobs"].as_array().is_some_and(|jobs| jobs.iter().any(|job| job[0] == 0)) {
            break;
        }
    }
    let after = sent.elapsed();
    assert!(after < Duration::from_secs(5), "{after:?}");
    page.post(&bob, "/api/v1/jobs", &json!({"jobs": [{"gpus": 1, "time_s": 36000, "emulate": true}]}));
    loop {
        let delta = next(&mut of_bob, "delta");
        let jobs = delta["jobs"].as_array().cloned().unwrap_or_default();
        assert!(jobs.iter().all(|job| job[2] == "bob"), "{delta}");
        let events = delta["events"].as_array().cloned().unwrap_or_default();
        assert!(events.iter().all(|event| event["job"] == 1), "{delta}");
        if jobs.iter().any(|job| job[0] == 1) {
            break;
        }
    }
}

#[test]
fn figures_are_there_for_prometheus_and_only_with_a_token() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("token");
    std::fs::write(&file, "0123456789abcdef0123\n").expect("written");
    use std::os::unix::fs::PermissionsExt as _;
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o600)).expect("set");
    let page = Page::start(1, 4, &["--metrics-token", &file.display().to_string()]);
    assert_eq!(page.get("another-token-of-20-chars", "/metrics").status, 401);
    assert_eq!(page.get("0123456789abcdef0123", "/api/v1/status").status, 401, "for figures alone");
    page.cluster.rota(&["submit", "--emulate", "--gpus", "8", "--time", "1h"]);
    page.cluster.rota(&["submit", "--emulate", "--gpus", "2", "--time", "100h"]);
    let figures = || page.get("0123456789abcdef0123", "/metrics").body;
    page.until("a job runs", || figures().contains("rota_gpus{state=\"busy\"} 2"));
    let text = figures();
    for line in
        ["rota_nodes{state=\"up\"} 1", "rota_journal_writable 1", "rota_rounds_total{result=\"planned\"}"]
    {
        assert!(text.contains(line), "{line}\n{text}");
    }
    // What the dashboard and the alerts ask for is there.
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("configs/monitoring");
    let dashboard = std::fs::read_to_string(root.join("grafana.json")).expect("a dashboard");
    let panels: Value = serde_json::from_str(&dashboard).expect("JSON");
    assert!(panels["panels"].as_array().is_some_and(|panels| panels.len() > 8));
    let alerts = std::fs::read_to_string(root.join("alerts.yml")).expect("alerts");
    let names = regex::Regex::new("rota_[a-z_]+").expect("a pattern");
    for name in names.find_iter(&format!("{dashboard}{alerts}")).map(|found| found.as_str()) {
        // A tenant without a quota has none.
        let family = name.trim_end_matches("_bucket");
        let is_known = text.contains(&format!("# TYPE {family} ")) || family == "rota_tenant_gpus_quota";
        assert!(is_known, "{name} is asked for, and there is no such figure");
    }
    for family in
        ["rota_decision_duration_seconds", "rota_policy_operations_total", "rota_solver_calls_total"]
    {
        assert!(
            text.contains(&format!("# HELP {family} ")) && text.contains(&format!("# TYPE {family} ")),
            "{family}"
        );
    }
}

#[test]
fn answers_are_as_the_document_describes_them_and_odd_requests_are_refused() {
    let page = Page::start(1, 2, &[]);
    let token = page.token("ada");
    page.post(&token, "/api/v1/jobs", &json!({"jobs": [{"gpus": 1, "time_s": 36000, "emulate": true}, {"gpus": 2, "time_s": 60, "emulate": true}]}));
    page.until("it runs", || page.see(&token, "/api/v1/jobs/0")["state"] == "running");
    let document = page.see(&token, "/api/v1/openapi.json");
    let paths = document["paths"].as_object().expect("paths");
    let mut n_compared = 0;
    for (path, item) in paths {
        let Some(operation) = item.get("get") else { continue };
        let schema = &operation["responses"]["200"]["content"]["application/json"]["schema"];
        if schema.is_null() || path == "/api/v1/rules" {
            continue;
        }
        let mut real = path.replace("{id}", "0").replace("{name}", "node0");
        if path.ends_with("/policy/of") {
            real.push_str("?policy=las");
        }
        if path.ends_with("/output") {
            continue;
        }
        let answer = page.see(&token, &real);
        let wrong = differs(&document, schema, &answer, path);
        assert_eq!(wrong, None, "{answer:#}");
        n_compared += 1;
    }
    assert!(n_compared >= 14, "{n_compared}");
    // The same requests with what no program should send.
    let odd =
        ["", "%00", "..%2f..%2fetc", "-1", "99999999999999999999", "%f0%9f%92%a9", "a%27b", "0x1", "NaN"];
    let bodies = [
        "",
        "[]",
        "nul",
        "{\"jobs\":[]}",
        "{\"jobs\":[{\"gpus\":-1}]}",
        "{\"jobs\":[{\"work\":1e400}]}",
        "{\"policy\":\"../../etc/passwd\"}",
        "{\"policy\":\"las\",\"set\":[[\"a\"]]}",
        "{\"service\":\"up\"}",
        "{\"\\u0000\":1}",
        "{\"jobs\":{\"ids\":[4294967296]},\"change\":\"cancel\"}",
        "{\"until_s\":-1e300}",
        "{\"seeds\":0}",
    ];
    let quiet = ["/api/v1/head/shutdown", "/api/v1/head/stop-all", "/api/v1/logout"];
    let mut n_asked = 0;
    for (path, item) in paths.iter().filter(|(path, _)| !quiet.contains(&path.as_str())) {
        for (at, word) in odd.iter().enumerate() {
            let real = path.replace("{id}", word).replace("{name}", word);
            let query =
                ["limit", "cursor", "sort", "from", "policy", "which", "topics", "offset", "none"][at];
            let answer = page.get(&token, &format!("{real}?{query}={word}"));
            assert!(
                (200..500).contains(&answer.status),
                "GET {real}?{query}={word}: {} {}",
                answer.status,
                answer.body
            );
            n_asked += 1;
        }
        if item.get("post").is_some() {
            for body in bodies {
                let real = path.replace("{id}", "0").replace("{name}", "nowhere");
                let bearer = format!("Bearer {token}");
                let headers = [("Authorization", bearer.as_str()), ("Content-Type", "application/json")];
                let answer = page.raw("POST", &real, &headers, body);
                assert!(
                    (200..500).contains(&answer.status),
                    "POST {real} {body}: {} {}",
                    answer.status,
                    answer.body
                );
                n_asked += 1;
            }
        }
        if n_asked % 60 < 10 {
            // No more than one program may ask in a second.
            page.until("there is room again", || page.get(&token, "/api/v1/me").status == 200);
        }
    }
    assert!(n_asked > 200, "{n_asked}");
    page.until("it answers as before", || page.get(&token, "/api/v1/status").status == 200);
}

/// Where an answer differs from its schema, if it does: a field that is missing, not described, or of another kind.
fn differs(document: &Value, schema: &Value, value: &Value, at: &str) -> Option<String> {
    if let Some(name) = schema["$ref"].as_str().and_then(|name| name.strip_prefix("#/components/schemas/")) {
        let found = &document["components"]["schemas"][name];
        return match found.is_null() {
            true => Some(format!("{at}: no schema {name}")),
            false => differs(document, found, value, at),
        };
    }
    for choice in ["oneOf", "anyOf"] {
        if let Some(choices) = schema[choice].as_array() {
            let all: Vec<_> = choices.iter().filter_map(|one| differs(document, one, value, at)).collect();
            return (all.len() == choices.len()).then(|| all.join("; "));
        }
    }
    let kinds: Vec<&str> = match &schema["type"] {
        Value::String(kind) => vec![kind.as_str()],
        Value::Array(kinds) => kinds.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    };
    let kind = match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(number) if number.is_f64() => "number",
        Value::Number(_) => "integer",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    };
    let fits = kinds.is_empty() || kinds.contains(&kind) || (kind == "integer" && kinds.contains(&"number"));
    if !fits {
        return Some(format!("{at}: {kind} instead of {kinds:?}"));
    }
    if let (Some(items), Some(values)) =
        (schema.get("items").filter(|items| items.is_object()), value.as_array())
    {
        return values.iter().find_map(|value| differs(document, items, value, &format!("{at}[]")));
    }
    let (mut properties, mut required) = (serde_json::Map::new(), Vec::new());
    gather(document, schema, &mut properties, &mut required);
    let fields = value.as_object().filter(|_| !properties.is_empty())?;
    if let Some(missing) = required.iter().find(|name| !fields.contains_key(*name)) {
        return Some(format!("{at}: no {missing}"));
    }
    fields.iter().find_map(|(name, value)| match properties.get(name) {
        Some(schema) => differs(document, schema, value, &format!("{at}.{name}")),
        None => Some(format!("{at}: {name} is not described")),
    })
}

/// The properties of a schema, with those of the schemas that it is made of.
fn gather(
    document: &Value,
    schema: &Value,
    properties: &mut serde_json::Map<String, Value>,
    required: &mut Vec<String>,
) {
    if let Some(name) = schema["$ref"].as_str().and_then(|name| name.strip_prefix("#/components/schemas/")) {
        return gather(document, &document["components"]["schemas"][name], properties, required);
    }
    for part in schema["allOf"].as_array().into_iter().flatten() {
        gather(document, part, properties, required);
    }
    properties.extend(schema["properties"].as_object().cloned().unwrap_or_default());
    required.extend(
        schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned),
    );
}
