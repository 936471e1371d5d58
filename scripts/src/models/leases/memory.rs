//! The book as one word, for a script's private memory, and back.
//!
//! `next;leased…;lease:nodes…;job.level=plan…`, entries apart by blanks. A plan is its stretches of leases,
//! `first+length`, and at the end how many leases it has: `1+2,4+1,6` runs in leases 1, 2 and 4 of 6. `-` is a promise
//! without a plan.

use std::str::FromStr;

use rota_core::ids::JobId;

use super::book::{LeaseBook, LeaseRules, Promise};

/// Leases of a plan at most: what is longer was not written here.
const MOST_LEASES: usize = 1 << 20;

impl LeaseBook {
    /// As one word.
    pub(crate) fn to_text(&self) -> String {
        let mut text = Text(self.next.to_string());
        text.0.push(';');
        for job in &self.leased {
            text.blank().number(job.index());
        }
        text.0.push(';');
        for (lease, n_on) in &self.nodes_on {
            text.blank().0.push_str(&format!("{lease}:{n_on}"));
        }
        text.0.push(';');
        for (job, promise) in &self.promises {
            text.blank().number(job.index()).mark('.').number(promise.level).mark('=');
            match &promise.plan {
                None => text.0.push('-'),
                Some(plan) => text.plan(plan),
            }
        }
        text.0
    }

    /// From what [`LeaseBook::to_text`] wrote; `None` for anything else.
    pub(crate) fn from_text(rules: LeaseRules, text: &str) -> Option<Self> {
        let mut book = LeaseBook::new(rules);
        let mut parts = text.split(';');
        book.next = number(parts.next()?)?;
        for job in parts.next()?.split_ascii_whitespace() {
            book.leased.insert(JobId(number(job)?));
        }
        for entry in parts.next()?.split_ascii_whitespace() {
            let (lease, n_on) = entry.split_once(':')?;
            book.nodes_on.insert(number(lease)?, number(n_on)?);
        }
        for entry in parts.next()?.split_ascii_whitespace() {
            let (who, plan) = entry.split_once('=')?;
            let (job, level) = who.split_once('.')?;
            let plan = if plan == "-" { None } else { Some(read_plan(plan)?) };
            book.promises.insert(JobId(number(job)?), Promise { level: number(level)?, plan });
        }
        parts.next().is_none().then_some(book)
    }
}

/// A text under way. Numbers are written by hand: books are remembered every round, and formatting would be most of it.
struct Text(String);

impl Text {
    /// Apart from the entry before.
    fn blank(&mut self) -> &mut Self {
        if !self.0.ends_with(';') {
            self.0.push(' ');
        }
        self
    }

    fn mark(&mut self, mark: char) -> &mut Self {
        self.0.push(mark);
        self
    }

    fn number(&mut self, mut number: usize) -> &mut Self {
        let mut digits = ['0'; 20];
        let mut n_digits = 0;
        for digit in &mut digits {
            *digit = char::from(b'0' + (number % 10) as u8);
            (number, n_digits) = (number / 10, n_digits + 1);
            if number == 0 {
                break;
            }
        }
        self.0.extend(digits[..n_digits].iter().rev());
        self
    }

    fn plan(&mut self, plan: &[bool]) {
        let mut first = 0;
        for run in plan.chunk_by(|a, b| a == b) {
            if run[0] {
                self.number(first).mark('+').number(run.len()).mark(',');
            }
            first += run.len();
        }
        self.number(plan.len());
    }
}

fn number<T: FromStr>(text: &str) -> Option<T> {
    text.parse().ok()
}

fn read_plan(text: &str) -> Option<Vec<bool>> {
    let (runs, length) = text.rsplit_once(',').unwrap_or(("", text));
    let length = number(length).filter(|length| *length < MOST_LEASES)?;
    let mut plan = vec![false; length];
    for run in runs.split(',').filter(|run| !run.is_empty()) {
        let (first, n_leases) = run.split_once('+')?;
        let first: usize = number(first)?;
        let last = first.checked_add(number(n_leases)?)?;
        plan.get_mut(first..last)?.fill(true);
    }
    Some(plan)
}

#[cfg(test)]
mod tests {
    use rota_core::time::Span;

    use super::*;

    fn rules() -> LeaseRules {
        LeaseRules { lease: Span::from_secs(1200), caution: 1.1 }
    }

    #[test]
    fn a_book_comes_back_from_memory_as_it_was() {
        let mut book = LeaseBook::new(rules());
        book.next = 17;
        book.leased.extend([JobId(3), JobId(9)]);
        book.nodes_on.insert(17, 12);
        let plan = vec![false, true, true, false, true, false];
        book.promises.insert(JobId(3), Promise { level: 2, plan: Some(plan) });
        book.promises.insert(JobId(4), Promise { level: 0, plan: None });
        book.promises.insert(JobId(5), Promise { level: 1, plan: Some(Vec::new()) });
        let text = book.to_text();
        assert_eq!(text, "17;3 9;17:12;3.2=1+2,4+1,6 4.0=- 5.1=0");
        assert_eq!(LeaseBook::from_text(rules(), &text), Some(book));
        let nobody = LeaseBook::new(rules());
        assert_eq!(LeaseBook::from_text(rules(), &nobody.to_text()), Some(nobody));
    }

    #[test]
    fn what_is_no_book_is_refused() {
        for text in [
            "",
            "5",
            "5;;",
            "5;x;;",
            "5;;2;",
            "5;;;7",
            "5;;;7.0=",
            "5;;;7.0=3+9,4",
            "5;;;7.0=99999999999",
            "5;;;7.0=18446744073709551615+1,4",
            "5;;;;",
        ] {
            assert_eq!(LeaseBook::from_text(rules(), text), None, "{text:?}");
        }
    }
}
