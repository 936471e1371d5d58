//! What a study script can use: runs, sweeps, figures, statistics over several runs, parameters.

use std::sync::{Arc, PoisonError};

use rhai::{Array, Dynamic, ImmutableString, Map};

use super::settings::{combinations, settings};
use super::{Comparison, Interval, StudyHost};
use crate::language::reference::Registrar;
use crate::language::session::{Outcome, fail};
use crate::values::type_label;

/// A run as a script holds it: a promise whose figures wait for it.
#[derive(Clone)]
pub(super) struct RunValue {
    id: usize,
    host: Arc<StudyHost>,
}

impl RunValue {
    fn figure(&self, name: &str) -> Outcome<Option<f64>> {
        self.host.batch.figure(self.id, name).or_else(|error| fail(error.to_string()))
    }
}

pub(super) fn register(registrar: &mut Registrar<'_>, host: &Arc<StudyHost>) {
    runs(registrar, host);
    statistics(registrar, host);
    parameters(registrar, host);
}

fn runs(registrar: &mut Registrar<'_>, host: &Arc<StudyHost>) {
    registrar.class::<RunValue>(
        "Run",
        "One run, under way or done. Reading a figure waits for it; every number of `summary.json` is one: `avg_jct_s`, `p99_jct_s`, `deadline_ratio`, `gpu_util`, … A figure that the run does not have is `()`.",
    );
    let at = Arc::clone(host);
    registrar
        .function(
            "run(settings) -> Run",
            "Starts a run and goes on at once. The names are the options of `rota simulate` with `_` for `-`: `#{ policy: \"las+tune\", jobs_per_hour: 8, seed: 3, set: #{ threshold: 5 } }`. Equal settings are one run.",
        )
        .register_fn("run", move |map: Map| submit(&at, settings(map)?));
    let at = Arc::clone(host);
    registrar
        .function(
            "sweep(settings) -> Array",
            "A run for every combination of the values listed: arrays and ranges are multiplied out, also inside `set`, all else stays. `sweep(#{ policy: [\"las\", \"srtf\"], jobs_per_hour: [4, 8], seed: 1..=3 })` are twelve.",
        )
        .register_fn("sweep", move |map: Map| -> Outcome<Array> {
            let each = combinations(map)?.into_iter();
            each.map(|settings| submit(&at, settings).map(Dynamic::from)).collect()
        });
    registrar
        .field("Run", "ok: bool", "Whether the run finished; waits for it.")
        .register_get("ok", |run: &mut RunValue| run.host.batch.failure(run.id).is_none());
    registrar
        .field("Run", "error: String", "Why the run failed, empty if it did not; waits for it.")
        .register_get("error", |run: &mut RunValue| run.host.batch.failure(run.id).unwrap_or_default());
    registrar.method("Run", "run[name]", "A figure by its name, as after a dot.").register_indexer_get(
        |run: &mut RunValue, name: ImmutableString| -> Outcome<Dynamic> {
            Ok(run.figure(&name)?.map_or(Dynamic::UNIT, Dynamic::from))
        },
    );
}

fn submit(host: &Arc<StudyHost>, settings: super::Settings) -> Outcome<RunValue> {
    host.refuse_unknown_parameters().or_else(|error| fail(error.to_string()))?;
    let id = host.batch.submit(settings).or_else(|error| fail(error.to_string()))?;
    Ok(RunValue { id, host: Arc::clone(host) })
}

fn statistics(registrar: &mut Registrar<'_>, host: &Arc<StudyHost>) {
    registrar
        .function("mean(runs, figure) -> float", "The mean of a figure over runs; waits for them.")
        .register_fn("mean", |runs: Array, name: ImmutableString| -> Outcome<f64> {
            let values = figures(&runs, &name)?;
            Ok(values.iter().sum::<f64>() / values.len() as f64)
        });
    registrar
        .function("median(runs, figure) -> float", "The median of a figure over runs.")
        .register_fn("median", |runs: Array, name: ImmutableString| percentile(&runs, &name, 50.0));
    registrar
        .function("percentile(runs, figure, percent) -> float", "A percentile of a figure over runs.")
        .register_fn("percentile", |runs: Array, name: ImmutableString, percent: f64| {
            percentile(&runs, &name, percent)
        });
    registrar.engine().register_fn("percentile", |runs: Array, name: ImmutableString, percent: i64| {
        percentile(&runs, &name, percent as f64)
    });
    let at = Arc::clone(host);
    registrar
        .function(
            "interval(runs, figure) -> Map",
            "The 95 % confidence interval of a figure's mean over runs, by bootstrap: `n`, `mean`, `low`, `high`, and `relative`, its half width as a part of the mean.",
        )
        .register_fn("interval", move |runs: Array, name: ImmutableString| -> Outcome<Map> {
            match at.batch.interval(&figures(&runs, &name)?) {
                Some(interval) => Ok(interval_map(&interval)),
                None => fail("interval: no runs"),
            }
        });
    let at = Arc::clone(host);
    registrar
        .function(
            "compare(baseline, other, figure) -> Map",
            "Two lists of runs, pair by pair (give both in the order of the seeds): `n`, `difference`, `low`, `high` (the other less the baseline), `ratio`, `ratio_low`, `ratio_high` (the other over the baseline) and `smaller`, the pairs in which the other is smaller.",
        )
        .register_fn("compare", move |baseline: Array, other: Array, name: ImmutableString| -> Outcome<Map> {
            let (baseline, other) = (figures(&baseline, &name)?, figures(&other, &name)?);
            if baseline.len() != other.len() {
                return fail(format!("compare: {} runs cannot be paired with {}", baseline.len(), other.len()));
            }
            match at.batch.compare(&baseline, &other) {
                Some(comparison) => Ok(comparison_map(&comparison)),
                None => fail("compare: no runs"),
            }
        });
    let at = Arc::clone(host);
    registrar
        .function(
            "best(candidates, figure) -> Map",
            "Of several lists of runs, each in the order of the same seeds, the one with the lowest mean of a figure: `at` and `next`, its place and that of the second lowest, from 0; `ratio`, `ratio_low`, `ratio_high`, the next over it; `is_clear`, whether the interval leaves no doubt. Prints it, and says when the two are not told apart.",
        )
        .register_fn("best", move |candidates: Array, name: ImmutableString| best(&at, &candidates, &name));
}

/// Of several lists of runs the one with the lowest mean, and the next.
fn best(host: &StudyHost, candidates: &Array, name: &str) -> Outcome<Map> {
    let mut means: Vec<(f64, usize, Vec<f64>)> = Vec::with_capacity(candidates.len());
    for (at, candidate) in candidates.iter().enumerate() {
        let Some(runs) = candidate.read_lock::<Array>() else {
            return fail(format!("best: {} is not a list of runs", type_label(candidate)));
        };
        let values = figures(&runs, name)?;
        means.push((values.iter().sum::<f64>() / values.len() as f64, at, values));
    }
    means.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
    let [(mean, at, of_best), (_, next, of_next), ..] = means.as_slice() else {
        return fail("best: fewer than two lists of runs");
    };
    let Some(Comparison { ratio, .. }) = host.batch.compare(of_best, of_next) else {
        return fail(format!("best: {} runs cannot be paired with {}", of_best.len(), of_next.len()));
    };
    let is_clear = ratio.low > 1.0 && of_best.len() > 1;
    let verdict = if is_clear { "" } else { ", not told apart from it" };
    host.batch.say(&format!(
        "lowest {name} of {}: number {} with a mean of {mean:.6}; the next, number {}, is {:.3} x as high [{:.3}, {:.3}] on {} seeds{verdict}",
        means.len(),
        at + 1,
        next + 1,
        ratio.mean,
        ratio.low,
        ratio.high,
        ratio.n
    ));
    let numbers = [("ratio", ratio.mean), ("ratio_low", ratio.low), ("ratio_high", ratio.high)];
    let mut map: Map = numbers.into_iter().map(|(name, value)| (name.into(), value.into())).collect();
    map.insert("at".into(), (*at as i64).into());
    map.insert("next".into(), (*next as i64).into());
    map.insert("is_clear".into(), is_clear.into());
    Ok(map)
}

/// A figure of several runs; a failed run, or one without the figure, is an error that names it.
fn figures(runs: &Array, name: &str) -> Outcome<Vec<f64>> {
    if runs.is_empty() {
        return fail(format!("{name} of no runs"));
    }
    let figure = |value: &Dynamic| {
        let Some(run) = value.read_lock::<RunValue>() else {
            return fail(format!("{name}: {} is not a Run", type_label(value)));
        };
        match run.figure(name)? {
            Some(figure) => Ok(figure),
            None => fail(format!("run {} has no {name}", run.id + 1)),
        }
    };
    runs.iter().map(figure).collect()
}

fn percentile(runs: &Array, name: &str, percent: f64) -> Outcome<f64> {
    let mut values = figures(runs, name)?;
    values.sort_by(f64::total_cmp);
    let at = (percent / 100.0).clamp(0.0, 1.0) * (values.len() - 1) as f64;
    let (below, above) = (values[at.floor() as usize], values[at.ceil() as usize]);
    Ok(below + (above - below) * at.fract())
}

fn interval_map(interval: &Interval) -> Map {
    let Interval { n, mean, low, high } = *interval;
    let relative = if mean == 0.0 { 0.0 } else { (high - low) / 2.0 / mean.abs() };
    let numbers = [("mean", mean), ("low", low), ("high", high), ("relative", relative)];
    let mut map: Map = numbers.into_iter().map(|(name, value)| (name.into(), value.into())).collect();
    map.insert("n".into(), (n as i64).into());
    map
}

fn comparison_map(comparison: &Comparison) -> Map {
    let Comparison { difference, ratio, n_smaller } = comparison;
    let numbers = [
        ("difference", difference.mean),
        ("low", difference.low),
        ("high", difference.high),
        ("ratio", ratio.mean),
        ("ratio_low", ratio.low),
        ("ratio_high", ratio.high),
    ];
    let mut map: Map = numbers.into_iter().map(|(name, value)| (name.into(), value.into())).collect();
    map.insert("n".into(), (difference.n as i64).into());
    map.insert("smaller".into(), (*n_smaller as i64).into());
    map
}

fn parameters(registrar: &mut Registrar<'_>, host: &Arc<StudyHost>) {
    let at = Arc::clone(host);
    registrar
        .function("title(text)", "The heading of the study.")
        .register_fn("title", move |text: ImmutableString| at.batch.title(&text));
    let at = Arc::clone(host);
    registrar
        .function("is_quick() -> bool", "Whether `--quick` asks for a small form of the study.")
        .register_fn("is_quick", move || at.options.is_quick);
    let at = Arc::clone(host);
    registrar
        .function(
            "param(name, default)",
            "A parameter that `--set name=value` sets; it has the type of its default. Declare all of them before the first run.",
        )
        .register_fn("param", move |name: ImmutableString, default: Dynamic| parameter(&at, &name, default));
    let at = Arc::clone(host);
    registrar
        .function("print(value)", "Prints a line, and keeps it for the report.")
        .on_print(move |line| at.batch.say(line));
}

fn parameter(host: &StudyHost, name: &str, default: Dynamic) -> Outcome<Dynamic> {
    let mut declared = host.declared.lock().unwrap_or_else(PoisonError::into_inner);
    declared.push(name.to_owned());
    let Some(text) = host.options.set.get(name) else { return Ok(default) };
    let value = match () {
        () if default.is_string() => Some(text.clone().into()),
        () if default.is_int() => text.parse::<i64>().ok().map(Dynamic::from),
        () if default.is_float() => {
            text.parse::<f64>().ok().filter(|number| number.is_finite()).map(Dynamic::from)
        }
        () if default.is_bool() => text.parse::<bool>().ok().map(Dynamic::from),
        () => return fail(format!("param `{name}`: {} cannot be a parameter", type_label(&default))),
    };
    value.map_or_else(|| fail(format!("--set {name}={text}: {} is expected", type_label(&default))), Ok)
}
