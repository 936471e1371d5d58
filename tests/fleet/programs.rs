//! Programs that others wrote, at the head's door: a client that is generated from its OpenAPI document, Prometheus, and one that
//! sends nonsense.

use std::io::Write as _;
use std::process::{Child, Command, Stdio};

use rand::rngs::ChaCha8Rng;
use rand::seq::IndexedRandom as _;
use rand::{RngExt as _, SeedableRng as _};
use rota_test_support::need;
use rota_test_support::ports::free_port;
use serde_json::{Value, json};

use crate::web::Page;

/// What a command printed, on both streams; it must have succeeded.
fn said(command: &mut Command) -> String {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let all = format!("{}{}", text(&output.stdout), text(&output.stderr));
    assert!(output.status.success(), "{command:?}: {all}");
    all
}

#[test]
fn a_client_generated_from_the_document_follows_a_job_to_its_end() {
    let Some(made) = need::openapi_client() else { return };
    let page = Page::start(1, 2, &[]);
    let token = page.token("ada");
    let folder = tempfile::tempdir().expect("a folder");
    let document = folder.path().join("openapi.json");
    std::fs::write(&document, page.get(&token, "/api/v1/openapi.json").body).expect("written");
    let mut generate = Command::new(made.join("bin/openapi-python-client"));
    generate.args(["generate", "--meta", "none", "--path"]).arg(&document);
    generate.arg("--output-path").arg(folder.path().join("head_client"));
    // The generator's formatter is next to it.
    let path = std::env::var("PATH").unwrap_or_default();
    generate.env("PATH", format!("{}:{path}", made.join("bin").display()));
    said(&mut generate);
    let script = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fleet/follow_a_job.py");
    let mut follow = Command::new(made.join("bin/python"));
    follow.arg(script).arg(folder.path()).arg(format!("http://{}", page.address)).arg(&token);
    assert_eq!(said(&mut follow).trim(), "0:finished,1:cancelled");
}

/// Prometheus, which ends with the test.
struct Scraper(Child);

impl Drop for Scraper {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn prometheus_scrapes_the_figures_and_finds_nothing_wrong_with_them() {
    let Some(()) = need::prometheus() else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let token = folder.path().join("token");
    std::fs::write(&token, "0123456789abcdef0123").expect("written");
    use std::os::unix::fs::PermissionsExt as _;
    std::fs::set_permissions(&token, std::fs::Permissions::from_mode(0o600)).expect("set");
    let page = Page::start(1, 4, &["--quota", "vision=2", "--metrics-token", &token.display().to_string()]);
    page.cluster.rota(&["submit", "--emulate", "--gpus", "3", "--time", "100h", "--tenant", "vision"]);
    page.cluster.rota(&["submit", "--emulate", "--gpus", "2", "--time", "100h"]);
    let figures = || page.get("0123456789abcdef0123", "/metrics").body;
    page.until("a job runs", || figures().contains("rota_gpus{state=\"busy\"} 2"));
    let mut check = Command::new("promtool");
    check.args(["check", "metrics"]).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut checking = check.spawn().expect("started");
    checking.stdin.take().expect("a pipe").write_all(figures().as_bytes()).expect("sent");
    let checked = checking.wait_with_output().expect("ended");
    let text = [&checked.stdout, &checked.stderr].map(|bytes| String::from_utf8_lossy(bytes)).concat();
    assert!(checked.status.success() && text.is_empty(), "promtool check metrics: {text}");
    let rules = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("configs/monitoring/alerts.yml");
    let rules = rules.display();
    said(Command::new("promtool").args(["check", "rules", &rules.to_string()]));
    let config = folder.path().join("prometheus.yml");
    let text = format!(
        "global: {{scrape_interval: 200ms, evaluation_interval: 200ms}}\nrule_files: [\"{rules}\"]\nscrape_configs:\n  - job_name: rota\n    \
         authorization: {{credentials_file: {}}}\n    static_configs: [{{targets: [\"{}\"]}}]\n",
        token.display(),
        page.address
    );
    std::fs::write(&config, text).expect("written");
    let listen = format!("127.0.0.1:{}", free_port());
    let log = std::fs::File::create(folder.path().join("log")).expect("a log");
    let mut prometheus = Command::new("prometheus");
    prometheus.arg(format!("--config.file={}", config.display()));
    prometheus.arg(format!("--storage.tsdb.path={}", folder.path().join("data").display()));
    prometheus.arg(format!("--web.listen-address={listen}")).stderr(log);
    let _scraper = Scraper(prometheus.stdout(Stdio::null()).spawn().expect("started"));
    let server = format!("http://{listen}");
    let ask = |query: &str| {
        let output = Command::new("promtool").args(["query", "instant", &server, query]).output();
        String::from_utf8_lossy(&output.expect("promtool").stdout).into_owned()
    };
    page.until("Prometheus has scraped", || ask("up{job=\"rota\"}").contains("=> 1 @"));
    assert!(ask("rota_gpus{state=\"busy\"}").contains("=> 2 @"), "{}", ask("rota_gpus"));
    assert!(ask("rota_tenant_gpus_quota{tenant=\"vision\"}").contains("=> 2 @"));
    // The dashboard's questions are ones that Prometheus understands.
    let expressions = expressions_of_the_dashboard();
    let mut n_asked = 0;
    for expression in expressions {
        let output =
            Command::new("promtool").args(["query", "instant", &server, &expression]).output().expect("ran");
        let wrong = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{expression}: {wrong}");
        n_asked += 1;
    }
    assert!(n_asked > 8, "{n_asked}");
}

/// The expressions of the dashboard, with what Grafana would fill in.
fn expressions_of_the_dashboard() -> Vec<String> {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("configs/monitoring/grafana.json");
    let dashboard: Value =
        serde_json::from_str(&std::fs::read_to_string(path).expect("a dashboard")).expect("JSON");
    let panels = dashboard["panels"].as_array().cloned().unwrap_or_default();
    let targets = panels.iter().flat_map(|panel| panel["targets"].as_array().cloned().unwrap_or_default());
    let expressions = targets.filter_map(|target| target["expr"].as_str().map(str::to_owned));
    expressions.map(|text| text.replace("$__rate_interval", "1m").replace("$__range", "1m")).collect()
}

/// Values that no program should send, and some that it may.
const WORDS: [&str; 20] = [
    "",
    "0",
    "-1",
    "4294967296",
    "1e400",
    "NaN",
    "null",
    "true",
    "\u{0}",
    "..",
    "../../etc/passwd",
    "node0",
    "las",
    "é\u{202e}",
    "%",
    "<script>",
    "' OR 1=1 --",
    "\r\nX: y",
    "9223372036854775808",
    "a+b:c",
];

/// A value of any kind, of limited depth.
fn nonsense(random: &mut ChaCha8Rng, names: &[String], depth: u32) -> Value {
    match random.random_range(0..if depth == 0 { 6 } else { 10 }) {
        0 => Value::Null,
        1 => json!(random.random::<bool>()),
        2 => json!(random.random::<i64>()),
        3 => json!(random.random_range(-3.0..3.0)),
        4 => json!(random.random_range(0..4_u32)),
        5 => json!(WORDS.choose(random).expect("words")),
        6 => {
            let n = random.random_range(0..4);
            (0..n).map(|_| nonsense(random, names, depth - 1)).collect()
        }
        _ => {
            let n = random.random_range(0..5);
            let field = |random: &mut ChaCha8Rng| {
                (names.choose(random).cloned().unwrap_or_default(), nonsense(random, names, depth - 1))
            };
            Value::Object((0..n).map(|_| field(random)).collect())
        }
    }
}

/// As it is written in an address.
fn escaped(word: &str) -> String {
    word.bytes().map(|byte| format!("%{byte:02X}")).collect()
}

#[test]
fn nonsense_is_refused_and_never_breaks_the_head() {
    let page = Page::start(1, 2, &[]);
    let token = page.token("ada");
    let document = page.see(&token, "/api/v1/openapi.json");
    let names: Vec<String> = document["components"]["schemas"]
        .as_object()
        .expect("schemas")
        .values()
        .flat_map(|schema| {
            schema["properties"]
                .as_object()
                .into_iter()
                .flat_map(|fields| fields.keys().cloned())
                .collect::<Vec<_>>()
        })
        .collect();
    let ends_it = ["/api/v1/head/shutdown", "/api/v1/head/stop-all", "/api/v1/logout"];
    let paths: Vec<(String, Value)> = document["paths"]
        .as_object()
        .expect("paths")
        .iter()
        .filter(|(path, _)| !ends_it.contains(&path.as_str()))
        .map(|(path, item)| (path.clone(), item.clone()))
        .collect();
    let mut random = ChaCha8Rng::seed_from_u64(17);
    let (mut n_refused, mut n_carried_out) = (0, 0);
    for _ in 0..1_500 {
        let (path, item) = paths.choose(&mut random).expect("paths");
        let mut word = || escaped(WORDS.choose(&mut random).expect("words"));
        let mut target = path.replace("{id}", &word()).replace("{name}", &word());
        let method = ["GET", "POST", "PUT", "DELETE", "get"];
        let method = *method[..if item["post"].is_null() { 1 } else { 2 }]
            .choose(&mut random)
            .filter(|_| random.random_range(0..20) > 0)
            .unwrap_or_else(|| method.choose(&mut random).expect("methods"));
        let parameters = item["get"]["parameters"].as_array().cloned().unwrap_or_default();
        for (at, parameter) in parameters.iter().filter(|one| one["in"] == "query").enumerate() {
            if random.random::<bool>() {
                let value = escaped(WORDS.choose(&mut random).expect("words"));
                let name = parameter["name"].as_str().unwrap_or("");
                target.push_str(&format!("{}{name}={value}", if at == 0 { "?" } else { "&" }));
            }
        }
        let mut body = nonsense(&mut random, &names, 4).to_string();
        if random.random_range(0..4) == 0 {
            let cut = body.char_indices().nth(random.random_range(0..9)).map_or(body.len(), |(at, _)| at);
            body.truncate(cut);
        }
        let bearer = format!("Bearer {token}");
        let kind = ["application/json", "text/plain"][usize::from(random.random_range(0..20) == 0)];
        let headers = [("Authorization", bearer.as_str()), ("Content-Type", kind)];
        let body = if method == "GET" { "" } else { &body };
        let answer = page.raw(method, &target, &headers, body);
        match answer.status {
            200..300 => n_carried_out += 1,
            400..500 => n_refused += 1,
            // A policy that does not answer in time, a node that is not connected: nothing that a request breaks.
            status => panic!("{method} {target} {body}: {status} {}", answer.body),
        }
        if answer.status == 429 {
            page.until("there is room again", || page.get(&token, "/api/v1/me").status == 200);
        }
    }
    assert!(n_refused > 500 && n_carried_out > 50, "{n_refused} refused, {n_carried_out} carried out");
    assert_eq!(page.see(&token, "/api/v1/status")["is_ready"], true);
    assert!(!page.cluster.head_log().contains("panicked"), "{}", page.cluster.head_log());
}
