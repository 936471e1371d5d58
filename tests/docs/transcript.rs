//! A transcript: commands after `$ `, each with what it prints below it. Times that depend on the machine are not compared:
//! they are written as they were.

use std::path::Path;

use regex::Regex;

/// Types the commands of a transcript again; its lines as they are now.
pub(crate) fn again(dir: &Path, lines: &[String]) -> Vec<String> {
    let mut now = Vec::new();
    for line in lines.iter().filter(|line| line.starts_with("$ ")) {
        let output = super::shell(dir, &line[2..]);
        assert!(output.status.success(), "{line}: {}", String::from_utf8_lossy(&output.stderr));
        now.push(line.clone());
        let text = String::from_utf8(output.stdout).expect("text");
        now.extend(text.lines().map(|line| line.trim_end().to_owned()));
    }
    now
}

/// Complains about the first line that differs in more than a time.
pub(crate) fn compare(place: &str, then: &[String], now: &[String]) {
    for (index, (then, now)) in then.iter().zip(now).enumerate() {
        assert_eq!(without_times(then), without_times(now), "{place}, line {} of the block", index + 1);
    }
    assert_eq!(then.len(), now.len(), "{place}: another number of lines\n{}", now.join("\n"));
}

/// A line without what depends on the machine: lengths of real time, and the last column of the results, the wall time.
fn without_times(line: &str) -> String {
    let took = Regex::new(r"\b(in|took) \d[\d.]* ?(ms|s|min)\b").expect("a pattern");
    let wall = Regex::new(r"\s+\d+\.\d\d\s*$").expect("a pattern");
    let line = took.replace_all(line, "$1 TIME").into_owned();
    wall.replace(&line, " WALL").into_owned()
}

#[test]
fn only_times_are_left_out() {
    assert_eq!(without_times("200 jobs in 31 ms"), without_times("200 jobs in 1.2 s"));
    assert_eq!(without_times(" las   12.3   0.03"), without_times(" las   12.3   1.17"));
    assert_ne!(without_times(" las   12.3   0.03"), without_times(" las   12.4   0.03"));
}
