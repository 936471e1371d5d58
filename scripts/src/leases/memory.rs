//! The book as plain numbers, for a script's private memory, and back.
//!
//! `[next, leased…, -1, (lease, nodes)…, -1, (job, level, runs, run…)…]`: a run of planned leases is its first lease
//! times 2^20 plus its length; `runs` is -1 for a promise without a plan.

use rota_core::ids::JobId;

use super::book::{Book, Promise, Terms};

const END: i64 = -1;
const RUN_BITS: u32 = 20;

impl Book {
    /// As plain numbers.
    pub(crate) fn to_numbers(&self) -> Vec<i64> {
        let mut numbers = vec![self.next];
        numbers.extend(self.leased.iter().map(|job| i64::from(job.0)));
        numbers.push(END);
        numbers.extend(self.nodes_on.iter().flat_map(|(lease, n_on)| [*lease, i64::from(*n_on)]));
        numbers.push(END);
        for (job, promise) in &self.promises {
            numbers.extend([i64::from(job.0), promise.level as i64]);
            match &promise.plan {
                None => numbers.push(END),
                Some(plan) => {
                    let runs = runs_of(plan);
                    // The last run has no lease and says how long the plan is.
                    numbers.push(runs.len() as i64);
                    numbers.extend(
                        runs.iter().map(|(first, length)| (*first as i64) << RUN_BITS | *length as i64),
                    );
                }
            }
        }
        numbers
    }

    /// From what [`Book::to_numbers`] wrote; `None` for anything else.
    pub(crate) fn from_numbers(terms: Terms, numbers: &[i64]) -> Option<Self> {
        let mut book = Book::new(terms);
        let mut rest = numbers.iter().copied();
        book.next = rest.next()?;
        while let Some(job) = rest.next().filter(|job| *job != END) {
            book.leased.insert(JobId(u32::try_from(job).ok()?));
        }
        loop {
            match rest.next()? {
                END => break,
                lease => book.nodes_on.insert(lease, u32::try_from(rest.next()?).ok()?),
            };
        }
        while let Some(job) = rest.next() {
            let level = usize::try_from(rest.next()?).ok()?;
            let plan = match rest.next()? {
                END => None,
                n_runs => {
                    let runs: Vec<i64> = rest.by_ref().take(usize::try_from(n_runs).ok()?).collect();
                    Some(plan_of(&runs)?)
                }
            };
            book.promises.insert(JobId(u32::try_from(job).ok()?), Promise { level, plan });
        }
        Some(book)
    }
}

/// Stretches of planned leases, and at the end one of none that begins where the plan ends.
fn runs_of(plan: &[bool]) -> Vec<(usize, usize)> {
    let mut runs = Vec::new();
    let mut first = 0;
    for run in plan.chunk_by(|a, b| a == b) {
        if run[0] {
            runs.push((first, run.len()));
        }
        first += run.len();
    }
    runs.push((plan.len(), 0));
    runs
}

fn plan_of(runs: &[i64]) -> Option<Vec<bool>> {
    let split = |run: i64| (run >> RUN_BITS, run & ((1 << RUN_BITS) - 1));
    let length = usize::try_from(split(*runs.last()?).0).ok().filter(|length| *length < 1 << RUN_BITS)?;
    let mut plan = vec![false; length];
    for (first, n_leases) in runs.iter().map(|run| split(*run)) {
        let first = usize::try_from(first).ok()?;
        let last = first.checked_add(usize::try_from(n_leases).ok()?)?;
        plan.get_mut(first..last)?.fill(true);
    }
    Some(plan)
}

#[cfg(test)]
mod tests {
    use rota_core::time::Span;

    use super::*;

    #[test]
    fn a_book_comes_back_from_memory_as_it_was() {
        let terms = Terms { lease: Span::from_secs(1200), caution: 1.1 };
        let mut book = Book::new(terms);
        book.next = 17;
        book.leased.extend([JobId(3), JobId(9)]);
        book.nodes_on.insert(17, 12);
        let plan = vec![false, true, true, false, true, false];
        book.promises.insert(JobId(3), Promise { level: 2, plan: Some(plan) });
        book.promises.insert(JobId(4), Promise { level: 0, plan: None });
        book.promises.insert(JobId(5), Promise { level: 1, plan: Some(Vec::new()) });
        assert_eq!(Book::from_numbers(terms, &book.to_numbers()), Some(book));
    }

    #[test]
    fn what_is_no_book_is_refused() {
        let terms = Terms { lease: Span::from_secs(1200), caution: 1.1 };
        for numbers in [&[][..], &[5, 1], &[5, -1, 2], &[5, -1, -1, 7], &[5, -1, -1, 7, 0, 1, 1 << 60]] {
            assert_eq!(Book::from_numbers(terms, numbers), None, "{numbers:?}");
        }
    }
}
