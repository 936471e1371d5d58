//! How long `rota play` takes from a key press to new figures, measured in the page: `cargo bench --bench play`.
//!
//! The default workload, the default policies, a real browser. Every key press makes a text that was not run before. Next to the
//! times there are the tasks that kept the page from answering for more than 50 ms. `ROTA_PICTURES=FOLDER` also writes pictures
//! of the page, wide and narrow, light and dark.

#[path = "../play/browser.rs"]
mod browser;
#[path = "../play/laboratory.rs"]
mod laboratory;

use browser::Browser;
use laboratory::Laboratory;
use rota_test_support::need;
use serde_json::json;

/// Key presses that count, after a few that do not.
const N_KEYS: usize = 60;
const N_BEFORE: usize = 5;

fn main() {
    let Some(program) = need::chromium() else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let laboratory = Laboratory::start(folder.path(), &["--port", "0"]);
    println!("{}", laboratory.host());
    let mut browser = Browser::open(&program, &laboratory.address, 1400, 900);
    browser.wait_for("document.getElementById('status').innerText.startsWith('new figures')");
    browser.eval("document.getElementById('editor').shadowRoot.querySelector('.cm-content').focus()");
    browser.eval(
        "window.long = []; new PerformanceObserver((list) => list.getEntries().forEach((one) => window.long.push(one.duration))).observe({ type: 'longtask' })",
    );
    // CPU time, which other programs on the machine do not lengthen.
    browser.ask("Performance.enable", json!({ "timeDomain": "threadTicks" }));
    let mut before = 0.0;
    for key in 0..N_KEYS + N_BEFORE {
        if key == N_BEFORE {
            before = page_work_s(&mut browser);
            browser.eval("performance.clearMarks(); window.long.length = 0");
        }
        // A blank changes the text and not its meaning: only the edited policy is run again.
        browser.insert(" ");
        let n = if key < N_BEFORE { key + 1 } else { key - N_BEFORE + 1 };
        browser.wait_for(&format!("performance.getEntriesByName('rota-answer').length >= {n}"));
    }
    let work_ms = (page_work_s(&mut browser) - before) * 1e3 / N_KEYS as f64;
    let took = browser.eval("performance.getEntriesByName('rota-answer').map((mark) => mark.detail)");
    let mut took: Vec<u64> = took.as_array().into_iter().flatten().filter_map(|ms| ms.as_u64()).collect();
    took.sort_unstable();
    let at = |part: f64| took[((took.len() - 1) as f64 * part).round() as usize];
    println!(
        "key press to new figures, {} presses: p50 {} ms, p95 {} ms, most {} ms",
        took.len(),
        at(0.5),
        at(0.95),
        at(1.0)
    );
    println!("work of the page: {work_ms:.0} ms of CPU for each key press, with everything that follows it");
    println!("tasks over 50 ms: {}", browser.eval("JSON.stringify(window.long.map(Math.round))"));
    println!("complaints: {:?}", browser.complaints);
    let Ok(pictures) = std::env::var("ROTA_PICTURES") else { return };
    browser.wait_for("document.getElementById('seeds').innerText.includes('10 of 10')");
    browser.eval("document.getElementById('timeline').scrollIntoView()");
    browser.wait_for("Number(document.querySelector('#timeline canvas').dataset.drawn) > 0");
    browser.eval("scrollTo(0, 0)");
    for (name, width) in [("wide", 1400), ("narrow", 390)] {
        for scheme in ["light", "dark"] {
            browser.resize(width, 900);
            browser.scheme(scheme);
            picture(&mut browser, &format!("{pictures}/{name}-{scheme}.png.base64"));
        }
    }
}

/// Writes a picture of the whole page, as base64.
fn picture(browser: &mut Browser, file: &str) {
    browser.eval("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(done, 300))))");
    let taken =
        browser.ask("Page.captureScreenshot", json!({ "format": "png", "captureBeyondViewport": true }));
    std::fs::write(file, taken["data"].as_str().expect("a picture")).expect("written");
}

/// CPU seconds that the page's tasks took so far.
fn page_work_s(browser: &mut Browser) -> f64 {
    let metrics = browser.ask("Performance.getMetrics", json!({}));
    let named = |metric: &&serde_json::Value| metric["name"] == "TaskDuration";
    metrics["metrics"]
        .as_array()
        .into_iter()
        .flatten()
        .find(named)
        .and_then(|metric| metric["value"].as_f64())
        .unwrap_or(0.0)
}
