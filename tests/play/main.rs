//! `rota play` in a real browser: mistakes at their lines, figures that follow text and sliders, uploads, files, and what nobody
//! but the person who started it may see. Needs Chromium.

mod browser;
mod laboratory;
mod readable;

use std::collections::BTreeMap;
use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;

use browser::Browser;
use laboratory::Laboratory;
use rota_test_support::need;
use serde_json::json;

const POLICY: &str = "// mine: small jobs first.\n// Source: a test.\nparam(\"weight\", 1.0, 0.0..=2.0, \"how much GPUs count\");\n\
                      fn order(jobs, now) {\n    rank(jobs.gpus * param(\"weight\") + jobs.attained)\n}\n";

/// Small enough to answer at once, loaded enough that policies differ.
const SMALL: [&str; 8] = ["--workload", "small", "--jobs", "150", "--against", "fifo,srtf", "--port", "0"];

/// So loaded that jobs wait.
const LOADED: [&str; 9] =
    ["mine.rhai", "--workload", "small", "--jobs", "150", "--jobs-per-hour", "40", "--against", "fifo,srtf"];

fn started(folder: &Path, policy: &str) -> Laboratory {
    let args: Vec<&str> = [policy].into_iter().chain(SMALL).collect();
    Laboratory::start(folder, &args)
}

fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    fs::write(folder.path().join("mine.rhai"), POLICY).expect("a policy");
    folder
}

const FIGURES: &str = "document.querySelectorAll('#table tbody tr').length === 3 && document.querySelectorAll('#figures figure').length >= 4";

/// Replaces the text in the editor as a person would: select all, type.
fn type_text(browser: &mut Browser, text: &str) {
    browser.eval("document.getElementById('editor').shadowRoot.querySelector('.cm-content').focus()");
    browser.ask("Input.dispatchKeyEvent", json!({ "type": "keyDown", "key": "a", "code": "KeyA", "windowsVirtualKeyCode": 65, "modifiers": 2, "commands": ["selectAll"] }));
    press(browser, "Backspace", 8);
    browser.insert(text);
}

/// Presses a key.
fn press(browser: &mut Browser, key: &str, code: u32) {
    for kind in ["rawKeyDown", "keyUp"] {
        let event = json!({ "type": kind, "key": key, "code": key, "windowsVirtualKeyCode": code });
        browser.ask("Input.dispatchKeyEvent", event);
    }
}

/// The rows of a table, by what is written above their cells.
fn rows_of(browser: &mut Browser, table: &str) -> Vec<BTreeMap<String, String>> {
    let rows = browser.eval(&format!(
        "(() => {{ const table = document.getElementById('{table}'); const heads = [...table.tHead.rows[0].cells].map((cell) => cell.innerText); \
         return [...table.tBodies[0].rows].map((row) => Object.fromEntries([...row.cells].map((cell, at) => [heads[at], cell.innerText]))); }})()"
    ));
    serde_json::from_value(rows).expect("rows of text")
}

/// Puts a file into an input.
fn choose_file(browser: &mut Browser, selector: &str, file: &Path) {
    let root = browser.ask("DOM.getDocument", json!({}))["root"]["nodeId"].clone();
    let found = browser.ask("DOM.querySelector", json!({ "nodeId": root, "selector": selector }));
    let files = [file.display().to_string()];
    browser.ask("DOM.setFileInputFiles", json!({ "nodeId": found["nodeId"], "files": files }));
}

fn request(laboratory: &Laboratory, head: &str) -> String {
    let mut stream = TcpStream::connect(laboratory.host()).expect("it listens");
    let host = laboratory.host();
    let head = head.replace("HOST", host);
    write!(stream, "{head}\r\nConnection: close\r\nContent-Length: 0\r\n\r\n").expect("sent");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("an answer");
    answer
}

#[test]
fn without_the_token_there_is_no_page() {
    let folder = folder();
    let laboratory = started(folder.path(), "mine.rhai");
    let (path, token) = laboratory.address.split_once("?token=").expect("a token");
    assert!(path.starts_with("http://127.0.0.1:") && token.len() == 64, "{}", laboratory.address);
    for head in [
        "GET / HTTP/1.1\r\nHost: HOST",
        "GET /app.js HTTP/1.1\r\nHost: HOST",
        "GET /api/start HTTP/1.1\r\nHost: HOST",
        "GET /?token=0000 HTTP/1.1\r\nHost: HOST",
        "POST /api/run HTTP/1.1\r\nHost: HOST\r\nOrigin: http://HOST",
    ] {
        let answer = request(&laboratory, head);
        assert!(answer.starts_with("HTTP/1.1 403"), "{head}\n{answer}");
    }
    let foreign = request(&laboratory, &format!("GET /?token={token} HTTP/1.1\r\nHost: rebound.example"));
    assert!(foreign.starts_with("HTTP/1.1 403"), "{foreign}");
    let entered = request(&laboratory, &format!("GET /?token={token} HTTP/1.1\r\nHost: HOST"));
    assert!(entered.starts_with("HTTP/1.1 200"), "{entered}");
    let cookie = entered.lines().find_map(|line| line.strip_prefix("set-cookie: ")).expect("a cookie");
    assert!(cookie.contains("HttpOnly") && cookie.contains("SameSite=Strict"), "{cookie}");
    let pair = cookie.split(';').next().expect("a pair");
    assert!(entered.contains("content-security-policy: default-src 'none'; script-src 'self'"), "{entered}");
    let again = request(&laboratory, &format!("GET /?token={token} HTTP/1.1\r\nHost: HOST"));
    assert!(again.starts_with("HTTP/1.1 403"), "the token works once: {again}");
    let known = request(&laboratory, &format!("GET /api/start HTTP/1.1\r\nHost: HOST\r\nCookie: {pair}"));
    assert!(known.starts_with("HTTP/1.1 200"), "{known}");
    let other =
        format!("POST /api/run HTTP/1.1\r\nHost: HOST\r\nCookie: {pair}\r\nOrigin: http://evil.example");
    assert!(request(&laboratory, &other).starts_with("HTTP/1.1 403"));
    let wrong = format!("POST /api/run HTTP/1.1\r\nHost: HOST\r\nCookie: {pair}\r\nOrigin: http://HOST");
    assert!(request(&laboratory, &wrong).starts_with("HTTP/1.1 400"), "an empty question is refused");
}

#[test]
fn a_mistake_is_shown_at_its_line_and_figures_return_when_it_is_mended() {
    let Some(program) = need::chromium() else { return };
    let folder = folder();
    let laboratory = started(folder.path(), "mine.rhai");
    let mut browser = Browser::open(&program, &laboratory.address, 1400, 900);
    browser.wait_for(FIGURES);
    type_text(&mut browser, &POLICY.replace("jobs.attained", "jobs.atained"));
    browser.wait_for("document.querySelector('#diagnostics li')");
    let said = browser.eval("document.querySelector('#diagnostics li').innerText");
    let said = said.as_str().expect("text").to_owned();
    assert!(said.starts_with("mine.rhai:5:") && said.contains("attained"), "{said}");
    let line = "(() => { const root = document.getElementById('editor').shadowRoot; \
                const top = root.querySelector('.cm-lint-marker-error').closest('.cm-gutterElement').getBoundingClientRect().top; \
                const numbers = [...root.querySelectorAll('.cm-lineNumbers .cm-gutterElement')]; \
                return numbers.find((one) => one.getBoundingClientRect().height && Math.abs(one.getBoundingClientRect().top - top) < 3)?.innerText; })()";
    assert_eq!(browser.eval(line), json!("5"), "the mark is beside its line");
    // The command line says the same.
    fs::write(folder.path().join("wrong.rhai"), POLICY.replace("jobs.attained", "jobs.atained"))
        .expect("written");
    let check = std::process::Command::new(env!("CARGO_BIN_EXE_rota"))
        .args(["policy", "check", "wrong.rhai"])
        .current_dir(folder.path())
        .output()
        .expect("rota starts");
    let told = String::from_utf8_lossy(&check.stderr).into_owned() + &String::from_utf8_lossy(&check.stdout);
    let message = said.lines().next().expect("a line").split_once(": ").expect("a place").1.to_owned();
    assert!(told.contains(&message), "{message}\n{told}");
    type_text(&mut browser, &POLICY.replace("jobs.attained", "jobs.arrival"));
    browser.wait_for("!document.querySelector('#diagnostics li')");
    browser.wait_for("document.querySelector('#table tbody th').innerText.includes('(edited)') && !document.querySelector('#table.stale')");
    assert_eq!(browser.complaints, "");
}

#[test]
fn a_slider_changes_numbers_and_curves() {
    let Some(program) = need::chromium() else { return };
    let folder = folder();
    let laboratory = started(folder.path(), "mine.rhai");
    let mut browser = Browser::open(&program, &laboratory.address, 1400, 900);
    browser.wait_for(FIGURES);
    browser.wait_for("document.getElementById('seeds').innerText.includes('10 of 10 seeds')");
    browser.eval(
        "window.before = document.querySelector('#table tbody').innerText; \
         window.curve = document.querySelector('figure[data-name=jct-cdf]').dataset.points; \
         document.querySelector('#choices input[aria-label^=load]').focus()",
    );
    for _ in 0..12 {
        press(&mut browser, "ArrowLeft", 37);
    }
    browser.wait_for("document.querySelector('#table tbody').innerText !== window.before && !document.querySelector('#table.stale')");
    browser.wait_for("document.querySelector('figure[data-name=jct-cdf]').dataset.points !== window.curve");
    // A parameter that the script declares is a slider too, and its value is in the command.
    browser.eval("document.querySelector('#parameters input[type=range]').focus()");
    for _ in 0..5 {
        press(&mut browser, "ArrowRight", 39);
    }
    browser.wait_for("document.getElementById('command')?.innerText.includes('--set mine.weight=1.05')");
    assert!(
        browser
            .eval("document.getElementById('command').innerText")
            .as_str()
            .expect("text")
            .contains("--jobs-per-hour")
    );
    assert_eq!(browser.complaints, "");
}

#[test]
fn a_bad_trace_is_refused_with_its_reason_and_a_good_one_is_run() {
    let Some(program) = need::chromium() else { return };
    let folder = folder();
    let laboratory = started(folder.path(), "mine.rhai");
    let mut browser = Browser::open(&program, &laboratory.address, 1400, 900);
    browser.wait_for(FIGURES);
    let bad = folder.path().join("bad.csv");
    fs::write(&bad, "job_id,arrival_s,gpus,duration_s,model\na,0,1,never,res18\n").expect("a trace");
    choose_file(&mut browser, "#choices input[type=file]", &bad);
    browser.wait_for("!document.getElementById('notice').hidden");
    let why = browser.eval("document.getElementById('notice').innerText");
    let why = why.as_str().expect("text");
    assert!(why.contains("bad.csv") && why.contains("never"), "{why}");
    let good = folder.path().join("good.csv");
    fs::write(&good, "job_id,arrival_s,gpus,duration_s,model\na,0,1,600,res18\nb,5,2,900,res18\n")
        .expect("a trace");
    choose_file(&mut browser, "#choices input[type=file]", &good);
    browser.wait_for("document.getElementById('seeds').innerText.startsWith('2 jobs of ')");
    assert_eq!(
        browser.complaints.replace(
            "\"Failed to load resource: the server responded with a status of 422 (Unprocessable Entity)\"\n",
            ""
        ),
        ""
    );
}

#[test]
fn a_job_is_explained_and_the_first_difference_is_named_as_on_the_command_line() {
    let Some(program) = need::chromium() else { return };
    let folder = folder();
    let rota = |args: &str| {
        let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_rota"));
        let output =
            command.args(args.split_whitespace()).current_dir(folder.path()).output().expect("rota starts");
        assert!(output.status.success(), "rota {args}\n{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).expect("text")
    };
    rota("simulate -p mine.rhai,fifo --workload small --jobs 150 --out runs -q");
    let jobs = fs::read_to_string(folder.path().join("runs/jobs-mine.csv"))
        .or_else(|_| fs::read_to_string(folder.path().join("runs/jobs.csv")))
        .unwrap_or_default();
    let job = jobs.lines().nth(40).and_then(|line| line.split(',').next()).unwrap_or("40").to_owned();
    let told = rota(&format!("explain runs {job} -p mine.rhai"));
    let laboratory = started(folder.path(), "mine.rhai");
    let mut browser = Browser::open(&program, &laboratory.address, 1400, 900);
    browser.wait_for(FIGURES);
    browser.wait_for("document.querySelector('#why input')");
    browser.eval(&format!(
        "(() => {{ const input = document.querySelector('#why input'); input.value = '{job}'; input.dispatchEvent(new Event('change')); }})()"
    ));
    browser.wait_for("document.getElementById('said').textContent.split('\\n').length > 1");
    let said = browser.eval("document.getElementById('said').textContent");
    let said = said.as_str().expect("text").lines().skip(1).collect::<Vec<_>>().join("\n");
    assert_eq!(said.trim(), told.trim(), "the page and the command line explain alike");
    browser.eval(
        "[...document.querySelectorAll('#why button')].find((one) => one.innerText.includes('fifo')).click()",
    );
    browser.wait_for("document.getElementById('said').textContent.includes('The first difference is at')");
    assert_eq!(browser.complaints, "");
}

#[test]
fn a_round_says_who_runs_where_and_what_the_others_lack() {
    let Some(program) = need::chromium() else { return };
    let folder = folder();
    let laboratory = Laboratory::start(folder.path(), &LOADED);
    let mut browser = Browser::open(&program, &laboratory.address, 1400, 900);
    browser.wait_for(FIGURES);
    browser.wait_for("document.querySelector('#rounds select').options.length === 3");
    browser.eval("(() => { const scrubber = document.querySelector('#rounds input[type=range]'); scrubber.value = 20; scrubber.dispatchEvent(new Event('input')); })()");
    browser
        .wait_for("document.querySelector('#rounds [role=status]').innerText.startsWith('decision 20 at ')");
    let rows = rows_of(&mut browser, "round-jobs");
    assert!(rows.iter().any(|row| row["what becomes of it"] == "goes on"), "{rows:?}");
    let waits = |row: &&BTreeMap<String, String>| {
        row["what becomes of it"] == "waits" && row["where, or for want of what"].contains("are free")
    };
    let job = rows.iter().find(waits).unwrap_or_else(|| panic!("{rows:?}"))["job"].clone();
    // The queue is in the order of its key, whose values are there.
    let key = "jobs.gpus * param(\"weight\") + jobs.attained";
    let queued = rows.iter().filter(|row| !row["#"].is_empty());
    let keys: Vec<f64> = queued.map(|row| row[key].parse().expect("a number")).collect();
    assert!(keys.len() > 10 && keys.is_sorted() && keys.first() < keys.last(), "{keys:?}");
    let panel = browser.eval("document.querySelector('.panel').innerText");
    let panel = panel.as_str().expect("text");
    assert!(panel.contains("mine.rhai:5") && panel.contains("smallest first"), "{panel}");
    // What the stages cost adds up to what the decision cost.
    let costs = browser.eval("[...document.querySelectorAll('.panel .costs tbody tr')].map((row) => [row.cells[0].innerText, Number(row.cells[2].innerText.replace(/,/g, ''))])");
    let costs = costs.as_array().expect("rows").clone();
    let (all, stages) = costs.split_last().expect("a sum");
    let sum: u64 = stages.iter().filter_map(|row| row[1].as_u64()).sum();
    assert!(stages.iter().any(|row| row[0] == "order") && sum > 0, "{costs:?}");
    assert_eq!((&all[0], all[1].as_u64()), (&json!("all"), Some(sum)), "{costs:?}");
    browser.eval(&format!("document.querySelector('#rounds input[type=text]').value = '{job}'"));
    browser.eval("[...document.querySelectorAll('#rounds button')].find((one) => one.innerText.startsWith('next change')).click()");
    browser.wait_for(&format!(
        "[...document.querySelectorAll('#round-jobs tbody tr')].some((row) => row.cells[1].innerText === '{job}' && row.innerText.includes('starts'))"
    ));
    assert_eq!(browser.complaints, "");
}

#[test]
fn texts_are_saved_and_changes_by_others_are_followed() {
    let Some(program) = need::chromium() else { return };
    let folder = folder();
    let file = folder.path().join("mine.rhai");
    let laboratory = started(folder.path(), "mine.rhai");
    let mut browser = Browser::open(&program, &laboratory.address, 1400, 900);
    browser.wait_for(FIGURES);
    let mine = POLICY.replace("jobs.attained", "jobs.arrival");
    type_text(&mut browser, &mine);
    browser.wait_for("document.querySelector('#tabs button').innerText.includes('*')");
    browser.eval("document.getElementById('save').click()");
    browser.wait_for("document.getElementById('status').innerText.includes('saved') || !document.querySelector('#tabs button').innerText.includes('*')");
    assert_eq!(fs::read_to_string(&file).expect("the file"), mine);
    fs::write(&file, POLICY.replace("weight", "strength")).expect("by another editor");
    browser.wait_for("document.getElementById('parameters').innerText.includes('strength')");
    assert_eq!(browser.complaints, "");
}

#[test]
fn a_hostile_name_stays_text_and_nothing_sticks_out_on_a_phone() {
    let Some(program) = need::chromium() else { return };
    let folder = folder();
    let name = "<script>document.title='taken'<img src=x onerror=alert(1)>.rhai";
    fs::write(folder.path().join(name), POLICY).expect("a policy");
    let laboratory = started(folder.path(), name);
    let mut browser = Browser::open(&program, &laboratory.address, 390, 844);
    browser.wait_for(FIGURES);
    assert_eq!(browser.eval("document.title"), json!("rota play"));
    assert_eq!(browser.eval("document.querySelectorAll('img, table script').length"), json!(0));
    assert_eq!(
        browser.eval("document.querySelector('#table tbody th').innerText.includes('<script>')"),
        json!(true)
    );
    let widths = browser.eval("[document.documentElement.scrollWidth, innerWidth]");
    assert!(widths[0].as_u64() <= widths[1].as_u64(), "{widths}");
    assert_eq!(browser.complaints, "");
}

#[test]
fn two_policies_are_side_by_side_at_the_first_decision_in_which_they_differ() {
    let Some(program) = need::chromium() else { return };
    let folder = folder();
    let laboratory = Laboratory::start(folder.path(), &LOADED);
    let mut browser = Browser::open(&program, &laboratory.address, 1400, 900);
    browser.wait_for(FIGURES);
    browser.wait_for("document.querySelectorAll('#rounds select')[1].options.length === 3");
    browser.eval("(() => { const beside = document.querySelectorAll('#rounds select')[1]; beside.value = '1'; beside.dispatchEvent(new Event('change')); })()");
    browser.eval("document.getElementById('parting').click()");
    let said = "document.querySelector('#rounds [role=status]').innerText";
    browser.wait_for(&format!("{said}.includes('beside decision') && {said}.includes('marked ≠')"));
    let before = browser.eval("Number(document.querySelector('#rounds input[type=range]').value)");
    let (own, other) = (rows_of(&mut browser, "round-jobs"), rows_of(&mut browser, "round-jobs-beside"));
    let differs =
        |rows: &[BTreeMap<String, String>]| rows.iter().filter(|row| row["job"].contains('≠')).count();
    assert!(differs(&own) > 0 && differs(&other) > 0, "{own:?}\n{other:?}");
    // In every decision before it, nobody fares differently.
    assert!(before.as_u64().is_some_and(|decision| decision > 0), "{before}");
    browser.eval(
        "[...document.querySelectorAll('#rounds button')].find((one) => one.innerText === 'back').click()",
    );
    browser.wait_for(&format!("{said}.includes('every job fares alike')"));
    assert_eq!(browser.complaints, "");
}

#[test]
fn what_is_taken_along_says_what_the_page_says() {
    let Some(program) = need::chromium() else { return };
    let folder = folder();
    let laboratory = started(folder.path(), "mine.rhai");
    let mut browser = Browser::open(&program, &laboratory.address, 1400, 900);
    browser.wait_for(FIGURES);
    browser.wait_for("document.getElementById('study')");
    let cell = browser.eval(
        "document.querySelectorAll('#table tbody tr td')[1].querySelector('span').firstChild.textContent",
    );
    let figure = cell.as_str().expect("text").to_owned();
    let rota = |words: &[&str]| {
        let output = std::process::Command::new(env!("CARGO_BIN_EXE_rota"))
            .args(words)
            .current_dir(folder.path())
            .output()
            .expect("rota starts");
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(output.status.success(), "{words:?}: {said}\n{}", String::from_utf8_lossy(&output.stderr));
        said
    };
    // The command line, typed.
    let command = browser.eval("document.getElementById('command').innerText");
    let words: Vec<&str> = command.as_str().expect("text").split_whitespace().skip(1).collect();
    let told = rota(&words);
    assert!(told.contains(&figure), "{figure} is in\n{told}");
    // The result folder, saved and unpacked.
    let downloads = folder.path().join("downloads");
    fs::create_dir(&downloads).expect("a folder");
    let to = json!({ "behavior": "allow", "downloadPath": downloads });
    browser.ask("Page.setDownloadBehavior", to);
    for label in ["save the result folder", "save report.html"] {
        browser.eval(&format!("[...document.querySelectorAll('#same button')].find((one) => one.innerText === '{label}').click()"));
    }
    let archive = appears(&mut browser, &downloads.join("rota-play.zip"));
    let mut archive = zip::ZipArchive::new(std::io::Cursor::new(archive)).expect("an archive");
    archive.extract(folder.path()).expect("it is unpacked");
    rota(&["report", "rota-play"]);
    let again = fs::read_to_string(folder.path().join("rota-play/report.html")).expect("a page");
    assert!(again.contains(&figure), "{figure} is in the report made of the folder");
    let explained = rota(&["explain", "rota-play", "3", "-p", "fifo"]);
    assert!(explained.starts_with("Job 3 ") && explained.contains("under fifo"), "{explained}");
    let page = String::from_utf8(appears(&mut browser, &downloads.join("report.html"))).expect("a page");
    assert!(page.contains(&figure) && page.contains("mine.rhai"), "the report has the figures");
    // The study script, run.
    let study = browser.eval("document.getElementById('study').textContent");
    let study = study.as_str().expect("text").replace("seed: 1..=10", "seed: 1..=2");
    fs::write(folder.path().join("study.rhai"), study).expect("written");
    let ran = rota(&["study", "study.rhai"]);
    assert!(ran.contains("mine.rhai") && ran.contains("fifo"), "{ran}");
    assert_eq!(browser.complaints, "");
}

/// A file that the browser writes, once it is whole.
fn appears(browser: &mut Browser, path: &Path) -> Vec<u8> {
    for _ in 0..1_000 {
        if path.exists() {
            return fs::read(path).expect("a file");
        }
        browser.eval("new Promise((done) => setTimeout(done, 20))");
    }
    panic!("{} never came", path.display());
}

#[test]
fn everything_has_a_name_enough_contrast_and_comes_from_here() {
    let Some(program) = need::chromium() else { return };
    let folder = folder();
    let laboratory = started(folder.path(), "mine.rhai+tune");
    let mut browser = Browser::open(&program, &laboratory.address, 1400, 900);
    browser.wait_for(FIGURES);
    browser.wait_for("document.getElementById('study') && document.querySelector('#parameters input')");
    browser.eval("(() => { const beside = document.querySelectorAll('#rounds select')[1]; beside.value = '1'; beside.dispatchEvent(new Event('change')); document.getElementById('parting').click(); })()");
    browser.wait_for("document.querySelectorAll('#round-jobs-beside tbody tr').length > 0");
    for scheme in ["light", "dark"] {
        browser.scheme(scheme);
        assert_eq!(
            readable::faint_texts(&mut browser),
            json!([]),
            "{scheme}: texts with too little contrast"
        );
    }
    assert_eq!(readable::nameless(&mut browser), Vec::<String>::new(), "what can be used has a name");
    let foreign = "performance.getEntriesByType('resource').map((one) => one.name).filter((name) => !name.startsWith(location.origin + '/'))";
    assert_eq!(browser.eval(foreign), json!([]), "nothing is loaded from elsewhere");
    assert_eq!(browser.complaints, "");
}

#[test]
fn the_page_is_used_with_the_keyboard_alone() {
    let Some(program) = need::chromium() else { return };
    let folder = folder();
    let laboratory = started(folder.path(), "mine.rhai+tune");
    let mut browser = Browser::open(&program, &laboratory.address, 1400, 900);
    browser.wait_for(FIGURES);
    // Every control is reached in turn, and the editor is left again.
    let reached = "(() => { const one = document.activeElement; const inner = one.shadowRoot?.activeElement ?? one; \
                   return `${inner.tagName} ${inner.getAttribute('aria-label') ?? inner.innerText?.slice(0, 30) ?? ''}`; })()";
    let mut seen = Vec::new();
    for _ in 0..90 {
        if seen.last().is_some_and(|last: &String| last.contains("DIV")) {
            // In the editor Tab writes; Escape and then Tab leaves it.
            press(&mut browser, "Escape", 27);
        }
        press(&mut browser, "Tab", 9);
        seen.push(browser.eval(reached).as_str().unwrap_or("").to_owned());
    }
    for wanted in [
        "BUTTON mine",
        "INPUT policy to edit",
        "SELECT cluster",
        "CANVAS which job",
        "INPUT decision",
        "BUTTON forward",
        "INPUT job to explain",
    ] {
        assert!(seen.iter().any(|one| one.starts_with(wanted)), "{wanted} is not reached: {seen:#?}");
    }
    // The other part of the policy by the arrow key.
    browser.eval("document.querySelector('#tabs [aria-selected=true]').focus()");
    press(&mut browser, "ArrowRight", 39);
    browser.wait_for("document.querySelectorAll('#tabs button')[1].getAttribute('aria-selected') === 'true'");
    assert_eq!(browser.complaints, "");
}

#[test]
fn the_reference_completes_words_and_shipped_sources_are_there_to_begin_with() {
    let Some(program) = need::chromium() else { return };
    let folder = folder();
    let laboratory = started(folder.path(), "mine.rhai");
    let mut browser = Browser::open(&program, &laboratory.address, 1400, 900);
    browser.wait_for(FIGURES);
    type_text(&mut browser, "fn order(jobs, now) { rank(jobs");
    browser.insert(".attai");
    let listed = "document.getElementById('editor').shadowRoot.querySelector('.cm-tooltip-autocomplete')?.innerText.includes('attained')";
    browser.wait_for(listed);
    press(&mut browser, "Escape", 27);
    type_text(&mut browser, POLICY);
    browser.wait_for("!document.querySelector('#tabs button').innerText.includes('*')");
    browser.eval("(() => { const input = document.querySelector('#policy-row input'); input.value = 'srtf+tune'; input.dispatchEvent(new Event('change')); })()");
    browser.wait_for("[...document.querySelectorAll('#tabs button')].map((one) => one.innerText).join() === 'srtf (copy),tune (copy)'");
    browser.wait_for("document.getElementById('editor').shadowRoot.querySelector('.cm-content').innerText.includes('jobs.remaining')");
    assert_eq!(browser.complaints, "");
}
