//! Who ran where, as numbers for a canvas: a line of JSON, then bars of four 32-bit numbers each, little-endian. A hundred
//! thousand bars are read by the browser at once, where as JSON they would hold up the page.

use std::collections::BTreeMap;

use rota_lab::report::gpu_rows;
use rota_lab::results::RunResult;
use serde_json::json;

/// Bars that are sent of one run; later ones are left out, and the page says so.
const MAX_BARS: usize = 400_000;

/// The job's index, the row, and from and to in tenths of a second after the first.
pub(crate) fn bytes(run: &RunResult) -> Vec<u8> {
    let rows = gpu_rows(run);
    let row_of: BTreeMap<(usize, u32), u32> = rows.iter().copied().zip(0..).collect();
    let begin = run.timeline.iter().map(|stretch| stretch.from.0).min().unwrap_or(0);
    let end = run.timeline.iter().map(|stretch| stretch.to.0).max().unwrap_or(begin);
    let tenths = |micros: i64| ((micros - begin) / 100_000).clamp(0, i64::from(u32::MAX)) as u32;
    let mut stretches: Vec<_> = run.timeline.iter().collect();
    stretches.sort_by_key(|stretch| (stretch.from, stretch.job));
    let mut bars: Vec<u8> = Vec::new();
    let mut n_bars = 0;
    'all: for stretch in &stretches {
        for gpu in stretch.slice.gpus.iter() {
            if n_bars == MAX_BARS {
                break 'all;
            }
            let row = row_of.get(&(stretch.slice.node.index(), gpu)).copied().unwrap_or(0);
            for number in [stretch.job.0, row, tenths(stretch.from.0), tenths(stretch.to.0)] {
                bars.extend(number.to_le_bytes());
            }
            n_bars += 1;
        }
    }
    let n_all: usize = run.timeline.iter().map(|stretch| stretch.slice.gpus.len() as usize).sum();
    let name = |node: usize| run.nodes.get(node).cloned().unwrap_or_else(|| node.to_string());
    let head = json!({
        "policy": run.meta.policy,
        "begin_s": begin as f64 / 1e6,
        "length_s": tenths(end) as f64 / 10.0,
        "rows": rows.iter().map(|(node, gpu)| format!("{} GPU {gpu}", name(*node))).collect::<Vec<_>>(),
        "jobs": run.jobs.iter().map(|job| json!([&*job.job_id, &*job.model, job.gpus])).collect::<Vec<_>>(),
        "bars": n_bars,
        "left_out": n_all - n_bars,
    });
    let mut all = head.to_string().into_bytes();
    // The numbers begin where a number may begin.
    while !(all.len() + 1).is_multiple_of(4) {
        all.push(b' ');
    }
    all.push(b'\n');
    all.extend(bars);
    all
}
