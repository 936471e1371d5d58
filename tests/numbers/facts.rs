//! `docs/numbers.toml`: which commands there are, and which figures of which documents follow from what they say.

use std::collections::BTreeMap;

use serde::Deserialize;

use crate::pattern;

/// The file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Facts {
    /// Commands that are run by every test.
    pub(crate) runs: BTreeMap<String, String>,
    /// Commands that take longer: for `./dev numbers` and `./dev full`.
    pub(crate) long: BTreeMap<String, String>,
    /// By document.
    pub(crate) facts: BTreeMap<String, Vec<Fact>>,
}

/// Figures of one place in a document.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Fact {
    /// The words around them, as in [`pattern`].
    pub(crate) text: String,
    /// What each of them is, in order: an expression, or `RUN ~ PATTERN` for figures that a run prints.
    pub(crate) is: Vec<String>,
    /// The same for each of these in place of `$`: rows of a table.
    #[serde(default)]
    pub(crate) each: Vec<String>,
}

impl Fact {
    /// One for each row.
    pub(crate) fn rows(&self) -> Vec<Fact> {
        if self.each.is_empty() {
            return vec![self.clone()];
        }
        let row = |name: &String| Fact {
            text: self.text.replace('$', name),
            is: self.is.iter().map(|expression| expression.replace('$', name)).collect(),
            each: Vec::new(),
        };
        self.each.iter().map(row).collect()
    }

    /// The runs it speaks of.
    pub(crate) fn runs(&self) -> Vec<&str> {
        self.is.iter().flat_map(|expression| runs_of(expression)).collect()
    }

    /// The values of its figures by what runs said, each with the expression it is of.
    pub(crate) fn values(&self, said: &dyn Fn(&str) -> String) -> Result<Vec<(f64, &str)>, String> {
        let mut values = Vec::new();
        for expression in &self.is {
            match expression.split_once(" ~ ") {
                Some((run, words)) => {
                    values.extend(
                        printed(&said(run), words)?.into_iter().map(|value| (value, expression.as_str())),
                    );
                }
                None => values.push((evaluate(expression, said)?, expression.as_str())),
            }
        }
        Ok(values)
    }
}

/// The runs that an expression speaks of: what stands before ` ~ `, or before the first `:` or `/` of a word.
pub(crate) fn runs_of(expression: &str) -> Vec<&str> {
    if let Some((run, _)) = expression.split_once(" ~ ") {
        return vec![run];
    }
    let words = expression.split_whitespace().filter(|word| word.len() > 1 && word.parse::<f64>().is_err());
    words.filter_map(|word| word.split([':', '/']).next()).collect()
}

/// Figures that a run printed.
fn printed(text: &str, words: &str) -> Result<Vec<f64>, String> {
    let places = pattern::find(text, words).map_err(|why| format!("the output: {why}"))?;
    places.into_iter().map(|place| number(&text[place.range])).collect()
}

fn number(written: &str) -> Result<f64, String> {
    let plain = written.replace(',', "").replace('−', "-");
    plain.parse().map_err(|_| format!("`{written}` is no number"))
}

/// From left to right: `a / b - 1 * 100` is ((a / b) - 1) x 100.
fn evaluate(expression: &str, said: &dyn Fn(&str) -> String) -> Result<f64, String> {
    let mut words = expression.split_whitespace();
    let mut value = operand(words.next().unwrap_or(""), said)?;
    while let Some(sign) = words.next() {
        let other = operand(words.next().unwrap_or(""), said)?;
        value = match sign {
            "+" => value + other,
            "-" => value - other,
            "*" => value * other,
            "/" => value / other,
            _ => return Err(format!("`{expression}`: `{sign}` is none of + - * /")),
        };
    }
    Ok(value)
}

/// A number, `RUN:POLICY:FIELD` of a run's summary, `POLICY@LOAD` where loads differ, or a path through what a run
/// printed as JSON: `RUN/rows[policy=las][at/trace=MIX1]/jobs`. `avg_jct_h` is `avg_jct_s` in hours.
fn operand(word: &str, said: &dyn Fn(&str) -> String) -> Result<f64, String> {
    if let Ok(number) = word.parse() {
        return Ok(number);
    }
    let (run, path) = match word.split_once(':') {
        Some((run, rest)) if !run.contains('/') => {
            let (policy, field) =
                rest.split_once(':').ok_or_else(|| format!("`{word}`: RUN:POLICY:FIELD is expected"))?;
            let (policy, load) = policy.split_once('@').map_or((policy, ""), |(policy, load)| (policy, load));
            let load = if load.is_empty() { String::new() } else { format!("[jobs_per_hour={load}]") };
            (run, format!("runs[policy={policy}]{load}/{field}"))
        }
        _ => {
            let (run, path) = word.split_once('/').ok_or_else(|| format!("`{word}` is no operand"))?;
            (run, path.to_owned())
        }
    };
    let text = said(run);
    let json =
        serde_json::from_str(&text).map_err(|error| format!("{run} printed no JSON: {error}: {text}"))?;
    follow(&json, &path).map_err(|why| format!("{run}: {why}"))
}

/// The number at the end of a path: names joined by `/`, each with conditions in brackets where it is a list.
fn follow(json: &serde_json::Value, path: &str) -> Result<f64, String> {
    let is_inside = |at: usize| path[..at].matches('[').count() > path[..at].matches(']').count();
    let end = path.match_indices('/').map(|(at, _)| at).find(|at| !is_inside(*at));
    let (step, rest) = end.map_or((path, None), |at| (&path[..at], Some(&path[at + 1..])));
    let (name, conditions) = step.split_once('[').unwrap_or((step, ""));
    let Some(rest) = rest else {
        let hours =
            || json[format!("{}_s", name.strip_suffix("_h")?)].as_f64().map(|seconds| seconds / 3600.0);
        return json[name].as_f64().or_else(hours).ok_or_else(|| format!("there is no number `{name}`"));
    };
    if conditions.is_empty() {
        return follow(&json[name], rest);
    }
    let holds = |value: &serde_json::Value, condition: &str| {
        let (field, wanted) = condition.split_once('=').unwrap_or((condition, ""));
        let value = value.pointer(&format!("/{field}")).unwrap_or(&serde_json::Value::Null);
        let number = value.as_f64().zip(wanted.parse().ok());
        value.as_str() == Some(wanted) || number.is_some_and(|(a, b): (f64, f64)| a == b)
    };
    let conditions: Vec<&str> = conditions.trim_end_matches(']').split("][").collect();
    let found: Vec<_> = json[name]
        .as_array()
        .into_iter()
        .flatten()
        .filter(|value| conditions.iter().all(|condition| holds(value, condition)))
        .collect();
    match found[..] {
        [one] => follow(one, rest),
        _ => Err(format!("there are {} `{step}`", found.len())),
    }
}

#[test]
fn expressions_speak_of_what_runs_said() {
    let json =
        r#"{"runs": [{"policy": "las", "avg_jct_s": 7200.0}, {"policy": "fifo+tune", "avg_jct_s": 3600.0}]}"#;
    let said = |_: &str| json.to_owned();
    assert_eq!(evaluate("a:las:avg_jct_h", &said), Ok(2.0));
    assert_eq!(evaluate("a:fifo+tune:avg_jct_h / a:las:avg_jct_h - 1 * 100", &said), Ok(-50.0));
    assert_eq!(evaluate("a/runs[policy=las]/avg_jct_s", &said), Ok(7200.0));
    assert_eq!(evaluate("a:las:p99", &said).unwrap_err(), "a: there is no number `p99`");
    assert_eq!(evaluate("a:edf:p99", &said).unwrap_err(), "a: there are 0 `runs[policy=edf]`");
    let fact = Fact { text: "$ {}".into(), is: vec!["b ~ $ {}".into()], each: vec!["x".into(), "y".into()] };
    let rows = fact.rows();
    assert_eq!((rows[1].text.as_str(), rows[1].runs()), ("y {}", vec!["b"]));
    assert_eq!(rows[1].values(&|_| "x 1\ny 2,000\n".to_owned()), Ok(vec![(2000.0, "b ~ y {}")]));
}
