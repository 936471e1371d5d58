//! Which rows are compared: those of two policies at the same settings.

use super::super::evidence::{Cell, text_of};
use super::super::quantity::Quantity;
use super::LEVEL;

/// Which policies a claim compares.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pairing {
    /// Under each order, one allocation with another: `las+tune` with `las+proportional`.
    Allocations(&'static str, &'static str),
    /// A policy with each of these.
    Named(&'static str, &'static [&'static str]),
    /// A policy with everybody else.
    Everybody(&'static str),
}

/// A policy and another one at the same settings, in one quantity.
pub(super) struct Pair<'a> {
    pub(super) leader: &'a Cell<'a>,
    pub(super) rival: &'a Cell<'a>,
    of: &'a Quantity,
    values: (f64, f64),
}

impl Pairing {
    /// The policies, for messages.
    pub(super) fn text(&self) -> String {
        match self {
            Pairing::Allocations(leader, rival) => format!("{leader} and {rival} under the same order"),
            Pairing::Named(leader, rivals) => format!("{leader} and {}", rivals.join(", ")),
            Pairing::Everybody(leader) => format!("{leader} and anybody else"),
        }
    }

    fn is_pair(&self, leader: &str, rival: &str) -> bool {
        match self {
            Pairing::Allocations(ours, theirs) => {
                let parts = leader.rsplit_once('+').zip(rival.rsplit_once('+'));
                parts.is_some_and(|((order, own), (other, their))| {
                    order == other && own == *ours && their == *theirs
                })
            }
            Pairing::Named(name, rivals) => leader == *name && rivals.contains(&rival),
            Pairing::Everybody(name) => leader == *name && rival != *name,
        }
    }

    /// All pairs that have the quantity, in the order of the rows.
    pub(super) fn pairs<'a>(&self, cells: &'a [Cell<'a>], of: &'a Quantity) -> Vec<Pair<'a>> {
        let mut pairs = Vec::new();
        for leader in cells {
            for rival in cells.iter().filter(|rival| rival.at == leader.at) {
                if let (true, Some(values)) =
                    (self.is_pair(leader.policy, rival.policy), leader.mean(of.name).zip(rival.mean(of.name)))
                {
                    pairs.push(Pair { leader, rival, of, values });
                }
            }
        }
        pairs
    }
}

impl Pair<'_> {
    /// How many times better the leader is.
    pub(super) fn lead(&self) -> f64 {
        self.of.lead(self.values.0, self.values.1)
    }

    /// Both numbers and their settings.
    pub(super) fn text(&self) -> String {
        let (ours, theirs) = self.values;
        let mut text = format!(
            "{} {} against {} {}",
            self.leader.policy,
            self.of.text(ours),
            self.rival.policy,
            self.of.text(theirs)
        );
        if !self.leader.at.is_empty() {
            text.push_str(&format!(" at {}", text_of(self.leader.at)));
        }
        let (n_against, n_seeds) = self.seeds_against();
        if n_against > 0 && n_seeds > 1 {
            text.push_str(&format!(" (behind in {n_against} of {n_seeds} seeds)"));
        }
        text
    }

    /// Seeds in which the leader is clearly behind, and all that both have.
    fn seeds_against(&self) -> (usize, usize) {
        let leads = self.leader.seeds().filter_map(|seed| {
            let ours = self.leader.with_seed(seed, self.of.name)?;
            Some(self.of.lead(ours, self.rival.with_seed(seed, self.of.name)?))
        });
        leads.fold((0, 0), |(against, all), lead| (against + usize::from(lead < 1.0 - LEVEL), all + 1))
    }
}
