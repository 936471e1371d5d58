//! Rounds by shares of time (Gavel, OSDI'20, §5): a policy says which part of the time each job, or two that share GPUs, shall run
//! on each type of GPU; in a round those run that have received least of it.
//!
//! ```text
//! priority = share / (time received since the accounts were opened / time that all received on that type since)
//! deficit  = what was due and not received until the accounts were last opened; it decides between equal priorities
//! ```
//!
//! What the shares mean, and who computes them, is not known here. Which GPUs of a type a claimant gets is decided elsewhere.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

use smallvec::SmallVec;

/// Somebody who is due a part of the time: a job, or two that run on the same GPUs at the same time.
#[derive(Clone, Debug, PartialEq)]
pub struct Claimant {
    /// Numbers of its jobs; no job runs twice in a round.
    pub jobs: SmallVec<[u32; 2]>,
    /// GPUs that it takes.
    pub gpus: u32,
    /// For each type of GPU.
    pub accounts: SmallVec<[Account; 3]>,
}

/// What a claimant is due and has received on one type of GPU.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Account {
    /// Whether it can run there.
    pub can_run: bool,
    /// The part of the time that it is due.
    pub share: f64,
    /// Seconds that it has received since the accounts were opened, with what each begins with.
    pub received_s: f64,
    /// Seconds that it was due and has not received before.
    pub deficit_s: f64,
    /// How urgent it is.
    pub priority: f64,
}

impl Account {
    /// Closes an account that was opened `open_s` seconds ago and opens it anew: what was due and not received becomes deficit, and
    /// it begins with `begin_s` seconds received.
    pub fn reopen(&mut self, open_s: f64, begin_s: f64) {
        self.deficit_s += self.share * open_s - (self.received_s - begin_s);
        self.received_s = begin_s;
    }
}

/// Whether claimants that are due nothing run where GPUs would be idle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Idle {
    /// They do.
    Filled,
    /// They do not.
    Left,
}

/// Sets priorities by shares and what was received; `received_s` is what all have received, for each type.
pub fn set_priorities(claimants: &mut [Claimant], received_s: &[f64]) {
    /// The priority of one that has received nothing of what it is due, by its share.
    const NOTHING_YET: f64 = 1e9;
    for claimant in claimants {
        for (account, all_s) in claimant.accounts.iter_mut().zip(received_s) {
            account.priority = match account.share {
                share if share == 0.0 || !account.can_run => 0.0,
                share if *all_s > 0.0 && account.received_s > 0.0 => share / (account.received_s / all_s),
                share => share * NOTHING_YET,
            };
        }
    }
}

/// Who runs on each type: the most urgent first, over all types at once, as long as GPUs are left; `free` are the GPUs of each.
/// `may_run` is asked last, and counts on one that it lets run. Of equals, the first runs, on the first type.
pub fn choose_anywhere(
    claimants: &[Claimant],
    free: &[u32],
    mut may_run: impl FnMut(usize) -> bool,
) -> Vec<Vec<usize>> {
    let mut left = free.to_vec();
    let mut chosen = vec![Vec::new(); free.len()];
    let mut is_busy = nobody_is_busy(claimants);
    let entrants = claimants.iter().enumerate().flat_map(|(at, claimant)| {
        let accounts = claimant.accounts.iter().enumerate();
        let due = accounts.filter(|(_, account)| account.can_run && account.priority > 0.0);
        due.map(move |(t, account)| Entrant::new(at, t, account))
    });
    let mut urgent: BinaryHeap<Entrant> = entrants.collect();
    while let Some(Entrant { at, t, .. }) = urgent.pop() {
        let claimant = &claimants[at];
        let is_free = claimant.gpus <= left[t] && claimant.jobs.iter().all(|job| !is_busy[*job as usize]);
        if is_free && may_run(at) {
            left[t] -= claimant.gpus;
            claimant.jobs.iter().for_each(|job| is_busy[*job as usize] = true);
            chosen[t].push(at);
        }
    }
    chosen
}

/// For each job, whether it runs already.
fn nobody_is_busy(claimants: &[Claimant]) -> Vec<bool> {
    let last = claimants.iter().flat_map(|claimant| &claimant.jobs).max();
    vec![false; last.map_or(0, |last| *last as usize + 1)]
}

/// Who runs on each type: the types in `order`, on each the most urgent first as long as GPUs are left; `free` are the GPUs of each.
/// One for which too few are left is passed over. Of equals, the first runs.
pub fn choose(claimants: &[Claimant], free: &[u32], order: &[usize], idle: Idle) -> Vec<Vec<usize>> {
    let mut chosen = vec![Vec::new(); free.len()];
    let mut is_busy = nobody_is_busy(claimants);
    for &t in order {
        let mut left = free[t];
        let may_run = |claimant: &Claimant, left: u32, is_busy: &[bool]| {
            claimant.gpus <= left && claimant.jobs.iter().all(|job| !is_busy[*job as usize])
        };
        let entrants = claimants.iter().enumerate().filter_map(|(at, claimant)| {
            let account = &claimant.accounts[t];
            let is_due = idle == Idle::Filled || account.priority > 0.0;
            let runs = account.can_run && is_due && may_run(claimant, left, &is_busy);
            runs.then(|| Entrant::new(at, t, account))
        });
        // Few of many run, so they are not sorted.
        let mut urgent: BinaryHeap<Entrant> = entrants.collect();
        while left > 0 {
            let Some(Entrant { at, .. }) = urgent.pop() else { break };
            let claimant = &claimants[at];
            if may_run(claimant, left, &is_busy) {
                left -= claimant.gpus;
                claimant.jobs.iter().for_each(|job| is_busy[*job as usize] = true);
                chosen[t].push(at);
            }
        }
    }
    chosen
}

/// A claimant on one type; the greatest is the most urgent.
struct Entrant {
    /// Priority, deficit, share.
    key: [f64; 3],
    at: usize,
    t: usize,
}

impl Entrant {
    fn new(at: usize, t: usize, account: &Account) -> Self {
        // Adding 0 makes one zero of two.
        let key = [account.priority, account.deficit_s, account.share].map(|number| number + 0.0);
        Entrant { key, at, t }
    }
}

impl Ord for Entrant {
    fn cmp(&self, other: &Self) -> Ordering {
        let by = |n: usize| self.key[n].total_cmp(&other.key[n]);
        by(0)
            .then_with(|| by(1))
            .then_with(|| by(2))
            .then_with(|| (other.at, other.t).cmp(&(self.at, self.t)))
    }
}

impl PartialOrd for Entrant {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Entrant {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Entrant {}

#[cfg(test)]
mod tests {
    use super::*;

    fn claimant(jobs: &[u32], gpus: u32, shares: &[f64]) -> Claimant {
        let account =
            |share: &f64| Account { can_run: true, share: *share, received_s: 10.0, ..Account::default() };
        Claimant { jobs: jobs.into(), gpus, accounts: shares.iter().map(account).collect() }
    }

    #[test]
    fn over_many_rounds_everybody_runs_for_its_share_of_the_time() {
        let shares = [0.5, 0.3, 0.7, 0.5];
        let mut claimants: Vec<_> = (0..4).map(|job| claimant(&[job], 1, &[shares[job as usize]])).collect();
        let mut n_run = [0.0; 4];
        for _ in 0..1_000 {
            let all_s = claimants.iter().map(|claimant| claimant.accounts[0].received_s).sum();
            set_priorities(&mut claimants, &[all_s]);
            for at in choose(&claimants, &[2], &[0], Idle::Filled).remove(0) {
                claimants[at].accounts[0].received_s += 20.0;
                n_run[at] += 1.0;
            }
        }
        for (n_run, share) in n_run.iter().zip(shares) {
            assert!((n_run / 1_000.0 - share).abs() < 0.01, "{n_run} of 1000 rounds for a share of {share}");
        }
    }

    #[test]
    fn nobody_runs_twice_and_one_that_does_not_fit_is_passed_over() {
        let mut claimants = [
            claimant(&[0], 1, &[0.9, 0.8]),
            claimant(&[0, 1], 1, &[0.7, 0.9]),
            claimant(&[2], 4, &[0.6, 0.0]),
            claimant(&[3], 1, &[0.1, 0.0]),
        ];
        set_priorities(&mut claimants, &[40.0, 40.0]);
        assert_eq!(choose(&claimants, &[2, 2], &[0, 1], Idle::Left), [vec![0, 3], vec![]]);
        assert_eq!(choose(&claimants, &[2, 2], &[1, 0], Idle::Left), [vec![3], vec![1]]);
        assert_eq!(choose(&claimants, &[1, 2], &[0, 1], Idle::Filled), [vec![0], vec![3]]);
    }

    #[test]
    fn over_all_types_at_once_the_most_urgent_has_the_first_choice() {
        let shares = [[0.3, 0.7], [0.6, 0.8], [0.5, 0.5]];
        let mut claimants: Vec<_> = (0..3).map(|job| claimant(&[job], 1, &shares[job as usize])).collect();
        set_priorities(&mut claimants, &[30.0, 30.0]);
        assert_eq!(choose_anywhere(&claimants, &[1, 1], |_| true), [vec![2], vec![1]]);
        assert_eq!(choose_anywhere(&claimants, &[1, 1], |at| at != 1), [vec![2], vec![0]]);
        assert_eq!(choose(&claimants, &[1, 1], &[0, 1], Idle::Left), [vec![1], vec![0]], "type by type");
    }

    #[test]
    fn what_was_due_and_not_received_decides_between_equals() {
        let mut claimants = [claimant(&[0], 1, &[0.5]), claimant(&[1], 1, &[0.5])];
        claimants[0].accounts[0].received_s += 60.0;
        claimants.iter_mut().for_each(|claimant| claimant.accounts[0].reopen(100.0, 10.0));
        let deficits: Vec<f64> = claimants.iter().map(|claimant| claimant.accounts[0].deficit_s).collect();
        assert_eq!(deficits, [-10.0, 50.0]);
        set_priorities(&mut claimants, &[20.0]);
        assert_eq!(choose(&claimants, &[1], &[0], Idle::Filled), [vec![1]]);
        claimants[1].accounts[0].deficit_s = -10.0;
        assert_eq!(choose(&claimants, &[1], &[0], Idle::Filled), [vec![0]], "then the first");
    }
}
