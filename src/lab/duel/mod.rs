//! The search for counterexamples: `rota policy duel P --against Q`, and the properties that policies should have.
//!
//! ```text
//! seed, number ─ draw ─▶ Case ─▶ Setting ─ Arena::judge ─▶ ratio          (question, property, rounds; on all cores)
//!                          │                     │
//!                          └──── shrink ◀── the worst of all              (beyond the margin)
//!                                   │
//!                                   └▶ Counterexample: scenarios, blame   (the first bad decision)
//! ```
//!
//! A case is drawn from the seed and its number alone, so that the findings are the same on any number of threads. Every
//! question is answered by a ratio, in which 1 is as it should be; shrinking and reporting use only that ratio.

pub mod blame;
pub mod case;
pub mod draw;
mod found;
pub mod property;
pub mod question;
mod rounds;
pub mod shrink;
pub mod side;
mod tally;
mod text;

use rayon::prelude::*;

pub use case::{Case, Setting};
pub use draw::{Sizes, draw};
pub use found::{Counterexample, explained};
pub use property::Property;
pub use question::{Arena, Judged, Parameters, Question};
pub use side::{Match, Side, SideError, matches};
pub use tally::Tally;

/// The fewest cases that a thread takes at a time: policies are loaded again for each such batch.
const PIECE: usize = 64;

/// What is searched, and where.
#[derive(Clone, Debug)]
pub struct Search {
    /// The pairs of policies to compare, in turn.
    pub matches: Vec<Match>,
    /// What is compared.
    pub question: Question,
    /// Parameters of the policies.
    pub set: Parameters,
    /// How large the cases are.
    pub sizes: Sizes,
    /// Cases to draw.
    pub n_cases: u64,
    /// Seed of all cases.
    pub seed: u64,
    /// How much worse than 1 a ratio may be.
    pub margin: f64,
}

/// The result of a search.
#[derive(Clone, Debug, serde::Serialize)]
pub struct Findings {
    /// The policies that were compared.
    pub matches: Vec<Match>,
    /// What was compared.
    pub question: Question,
    /// How large the cases were.
    pub sizes: Sizes,
    /// Seed of all cases.
    pub seed: u64,
    /// How much worse than 1 a ratio may be.
    pub margin: f64,
    /// How the ratios are spread: of all cases, then of parts of them.
    pub tallies: Vec<Tally>,
    /// The worst case, shrunk, if it is beyond the margin.
    pub counterexample: Option<Counterexample>,
}

impl Search {
    /// Judges every case and shrinks the worst. `tick` is called once for each case, from any thread.
    pub fn run(&self, tick: &(dyn Fn() + Sync)) -> Result<Findings, SideError> {
        let judged = self.judge_all(tick)?;
        let counterexample = match self.worst(&judged) {
            Some(index) => Some(self.shrunk(index, &judged[index as usize])?),
            None => None,
        };
        Ok(self.findings(&judged, counterexample))
    }

    /// Judges every case, by number.
    pub fn judge_all(&self, tick: &(dyn Fn() + Sync)) -> Result<Vec<Judged>, SideError> {
        let judge = |arenas: &mut Result<Vec<Arena>, SideError>, index: u64| {
            tick();
            match arenas {
                Ok(arenas) => {
                    let turn = self.turn(index);
                    let setting = draw(self.seed, index, &self.sizes).setting();
                    Ok(arenas[turn].judge(&setting.expect("a case that was drawn can be run")))
                }
                Err(_) => self.arenas().map(|_| unreachable!("what did not load once does not load again")),
            }
        };
        (0..self.n_cases as usize)
            .into_par_iter()
            .with_min_len(PIECE)
            .map_init(|| self.arenas(), |arenas, index| judge(arenas, index as u64))
            .collect()
    }

    /// The policies of a batch of cases, loaded.
    fn arenas(&self) -> Result<Vec<Arena>, SideError> {
        self.matches.iter().map(|of| Arena::load(self.question, of, &self.set)).collect()
    }

    /// Which pair of policies a case is for.
    fn turn(&self, index: u64) -> usize {
        (index % self.matches.len() as u64) as usize
    }

    /// The case that is furthest beyond the margin; of several, the lightest, then the first.
    pub fn worst(&self, judged: &[Judged]) -> Option<u64> {
        let beyond = judged.iter().enumerate().filter(|(_, judged)| judged.ratio > 1.0 + self.margin);
        let worst = beyond.clone().map(|(_, judged)| judged.ratio).fold(0.0, f64::max);
        let worst = beyond.filter(|(_, judged)| judged.ratio == worst).map(|(index, _)| index as u64);
        worst.min_by_key(|index| (draw(self.seed, *index, &self.sizes).weight(), *index))
    }

    /// Shrinks a case, keeping at least half of its excess over 1, and explains it.
    pub fn shrunk(&self, index: u64, judged: &Judged) -> Result<Counterexample, SideError> {
        let of = &self.matches[self.turn(index)];
        let mut arena = Arena::load(self.question, of, &self.set)?;
        let off = if judged.ratio.is_finite() { judged.ratio - 1.0 } else { 1.0 };
        let least = 1.0 + self.margin.max(off / 2.0);
        let case = shrink::shrink(draw(self.seed, index, &self.sizes), &mut |case| {
            case.setting().is_ok_and(|setting| arena.judge(&setting).ratio > least)
        });
        Ok(found::counterexample(index, of, judged.ratio, case, &mut arena))
    }

    fn findings(&self, judged: &[Judged], counterexample: Option<Counterexample>) -> Findings {
        let orders: Vec<(String, usize)> =
            self.matches.iter().enumerate().map(|(turn, of)| (of.policy.clone(), turn)).collect();
        let mut tallies = vec![Tally::of("all", judged.iter(), self.margin)];
        for (name, is_crowded) in [("without queueing", false), ("under load", true)] {
            let part = judged.iter().filter(|judged| judged.is_crowded == is_crowded);
            tallies.push(Tally::of(name, part, self.margin));
        }
        for (name, turn) in orders.iter().filter(|_| orders.len() > 1) {
            let part = judged.iter().skip(*turn).step_by(orders.len());
            tallies.push(Tally::of(name, part, self.margin));
        }
        tallies.retain(|tally| tally.n > 0);
        Findings {
            matches: self.matches.clone(),
            question: self.question,
            sizes: self.sizes,
            seed: self.seed,
            margin: self.margin,
            tallies,
            counterexample,
        }
    }
}
