//! From rows to a verdict: each comparison that a claim is about supports it to some degree, and the worst one decides.

use super::super::evidence::{Cell, Row, cells, text_of};
use super::super::quantity::Quantity;
use super::pairing::Pair;
use super::{AlongAxis, Claim, LEVEL, Outcome, Pairing, Test, Verdict};

/// A bound that is met to the last digits is met.
const ROUNDING: f64 = 1e-9;

/// What one comparison or one number means for a claim.
struct Finding {
    /// Above 1 it supports the claim, below it contradicts it.
    support: f64,
    /// The numbers, in words.
    text: String,
}

/// How findings are weighed.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Weight {
    /// Each must support the claim clearly; one that is level makes a tie.
    Clearly,
    /// None may contradict it clearly; all level is a tie.
    NotWorse,
    /// Each must reach a bound: it does or does not.
    Bound,
}

/// What findings are about, for sentences.
#[derive(Clone, Copy)]
enum Noun {
    Comparisons,
    Numbers,
}

impl Claim {
    /// Judges the claim by the rows of one column; `published` are the paper's numbers, for claims about those.
    pub fn judge(&self, rows: &[Row], published: &[Row]) -> Verdict {
        if rows.is_empty() {
            return Verdict::not_comparable("there are no rows");
        }
        let cells = cells(rows);
        match self.test {
            Test::Ahead(who, of) => settle(leads(who, &of, &cells), Weight::Clearly, &missing(who, &of)),
            Test::AheadAtEnd(who, of, along) => {
                let last =
                    cells.iter().filter_map(|cell| along.place(cell.at.get(along.name)?)).reduce(f64::max);
                let is_last = |cell: &&Cell<'_>| {
                    let place = cell.at.get(along.name).and_then(|value| along.place(value));
                    place.is_some() && place == last
                };
                let at_end: Vec<Cell<'_>> = cells.iter().filter(is_last).cloned().collect();
                settle(leads(who, &of, &at_end), Weight::Clearly, &missing(who, &of))
            }
            Test::NeverBehind(who, of) => {
                settle(leads(who, &of, &cells), Weight::NotWorse, &missing(who, &of))
            }
            Test::Within(who, of, part) => {
                let findings = scaled(leads(who, &of, &cells), 1.0 + part);
                settle(findings, Weight::Bound, &missing(who, &of))
            }
            Test::ByFactor(who, of, factor) => {
                let findings = scaled(leads(who, &of, &cells), 1.0 / factor);
                settle(findings, Weight::Bound, &missing(who, &of))
            }
            Test::UpTo(who, of, factor) => up_to(leads(who, &of, &cells), factor, &missing(who, &of)),
            Test::LeadGrows(who, of, along) => grows(who, &of, &along, &cells),
            Test::None(policies, of) => none(policies, &of, &cells),
            Test::Agrees(quantities, part) => agrees(quantities, part, &cells, published),
        }
    }
}

fn missing(who: Pairing, of: &Quantity) -> String {
    format!("no two rows have the {} of {}", of.shown, who.text())
}

fn leads(who: Pairing, of: &Quantity, cells: &[Cell<'_>]) -> Vec<Finding> {
    let finding = |pair: Pair<'_>| Finding {
        support: pair.lead(),
        text: format!("{}, {:.3}x", pair.text(), pair.lead()),
    };
    who.pairs(cells, of).into_iter().map(finding).collect()
}

fn scaled(findings: Vec<Finding>, by: f64) -> Vec<Finding> {
    let scale = |finding: Finding| Finding { support: finding.support * by, ..finding };
    findings.into_iter().map(scale).collect()
}

/// The verdict of comparisons, with the worst of them; `nothing` says what is missing when there are none.
fn settle(findings: Vec<Finding>, weight: Weight, nothing: &str) -> Verdict {
    settle_as(Noun::Comparisons, findings, weight, nothing)
}

fn settle_as(noun: Noun, findings: Vec<Finding>, weight: Weight, nothing: &str) -> Verdict {
    let n = findings.len();
    let Some(worst) = findings.iter().min_by(|a, b| a.support.total_cmp(&b.support)) else {
        return Verdict::not_comparable(nothing);
    };
    let is_against = |finding: &&Finding| match weight {
        Weight::Bound => finding.support < 1.0 - ROUNDING,
        Weight::Clearly | Weight::NotWorse => finding.support < 1.0 - LEVEL,
    };
    let is_level = |finding: &&Finding| (finding.support - 1.0).abs() <= LEVEL;
    let n_against = findings.iter().filter(is_against).count();
    let n_level = findings.iter().filter(is_level).count();
    if n_against > 0 {
        let why = format!("not so in {}; worst: {}", noun.some(n_against, n), worst.text);
        return Verdict { outcome: Outcome::DoesNotHold, why };
    }
    let is_tie = match weight {
        Weight::Clearly => n_level > 0,
        Weight::NotWorse => n_level == n,
        Weight::Bound => false,
    };
    if is_tie {
        let why = format!("level in {}; closest: {}", noun.some(n_level, n), worst.text);
        return Verdict { outcome: Outcome::Tie, why };
    }
    Verdict { outcome: Outcome::Holds, why: format!("in {}; closest: {}", noun.all(n), worst.text) }
}

impl Noun {
    fn one(self) -> &'static str {
        match self {
            Noun::Comparisons => "comparison",
            Noun::Numbers => "number",
        }
    }

    fn some(self, n: usize, of: usize) -> String {
        match of {
            1 => format!("the only {}", self.one()),
            of => format!("{n} of {of} {}s", self.one()),
        }
    }

    fn all(self, n: usize) -> String {
        match n {
            1 => format!("the only {}", self.one()),
            2 => format!("both {}s", self.one()),
            n => format!("all {n} {}s", self.one()),
        }
    }
}

/// Whether the best comparison reaches a factor.
fn up_to(findings: Vec<Finding>, factor: f64, nothing: &str) -> Verdict {
    let Some(best) = findings.iter().max_by(|a, b| a.support.total_cmp(&b.support)) else {
        return Verdict::not_comparable(nothing);
    };
    let outcome =
        if best.support >= factor * (1.0 - ROUNDING) { Outcome::Holds } else { Outcome::DoesNotHold };
    let n = findings.len();
    let most = if n == 1 { "the only comparison".to_owned() } else { format!("the most of {n} comparisons") };
    Verdict { outcome, why: format!("{most}: {}", best.text) }
}

/// Whether the lead at the end of an axis is larger than at its beginning, for each pair at the same other settings.
fn grows(who: Pairing, of: &Quantity, along: &AlongAxis, cells: &[Cell<'_>]) -> Verdict {
    let pairs = who.pairs(cells, of);
    let place = |pair: &Pair<'_>| pair.leader.at.get(along.name).and_then(|value| along.place(value));
    let rest = |pair: &Pair<'_>| {
        let mut at = pair.leader.at.clone();
        at.remove(along.name);
        (pair.leader.policy.to_owned(), pair.rival.policy.to_owned(), at)
    };
    let mut findings = Vec::new();
    let mut seen = Vec::new();
    for pair in &pairs {
        let own = rest(pair);
        if seen.contains(&own) {
            continue;
        }
        let mut like: Vec<(f64, &Pair<'_>)> =
            pairs.iter().filter(|other| rest(other) == own).filter_map(|p| Some((place(p)?, p))).collect();
        like.sort_by(|a, b| a.0.total_cmp(&b.0));
        seen.push(own);
        let [(low_at, low), .., (high_at, high)] = like.as_slice() else { continue };
        if low_at < high_at {
            let text = format!(
                "{} leads {} by {:.3}x at {} and by {:.3}x at {}",
                pair.leader.policy,
                pair.rival.policy,
                low.lead(),
                text_of(low.leader.at),
                high.lead(),
                text_of(high.leader.at)
            );
            findings.push(Finding { support: high.lead() / low.lead(), text });
        }
    }
    let nothing = format!("{}, at two values of {}", missing(who, of), along.name.replace('_', " "));
    settle(findings, Weight::Clearly, &nothing)
}

impl AlongAxis {
    fn place(&self, value: &str) -> Option<f64> {
        match self.values {
            [] => value.parse().ok(),
            values => values.iter().position(|known| *known == value).map(|at| at as f64),
        }
    }
}

/// Whether a count is 0 in every row of these policies.
fn none(policies: &[&str], of: &Quantity, cells: &[Cell<'_>]) -> Verdict {
    let of_them = cells.iter().filter(|cell| policies.contains(&cell.policy));
    let findings: Vec<Finding> = of_them
        .filter_map(|cell| {
            let value = cell.mean(of.name)?;
            let place = if cell.at.is_empty() { String::new() } else { format!(" at {}", text_of(cell.at)) };
            let text = format!("{} {} of {}{place}", of.text(value), of.shown, cell.policy);
            Some(Finding { support: if value == 0.0 { 1.0 } else { 1.0 / (1.0 + value) }, text })
        })
        .collect();
    let nothing = format!("no row has the {} of {}", of.shown, policies.join(", "));
    settle_as(Noun::Numbers, findings, Weight::Bound, &nothing)
}

/// Whether every published number comes out; published numbers are not compared with themselves.
fn agrees(quantities: &[Quantity], part: f64, cells: &[Cell<'_>], published: &[Row]) -> Verdict {
    let mut findings = Vec::new();
    for row in published {
        let asked = |cell: &&Cell<'_>| {
            cell.policy == row.policy && row.at.iter().all(|(name, value)| cell.at.get(name) == Some(value))
        };
        for of in quantities {
            let own = cells.iter().find(asked).and_then(|cell| cell.mean(of.name));
            let Some((own, theirs)) = own.zip(row.numbers.get(of.name).copied()) else { continue };
            let apart =
                if theirs == 0.0 { f64::from(u8::from(own != 0.0)) } else { (own / theirs - 1.0).abs() };
            let place = if row.at.is_empty() { String::new() } else { format!(" at {}", text_of(&row.at)) };
            let text = format!(
                "{} of {}{place} is {}, published {}",
                of.shown,
                row.policy,
                of.text(own),
                of.text(theirs)
            );
            let support = if apart == 0.0 { f64::INFINITY } else { part / apart };
            findings.push(Finding { support, text });
        }
    }
    let nothing = match published {
        [] => "published numbers are not compared with themselves",
        _ => "no run has the settings of a published number",
    };
    settle_as(Noun::Numbers, findings, Weight::Bound, nothing)
}
