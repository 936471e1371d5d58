//! An explanation as a page: what happened in sentences, GPUs and speed over time, then a table for each list of periods.

use maud::{Markup, html};

use super::picture::pictures;
use super::text::{facts, number};
use super::{Amount, Excess, Explanation, Holder, Limit, Shortage, Slow, Wait};
use crate::report::html::{self, Cell, Column};
use crate::report::{ReportError, TimeUnit, with_thousands};

/// Rows of a table; JSON has all of them.
const MAX_ROWS: usize = 1_000;

impl Explanation {
    /// As a page.
    pub fn to_html(&self) -> Result<String, ReportError> {
        let unit = TimeUnit::for_table(self.last_s() - self.arrival_s);
        let figures = pictures(self, unit);
        let body = html! {
            section { @for sentence in facts(self) { p.said { (sentence) } } }
            @if !figures.is_empty() { (html::section("Over time", &html::plots(&figures)?)) }
            (self.shortage_table(unit))
            (self.slow_table(unit))
            (self.share_table(unit))
            (self.wait_table(unit))
            (self.held_table(unit))
            (self.change_table(unit))
        };
        let about = html! {
            p { (self.model) ", " (gpus(f64::from(self.gpus))) " asked · " (self.status) " · Rota " (env!("CARGO_PKG_VERSION")) }
        };
        Ok(html::document(&format!("Job {} under {}", self.job_id, self.policy), &about, &body, ""))
    }

    /// The last moment that anything is known of.
    pub(super) fn last_s(&self) -> f64 {
        let waited = self.waits.iter().map(|wait| wait.to_s);
        let held = self.phases.iter().map(|phase| phase.to_s);
        let ends = waited.chain(held).chain(self.finish_s).chain(self.deadline_s);
        ends.fold(self.arrival_s + 1.0, f64::max)
    }

    fn shortage_table(&self, unit: TimeUnit) -> Markup {
        let columns = [
            Period::COLUMNS,
            &[Of::Number("GPUs needed"), Of::Number("held"), Of::Number("free")],
            &[Of::Text("missing"), Of::Text("in the way, with their GPUs")],
        ];
        let row = |shortage: &Shortage| {
            let (least, most) = shortage.gpus_free;
            let holders = match shortage.limit {
                Limit::Policy => String::new(),
                _ => named(&shortage.holders, shortage.n_more),
            };
            let cells = [
                shortage.gpus_needed.map_or_else(|| "more than it can use".to_owned(), |n| n.to_string()),
                shortage.gpus_held.to_string(),
                range(least, most),
                missing(shortage).to_owned(),
                holders,
            ];
            Period(shortage.from_s, shortage.to_s).cells(unit).into_iter().chain(cells).collect()
        };
        table("When it had less than it needed", &columns, unit, &self.shortages, row)
    }

    fn slow_table(&self, unit: TimeUnit) -> Markup {
        let columns = [
            Period::COLUMNS,
            &[
                Of::Number("speed (% of best)"),
                Of::Number("CPUs held"),
                Of::Number("CPUs wanted"),
                Of::Number("CPUs free there"),
            ],
            &[
                Of::Number("memory held (GB)"),
                Of::Number("memory wanted (GB)"),
                Of::Number("memory free there (GB)"),
            ],
            &[
                Of::Number("other nodes with room"),
                Of::Text("nodes"),
                Of::Text("neighbours above their share"),
            ],
        ];
        let row = |slow: &Slow| {
            let amount = |of: &Amount| [number(of.held), number(of.wanted), number(of.free)];
            let mut cells: Vec<String> = Period(slow.from_s, slow.to_s).cells(unit).into();
            cells.push(format!("{:.0}", 100.0 * slow.of_best));
            cells.extend(amount(&slow.cpus));
            cells.extend(amount(&slow.mem_gb));
            cells.push(slow.nodes_with_room.map_or_else(String::new, |(least, most)| range(least, most)));
            cells.push(slow.nodes.join(", "));
            let neighbours: Vec<String> = slow.neighbours.iter().map(excess).collect();
            cells.push(with_more(neighbours, slow.n_more));
            cells
        };
        table("When it ran slowly for lack of CPUs or memory", &columns, unit, &self.slow, row)
    }

    fn share_table(&self, unit: TimeUnit) -> Markup {
        let row = |share: &super::DeadlineShare| {
            let gpus = share.gpus.map_or_else(|| "more than it can use".to_owned(), |gpus| gpus.to_string());
            vec![time(share.from_s, unit), gpus]
        };
        let columns: [&[Of]; 1] = [&[Of::Time("from"), Of::Number("GPUs")]];
        table("What its deadline asked for", &columns, unit, &self.deadline_shares, row)
    }

    fn wait_table(&self, unit: TimeUnit) -> Markup {
        let heading = if self.status == "declined" { "Until its deadline" } else { "Waiting" };
        let columns = [
            Period::COLUMNS,
            &[Of::Number("GPUs that others held on average"), Of::Number("GPUs in all"), Of::Number("free")],
            &[Of::Text("most by, with their GPUs")],
        ];
        let row = |wait: &Wait| {
            let free = wait.gpus_free.map_or_else(String::new, |(least, most)| range(least, most));
            let cells =
                [number(wait.gpus_held), wait.gpus_up.to_string(), free, named(&wait.holders, wait.n_more)];
            Period(wait.from_s, wait.to_s).cells(unit).into_iter().chain(cells).collect()
        };
        table(heading, &columns, unit, &self.waits, row)
    }

    fn held_table(&self, unit: TimeUnit) -> Markup {
        let columns = [Period::COLUMNS, &[Of::Number("GPUs"), Of::Text("nodes")]];
        let row = |phase: &super::HeldPeriod| {
            let cells = [number(phase.gpus), phase.nodes.join(", ")];
            Period(phase.from_s, phase.to_s).cells(unit).into_iter().chain(cells).collect()
        };
        table("What it held", &columns, unit, &self.phases, row)
    }

    fn change_table(&self, unit: TimeUnit) -> Markup {
        let columns: [&[Of]; 1] = [&[
            Of::Time("at"),
            Of::Number("GPUs before"),
            Of::Number("after"),
            Of::Number("its deadline asked for"),
            Of::Text("others gained or lost at that moment"),
        ]];
        let row = |change: &super::Move| {
            vec![
                time(change.at_s, unit),
                number(change.gpus_before),
                number(change.gpus_after),
                change.gpus_for_deadline.map_or_else(String::new, |gpus| gpus.to_string()),
                signed(&change.others, change.n_more),
            ]
        };
        table("Changes", &columns, unit, &self.moves, row)
    }
}

/// What a column holds.
#[derive(Clone, Copy)]
enum Of {
    Time(&'static str),
    Number(&'static str),
    Text(&'static str),
}

/// A length of time with both ends.
struct Period(f64, f64);

impl Period {
    const COLUMNS: &'static [Of] = &[Of::Time("from"), Of::Time("to"), Of::Time("for")];

    fn cells(&self, unit: TimeUnit) -> [String; 3] {
        [self.0, self.1, self.1 - self.0].map(|seconds| time(seconds, unit))
    }
}

fn table<T>(
    heading: &str,
    columns: &[&[Of]],
    unit: TimeUnit,
    items: &[T],
    row: impl Fn(&T) -> Vec<String>,
) -> Markup {
    if items.is_empty() {
        return Markup::default();
    }
    let column = |of: &Of| match of {
        Of::Time(name) => Column { heading: format!("{name} ({})", unit.sign), is_text: false },
        Of::Number(name) => Column { heading: (*name).to_owned(), is_text: false },
        Of::Text(name) => Column { heading: (*name).to_owned(), is_text: true },
    };
    let columns: Vec<Column> = columns.iter().copied().flatten().map(column).collect();
    let rows: Vec<Vec<Cell>> =
        items.iter().take(MAX_ROWS).map(|item| row(item).into_iter().map(Cell::Plain).collect()).collect();
    let content = html! {
        (html::tall_table(&columns, &rows))
        @if items.len() > MAX_ROWS {
            p { "The first " (with_thousands(MAX_ROWS as f64)) " of " (with_thousands(items.len() as f64)) "; --json has all." }
        }
    };
    html::section(heading, &content)
}

fn time(seconds: f64, unit: TimeUnit) -> String {
    format!("{:.2}", seconds / unit.seconds)
}

fn range(least: u32, most: u32) -> String {
    if least == most { most.to_string() } else { format!("{least} to {most}") }
}

fn missing(shortage: &Shortage) -> &'static str {
    match shortage.limit {
        Limit::Quota => "its tenant's quota",
        Limit::Gpus => "GPUs",
        Limit::Places => "places: not enough on one node",
        Limit::Cpus => "CPUs with the free GPUs",
        Limit::Memory => "memory with the free GPUs",
        Limit::Time => "time",
        Limit::Policy => "nothing: the policy's choice",
    }
}

fn gpus(amount: f64) -> String {
    format!("{} GPU{}", number(amount), if amount == 1.0 { "" } else { "s" })
}

fn named(holders: &[Holder], n_more: usize) -> String {
    with_more(holders.iter().map(|h| format!("{} ({})", h.job_id, number(h.gpus))).collect(), n_more)
}

fn signed(holders: &[Holder], n_more: usize) -> String {
    let sign = |gpus: f64| if gpus > 0.0 { "+" } else { "" };
    let named = holders.iter().map(|h| format!("{} ({}{})", h.job_id, sign(h.gpus), number(h.gpus)));
    with_more(named.collect(), n_more)
}

fn excess(excess: &Excess) -> String {
    let parts = [(excess.cpus, "CPUs"), (excess.mem_gb, "GB")];
    let parts = parts.iter().filter(|(amount, _)| *amount > 0.0);
    let parts: Vec<String> = parts.map(|(amount, unit)| format!("{} {unit}", number(*amount))).collect();
    format!("{} ({})", excess.job_id, parts.join(", "))
}

fn with_more(mut names: Vec<String>, n_more: usize) -> String {
    names.extend((n_more > 0).then(|| format!("{n_more} more")));
    names.join(", ")
}
