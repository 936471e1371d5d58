//! The live page in a real browser, on a real head with emulated GPUs: what people see and do there, and what they may not.
//! Needs Chromium. `ROTA_PICTURES=FOLDER` also writes pictures of every view, wide and narrow, light and dark.

use rota_test_support::need;
use rota_test_support::ports::free_port;
use serde_json::{Value, json};

use crate::browser::Browser;
use crate::cluster::Cluster;
use crate::readable;

/// A head with the page, and its address.
fn cluster(n_agents: usize, n_gpus: u32) -> (Cluster, String) {
    let address = format!("127.0.0.1:{}", free_port());
    let cluster = Cluster::start(n_agents, n_gpus, &["--round", "1s", "--web", &address]);
    (cluster, format!("http://{address}"))
}

/// A browser in which somebody is signed in, at a view.
fn signed_in(program: &std::path::Path, cluster: &Cluster, user: &str, width: u32) -> Browser {
    let printed = cluster
        .try_rota_as(user, &["web", "login"])
        .unwrap_or_else(|error| panic!("{error}\n{}", cluster.head_log()));
    let link = printed.split_whitespace().find(|word| word.starts_with("http")).expect("a link");
    let mut browser = Browser::open(program, link, width, 900);
    browser.wait_for("document.querySelector('#nav a')");
    browser
}

fn go(browser: &mut Browser, view: &str, ready: &str) {
    browser.eval(&format!("location.hash = '{view}'"));
    browser.wait_for(ready);
}

/// Presses the button with a label, as a person would: it must be there and may be pressed.
fn press(browser: &mut Browser, within: &str, label: &str) {
    let button = format!(
        "[...document.querySelectorAll('{within} button')].find((one) => one.innerText === '{label}' && !one.disabled)"
    );
    browser.wait_for(&button);
    browser.eval(&format!("{button}.click()"));
}

/// Types into the field of the dialog that is open.
fn fill(browser: &mut Browser, field: &str, text: &str) {
    browser.wait_for(&format!("document.querySelector('dialog [name={field}]')"));
    browser.eval(&format!("(() => {{ const field = document.querySelector('dialog [name={field}]'); field.focus(); field.select(); }})()"));
    browser.insert(text);
}

fn state(cluster: &Cluster, job: usize) -> Value {
    cluster.jobs().get(job).map_or(Value::Null, |job| job["state"].clone())
}

#[test]
fn a_job_is_submitted_watched_and_cancelled_on_the_page() {
    let Some(program) = need::chromium() else { return };
    let (cluster, _) = cluster(2, 2);
    let mut browser = signed_in(&program, &cluster, "ada", 1400);
    go(&mut browser, "#/jobs", "document.getElementById('job-count').innerText.startsWith('0 jobs')");
    press(&mut browser, "main", "submit a job");
    fill(&mut browser, "name", "hello");
    fill(&mut browser, "gpus", "2");
    fill(&mut browser, "command", "echo first line; sleep 600");
    press(&mut browser, "dialog", "submit");
    browser.wait_for(
        "location.hash === '#/jobs/0' && document.querySelector('h2 .state')?.innerText === 'running'",
    );
    browser.wait_for("document.getElementById('job-output').innerText.includes('first line')");
    assert_eq!(state(&cluster, 0), "running");
    go(
        &mut browser,
        "#/jobs",
        "[...document.querySelectorAll('.grid tbody tr')].some((row) => row.innerText.includes('hello') && row.innerText.includes('running'))",
    );
    go(
        &mut browser,
        "#/",
        "document.querySelector('.grid tbody a') && document.querySelector('main').innerText.includes('2 of 4 GPUs held')",
    );
    go(&mut browser, "#/jobs/0", "document.getElementById('job-actions')");
    press(&mut browser, "#job-actions", "cancel");
    press(&mut browser, "dialog", "cancel");
    browser.wait_for("document.querySelector('h2 .state')?.innerText === 'cancelled'");
    assert_eq!(state(&cluster, 0), "cancelled");
    go(&mut browser, "#/jobs", "document.getElementById('which')");
    browser.eval("(() => { const which = document.getElementById('which'); which.value = 'ended'; which.dispatchEvent(new Event('change')); })()");
    browser.wait_for(
        "[...document.querySelectorAll('.grid tbody tr')].some((row) => row.innerText.includes('cancelled'))",
    );
    assert!(cluster.rota(&["events"]).contains("job-cancelled"));
    assert_eq!(browser.complaints, "");
}

#[test]
fn an_edited_policy_is_tried_on_the_present_state_and_then_decides() {
    let Some(program) = need::chromium() else { return };
    let (cluster, _) = cluster(1, 2);
    cluster.rota(&["submit", "--gpus", "2", "--time", "1h", "--", "/bin/sleep", "600"]);
    cluster.until("it runs", |cluster| state(cluster, 0) == "running");
    let mut browser = signed_in(&program, &cluster, "ada", 1400);
    go(&mut browser, "#/policy", "document.querySelectorAll('#view .tabs button').length === 2");
    let original = browser.eval("[...document.getElementById('policy-editor').shadowRoot.querySelectorAll('.cm-line')].map((line) => line.innerText).join('\\n')");
    let original = original.as_str().expect("text").to_owned();
    assert!(original.contains("rank(-jobs.priority, jobs.service)"), "{original}");
    let edit = |browser: &mut Browser, to: &str| {
        browser
            .eval("document.getElementById('policy-editor').shadowRoot.querySelector('.cm-content').focus()");
        browser.ask("Input.dispatchKeyEvent", json!({ "type": "keyDown", "key": "a", "code": "KeyA", "windowsVirtualKeyCode": 65, "modifiers": 2, "commands": ["selectAll"] }));
        // Over a selection Chromium would insert markup of its own.
        browser.ask(
            "Input.dispatchKeyEvent",
            json!({ "type": "keyDown", "key": "Backspace", "code": "Backspace", "windowsVirtualKeyCode": 8 }),
        );
        browser.insert(&original.replace("jobs.service", to));
    };
    edit(&mut browser, "jobs.servise");
    press(&mut browser, "main", "what if?");
    browser.wait_for("document.getElementById('policy-wrong').innerText.includes('servise')");
    browser.wait_for(
        "document.getElementById('policy-editor').shadowRoot.querySelector('.cm-lint-marker-error')",
    );
    edit(&mut browser, "-jobs.arrival");
    press(&mut browser, "main", "what if?");
    browser.wait_for("document.getElementById('what-if').innerText.includes('What it would do now')");
    assert_eq!(cluster.status()["policy"], "las+tune", "a question changes nothing");
    press(&mut browser, "main", "set it");
    press(&mut browser, "dialog", "set it");
    browser.wait_for("document.getElementById('policy-in-use').innerText.includes('las.rhai+tune')");
    assert_eq!(cluster.status()["policy"], "las.rhai+tune");
    let complaints = browser.complaints.replace(
        "\"Failed to load resource: the server responded with a status of 422 (Unprocessable Entity)\"\n",
        "",
    );
    assert_eq!(complaints, "");
}

#[test]
fn what_a_role_may_not_do_is_not_offered_and_not_done() {
    let Some(program) = need::chromium() else { return };
    let (cluster, _) = cluster(1, 2);
    cluster.issue("bob", "submit");
    cluster.rota(&["submit", "--gpus", "1", "--time", "1h", "--", "/bin/sleep", "600"]);
    cluster.until("it runs", |cluster| state(cluster, 0) == "running");
    let mut browser = signed_in(&program, &cluster, "bob", 1400);
    go(&mut browser, "#/jobs", "document.getElementById('job-count').innerText.startsWith('0 jobs')");
    go(&mut browser, "#/nodes/node0", "document.getElementById('node-actions')");
    let offered = browser.eval("[...document.querySelectorAll('#node-actions button')].map((one) => [one.innerText, one.disabled, one.title])");
    for one in offered.as_array().expect("buttons") {
        assert!(one[1] == true && one[2].as_str().is_some_and(|why| why.contains("may not")), "{offered}");
    }
    go(
        &mut browser,
        "#/policy",
        "[...document.querySelectorAll('main button')].filter((one) => ['what if?', 'set it'].includes(one.innerText) && one.disabled).length === 2",
    );
    // A page that is made to ask all the same is refused by the head.
    let asked = |path: &str, body: Value| {
        format!(
            "fetch('/api/v1/me').then((me) => me.json()).then(({{ csrf }}) => fetch('/api/v1{path}', {{ method: 'POST', body: JSON.stringify({body}), \
             headers: {{ 'content-type': 'application/json', 'x-rota-csrf': csrf }} }})).then(async (answer) => [answer.status, await answer.text()])"
        )
    };
    for (path, body) in [
        ("/nodes/node0/service", json!({ "service": "out" })),
        ("/policy/set", json!({ "policy": "fifo", "set": [], "texts": [] })),
        ("/policy/what-if", json!({ "policy": "fifo", "set": [], "texts": [] })),
        ("/jobs/change", json!({ "jobs": { "ids": [0] }, "change": "cancel" })),
        ("/head/shutdown", json!({})),
    ] {
        let answer = browser.eval(&asked(path, body));
        let (status, text) = (answer[0].as_u64(), answer[1].as_str().unwrap_or(""));
        assert!(matches!(status, Some(403 | 404)) && text.contains("\"error\""), "{path}: {answer}");
    }
    // Without the token of its page, nobody is asked at all.
    let bare = browser.eval("fetch('/api/v1/jobs', { method: 'POST', body: '{\"jobs\":[]}', headers: { 'content-type': 'application/json' } }).then((answer) => answer.status)");
    assert_eq!(bare, json!(403));
    assert_eq!(
        (state(&cluster, 0), cluster.status()["policy"].clone()),
        (json!("running"), json!("las+tune"))
    );
    assert_eq!(cluster.nodes()[0]["state"], "up");
}

#[test]
fn a_job_named_as_a_script_is_text_everywhere() {
    let Some(program) = need::chromium() else { return };
    let (cluster, _) = cluster(1, 2);
    let name = "<script>document.title='taken'</script><img src=x onerror=\"document.title='taken'\">";
    cluster.rota(&[
        "submit",
        "--name",
        name,
        "--gpus",
        "1",
        "--time",
        "1h",
        "--",
        "/bin/sh",
        "-c",
        "echo '<b>bold</b>'; sleep 600",
    ]);
    cluster.rota(&["submit", "--name", name, "--gpus", "2", "--time", "1h", "--", "/bin/sleep", "600"]);
    cluster.until("it runs", |cluster| state(cluster, 0) == "running");
    let mut browser = signed_in(&program, &cluster, "ada", 1400);
    for (view, ready) in [
        ("#/jobs", "document.querySelector('.grid tbody').innerText.includes('<script>')"),
        (
            "#/jobs/0",
            "document.querySelector('h2 .name')?.innerText.includes('<script>') && document.getElementById('job-output').innerText.includes('<b>bold</b>')",
        ),
        ("#/events", "document.querySelector('main table tbody tr')"),
        ("#/nodes/node0", "document.getElementById('node-actions')"),
        (
            "#/forecast",
            "document.querySelector('#forecast p') && document.getElementById('forecast').innerText !== '…'",
        ),
        ("#/", "document.querySelector('.grid tbody a')"),
    ] {
        go(&mut browser, view, ready);
        assert!(!browser.eval("document.title").as_str().unwrap_or("").contains("taken"), "{view}");
        assert_eq!(
            browser.eval("document.querySelectorAll('main script, main img, main b').length"),
            json!(0),
            "{view}"
        );
    }
    assert_eq!(browser.complaints, "");
}

#[test]
fn without_a_session_there_is_only_the_way_in() {
    let Some(program) = need::chromium() else { return };
    let (cluster, address) = cluster(1, 1);
    let mut browser = Browser::open(&program, &format!("{address}/live.html"), 1400, 900);
    browser.wait_for("document.querySelector('.sign-in')");
    let said = browser.eval("document.body.innerText");
    assert!(said.as_str().is_some_and(|said| said.contains("rota web login")), "{said}");
    for path in ["/api/v1/me", "/api/v1/jobs", "/api/v1/nodes", "/api/v1/stream", "/api/v1/policy"] {
        let status = browser.eval(&format!("fetch('{path}').then((answer) => answer.status)"));
        assert_eq!(status, json!(401), "{path}");
    }
    // A link works once; signing out ends what it began.
    let printed = cluster.rota(&["web", "login"]);
    let link = printed.split_whitespace().find(|word| word.starts_with("http")).expect("a link").to_owned();
    browser.ask("Page.navigate", json!({ "url": link }));
    browser.wait_for("document.querySelector('#nav a')");
    press(&mut browser, "#who", "sign out");
    browser.wait_for("document.querySelector('.sign-in')");
    assert_eq!(browser.eval("fetch('/api/v1/jobs').then((answer) => answer.status)"), json!(401));
    browser.ask("Page.navigate", json!({ "url": link }));
    browser.wait_for("document.body && !document.querySelector('#nav a')");
    assert_eq!(browser.eval("fetch('/api/v1/jobs').then((answer) => answer.status)"), json!(401));
}

#[test]
fn a_node_is_drained_with_a_reason_and_put_back() {
    let Some(program) = need::chromium() else { return };
    let (cluster, _) = cluster(2, 1);
    let mut browser = signed_in(&program, &cluster, "ada", 390);
    go(&mut browser, "#/nodes/node1", "document.getElementById('node-actions')");
    press(&mut browser, "#node-actions", "drain");
    fill(&mut browser, "reason", "a fan is loud");
    press(&mut browser, "dialog", "drain");
    browser.wait_for("document.querySelector('h2 .state')?.innerText === 'drained' && document.querySelector('main').innerText.includes('a fan is loud')");
    assert_eq!(cluster.nodes()[1]["state"], "drained");
    // The command line says it to the page, too.
    cluster.rota(&["drain", "node1", "--undo"]);
    browser.wait_for("document.querySelector('h2 .state')?.innerText === 'up'");
    assert_eq!(browser.complaints, "");
}

/// Writes a picture of the whole page, as base64.
fn picture(browser: &mut Browser, file: &str) {
    browser.eval("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(done, 300))))");
    let taken =
        browser.ask("Page.captureScreenshot", json!({ "format": "png", "captureBeyondViewport": true }));
    std::fs::write(file, taken["data"].as_str().expect("a picture")).expect("written");
}

#[test]
fn every_view_can_be_read_and_used_by_everybody() {
    let Some(program) = need::chromium() else { return };
    let (cluster, _) = cluster(2, 4);
    for gpus in ["1", "2", "4", "4"] {
        cluster.rota(&[
            "submit",
            "--gpus",
            gpus,
            "--time",
            "1h",
            "--",
            "/bin/sh",
            "-c",
            "echo working; sleep 600",
        ]);
    }
    cluster.until("one runs", |cluster| state(cluster, 0) == "running");
    cluster.rota(&["drain", "node1"]);
    let mut browser = signed_in(&program, &cluster, "ada", 1400);
    let views = [
        ("cluster", "#/", "document.querySelector('.grid tbody a') && document.querySelector('canvas')"),
        ("jobs", "#/jobs", "document.querySelectorAll('.grid tbody tr').length >= 4"),
        (
            "job",
            "#/jobs/0",
            "document.querySelector('.facts') && document.getElementById('job-output').innerText",
        ),
        ("node", "#/nodes/node0", "document.querySelector('.facts')"),
        ("tenants", "#/tenants", "document.querySelector('main table')"),
        ("events", "#/events", "document.querySelector('main table tbody tr')"),
        ("policy", "#/policy", "document.querySelector('.tabs button')"),
        (
            "forecast",
            "#/forecast",
            "document.querySelector('#forecast p') && document.getElementById('forecast').innerText !== '…'",
        ),
    ];
    let pictures = std::env::var("ROTA_PICTURES").ok();
    for (name, view, ready) in views {
        go(&mut browser, view, ready);
        for width in [1400, 390] {
            browser.resize(width, 900);
            for scheme in ["light", "dark"] {
                browser.scheme(scheme);
                assert_eq!(
                    readable::faint_texts(&mut browser),
                    json!([]),
                    "{name}, {width}, {scheme}: texts with too little contrast"
                );
                if let Some(folder) = &pictures {
                    picture(&mut browser, &format!("{folder}/live-{name}-{width}-{scheme}.png.base64"));
                }
            }
            let widths = browser.eval("[document.documentElement.scrollWidth, innerWidth]");
            assert!(widths[0].as_u64() <= widths[1].as_u64(), "{name} sticks out at {width}: {widths}");
        }
        assert_eq!(
            readable::nameless(&mut browser),
            Vec::<String>::new(),
            "{name}: what can be used has a name"
        );
    }
    let foreign = "performance.getEntriesByType('resource').map((one) => one.name).filter((name) => !name.startsWith(location.origin + '/'))";
    assert_eq!(browser.eval(foreign), json!([]), "nothing is loaded from elsewhere");
    assert_eq!(browser.complaints, "");
}
