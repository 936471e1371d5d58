//! `rota-agent measure` as `rota profile` uses it: what it tells of a run, and that nothing outlives it.

mod common;

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Command, Stdio};

use common::{AGENT, eventually, measure_spec as spec};
use rota_agent::launch::survivors;
use rota_transport::measure::{MeasureEndHow, MeasureEvent, MeasureOrder, MeasureSpec};

fn start(spec: &MeasureSpec) -> (Child, impl Iterator<Item = MeasureEvent> + use<>) {
    let mut command = Command::new(AGENT);
    let mut child =
        command.arg("measure").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("starts");
    tell(&mut child, &serde_json::to_string(spec).expect("JSON"));
    let lines = BufReader::new(child.stdout.take().expect("a pipe")).lines();
    (child, lines.map_while(Result::ok).map(|line| serde_json::from_str(&line).expect("an event")))
}

fn tell(child: &mut Child, line: &str) {
    let input = child.stdin.as_mut().expect("a pipe");
    input.write_all(format!("{line}\n").as_bytes()).expect("heard");
}

fn n_alive(folder: &tempfile::TempDir) -> usize {
    survivors::marked(&format!("1.1@{}", folder.path().display())).len()
}

#[test]
fn reports_lie_on_the_line_that_the_rate_says_and_a_stop_keeps_the_work() {
    let folder = tempfile::tempdir().expect("a folder");
    let (mut child, mut events) = start(&spec(&folder, &["rota-agent", "emulate", "--rate", "100"]));
    let mut reports = Vec::new();
    for event in events.by_ref() {
        if let MeasureEvent::Progress { at_s, iterations } = event {
            reports.push((at_s, iterations));
            if reports.len() == 20 {
                tell(&mut child, &serde_json::to_string(&MeasureOrder::Stop).expect("JSON"));
                break;
            }
        }
    }
    let (first, last) = (reports[0], reports[19]);
    let rate = (last.1 - first.1) / (last.0 - first.0);
    // However late a report is read, its time is the job's own.
    assert!((rate / 100.0 - 1.0).abs() < 0.05, "{rate} iterations a second");
    let rest: Vec<MeasureEvent> = events.collect();
    assert!(rest.iter().any(|event| matches!(event, MeasureEvent::Checkpointed { .. })), "{rest:?}");
    let Some(MeasureEvent::Ended(end)) = rest.last() else { panic!("{rest:?}") };
    assert_eq!(end.how, MeasureEndHow::Stopped);
    assert!(child.wait().expect("ended").success());
    assert_eq!(n_alive(&folder), 0);
}

#[test]
fn who_started_it_goes_away_and_so_does_the_run() {
    let folder = tempfile::tempdir().expect("a folder");
    let script = "echo up; (setsid sleep 1000 &) ; sleep 1000";
    let (mut child, mut events) = start(&spec(&folder, &["/bin/sh", "-c", script]));
    let is_up = |event: MeasureEvent| matches!(event, MeasureEvent::Line { text, .. } if text == "up");
    assert!(events.any(is_up));
    drop(child.stdin.take());
    let Some(MeasureEvent::Ended(end)) = events.last() else { panic!("no end was told") };
    assert_eq!(end.how, MeasureEndHow::Stopped);
    child.wait().expect("ended");
    assert_eq!(n_alive(&folder), 0);
}

#[test]
fn a_measurer_that_is_killed_takes_its_run_with_it() {
    let folder = tempfile::tempdir().expect("a folder");
    let (mut child, mut events) = start(&spec(&folder, &["/bin/sh", "-c", "echo up; sleep 1000"]));
    assert!(events.any(|event| matches!(event, MeasureEvent::Line { .. })));
    child.kill().expect("killed");
    child.wait().expect("ended");
    // Its shim's lease ends, because it is no longer renewed.
    eventually("nothing is left", || (n_alive(&folder) == 0).then_some(()));
}
