//! Rows that the rules of a format leave out, counted rule by rule.

use std::collections::BTreeMap;

/// Lines of each rule that are kept as examples.
const EXAMPLES: usize = 3;

/// What a rule left out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RuleCount {
    /// How many rows.
    pub n_rows: u64,
    /// The lines of the first few, from 1 (for JSON, the numbers of the jobs).
    pub first_lines: Vec<u64>,
}

/// Rows left out, by rule.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LeftOut {
    rules: BTreeMap<&'static str, RuleCount>,
}

impl LeftOut {
    /// Counts a row that a rule, worded as what is true of the row, leaves out.
    pub(crate) fn count(&mut self, rule: &'static str, line: u64) {
        let count = self.rules.entry(rule).or_default();
        count.n_rows += 1;
        if count.first_lines.len() < EXAMPLES {
            count.first_lines.push(line);
        }
    }

    /// The rules that left something out, in alphabetical order.
    pub fn rules(&self) -> impl Iterator<Item = (&'static str, &RuleCount)> {
        self.rules.iter().map(|(rule, count)| (*rule, count))
    }

    /// How many rows were left out in all.
    pub fn n_rows(&self) -> u64 {
        self.rules.values().map(|count| count.n_rows).sum()
    }

    /// A clause for each rule: how many rows, and where the first are.
    pub fn clauses(&self) -> Vec<String> {
        let clause = |(rule, count): (&'static str, &RuleCount)| {
            let lines: Vec<String> = count.first_lines.iter().map(u64::to_string).collect();
            let (rows, line) = if count.n_rows == 1 { ("row", "line") } else { ("rows", "lines") };
            let more = if count.n_rows > count.first_lines.len() as u64 { ", …" } else { "" };
            format!("{} {rows} left out: {rule} ({line} {}{more})", count.n_rows, lines.join(", "))
        };
        self.rules().map(clause).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_are_counted_with_their_first_lines() {
        let mut left_out = LeftOut::default();
        (2..=6).for_each(|line| left_out.count("asks for no GPU", line));
        left_out.count("never ran", 9);
        assert_eq!(
            left_out.clauses(),
            ["5 rows left out: asks for no GPU (lines 2, 3, 4, …)", "1 row left out: never ran (line 9)"]
        );
        assert_eq!(left_out.n_rows(), 6);
    }
}
