//! The report in a real browser: scripts run without an error, tables sort and filter, the timeline draws and zooms, and
//! nothing sticks out on a phone. Needs Chromium.

use std::fs;
use std::path::Path;
use std::process::Command;

use rota_test_support::need;
use tempfile::TempDir;

/// The page after its scripts and `then` have run in a window of a size, and the browser's complaints.
fn shown(browser: &Path, page: &Path, size: &str, then: &str) -> (String, String) {
    let home = tempfile::tempdir().expect("a folder");
    let text = fs::read_to_string(page).expect("a page");
    let copy = home.path().join("page.html");
    fs::write(&copy, format!("{text}<script>{then}</script>")).expect("a copy");
    let output = Command::new(browser)
        .args([
            "--headless=new",
            "--no-sandbox",
            "--disable-gpu",
            "--enable-logging=stderr",
            "--virtual-time-budget=10000",
        ])
        .arg(format!("--window-size={size}"))
        .arg(format!("--user-data-dir={}", home.path().join("profile").display()))
        .arg("--dump-dom")
        .arg(format!("file://{}", copy.display()))
        .output()
        .expect("the browser starts");
    let complaints: Vec<String> = String::from_utf8_lossy(&output.stderr)
        .lines()
        .filter(|line| line.contains("CONSOLE"))
        .map(str::to_owned)
        .collect();
    (String::from_utf8_lossy(&output.stdout).into_owned(), complaints.join("\n"))
}

fn rota(dir: &Path, args: &str) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_rota"));
    let output = command.args(args.split_whitespace()).current_dir(dir).output().expect("the program starts");
    assert!(output.status.success(), "rota {args}\n{}", String::from_utf8_lossy(&output.stderr));
}

fn results() -> TempDir {
    let dir = tempfile::tempdir().expect("a folder");
    rota(dir.path(), "simulate -p fifo,las+tune --workload small --out a -q");
    dir
}

/// The text between two marks of a page.
fn between<'a>(text: &'a str, from: &str, to: &str) -> &'a str {
    text.split(from).nth(1).and_then(|rest| rest.split(to).next()).unwrap_or("")
}

#[test]
fn the_page_fills_its_table_and_draws_the_timeline_without_a_complaint() {
    let Some(browser) = need::chromium() else { return };
    let dir = results();
    let (page, complaints) = shown(&browser, &dir.path().join("a/report.html"), "1200,900", "");
    assert_eq!(complaints, "");
    assert_eq!(between(&page, "id=\"job-count\" class=\"quiet\" role=\"status\">", "<"), "100 of 200 jobs");
    let drawn: usize = between(&page, "data-drawn=\"", "\"").parse().expect("the timeline says what it drew");
    assert!(drawn > 100, "only {drawn} bars");
}

#[test]
fn the_table_filters_and_sorts_and_the_timeline_zooms() {
    let Some(browser) = need::chromium() else { return };
    let dir = results();
    let act = r##"
        const filter = document.getElementById("job-filter");
        filter.value = "finished";
        filter.dispatchEvent(new Event("input"));
        const buttons = [...document.querySelectorAll("#jobs thead button")];
        const jct = buttons.find((b) => b.textContent.startsWith("JCT"));
        jct.click();
        jct.click();
        const place = buttons.indexOf(jct);
        const cells = [...document.querySelectorAll("#jobs tbody tr")].map((tr) => Number(tr.cells[place].textContent.replace(/[^0-9.]/g, "")));
        const falls = cells.every((value, at) => at === 0 || cells[at - 1] >= value);
        const whole = document.getElementById("timeline").dataset.view;
        for (let n = 0; n < 3; n++) document.querySelector("button[data-zoom='0.6']").click();
        setTimeout(() => {
            const seen = document.getElementById("timeline").dataset.view;
            document.title = `sorted ${falls} of ${cells.length}, zoomed ${seen !== whole}`;
        }, 500);"##;
    let (page, complaints) = shown(&browser, &dir.path().join("a/report.html"), "1200,900", act);
    assert_eq!(complaints, "");
    assert_eq!(between(&page, "<title>", "</title>"), "sorted true of 100, zoomed true");
}

#[test]
fn nothing_sticks_out_on_a_phone() {
    let Some(browser) = need::chromium() else { return };
    let dir = results();
    let tell = "document.title = `${document.documentElement.scrollWidth} in ${innerWidth}`;";
    let (page, _) = shown(&browser, &dir.path().join("a/report.html"), "500,900", tell);
    let title = between(&page, "<title>", "</title>");
    let (wide, room) = title.split_once(" in ").expect("two widths");
    let (wide, room): (u32, u32) = (wide.parse().expect("a width"), room.parse().expect("a width"));
    assert!(wide <= room, "the page is {wide} px wide in a window of {room}");
}

#[test]
fn job_cards_on_a_phone_stay_clear_of_what_follows_them() {
    let Some(browser) = need::chromium() else { return };
    let dir = results();
    let tell = r##"
        const box = document.getElementById("jobs").parentElement;
        const isHeld = box.scrollHeight <= box.clientHeight || getComputedStyle(box).overflowY === "auto";
        const headings = [...document.querySelectorAll("#jobs thead button")].map((b) => b.textContent);
        document.title = `held ${isHeld}, deadlines ${headings.includes("deadline met")}`;"##;
    let (page, _) = shown(&browser, &dir.path().join("a/report.html"), "500,900", tell);
    // No job of this workload has a deadline, so there is no column for it.
    assert_eq!(between(&page, "<title>", "</title>"), "held true, deadlines false");
}

#[test]
fn several_folders_are_one_page_with_their_differences() {
    let dir = results();
    rota(dir.path(), "simulate -p fifo,las+tune --workload small --round 10m --out b -q");
    rota(dir.path(), "report a b --together both.html");
    let text = fs::read_to_string(dir.path().join("both.html")).expect("a page");
    assert!(text.contains("b against a") && text.contains("round: "), "the difference is not shown");
    let Some(browser) = need::chromium() else { return };
    let (page, complaints) = shown(&browser, &dir.path().join("both.html"), "1200,900", "");
    assert_eq!(complaints, "");
    assert!(page.contains("100 of 200 jobs"), "the table is empty");
}
