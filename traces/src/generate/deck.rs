//! Values that are taken in random order, each once before any is taken again.

use rand::RngExt;
use rand::rngs::ChaCha8Rng;

/// Values as a deck of cards.
pub(super) struct Deck<T> {
    cards: Vec<T>,
    n_dealt: usize,
}

impl<T: Copy> Deck<T> {
    /// The next value; when all were dealt, the deck is shuffled again. None if there are no values.
    pub(super) fn deal(&mut self, rng: &mut ChaCha8Rng) -> Option<T> {
        let n = self.cards.len();
        if n == 0 {
            return None;
        }
        if self.n_dealt == n {
            self.n_dealt = 0;
        }
        // One step of a shuffle: what is not yet dealt lies behind what is.
        let other = rng.random_range(self.n_dealt..n);
        self.cards.swap(self.n_dealt, other);
        self.n_dealt += 1;
        self.cards.get(self.n_dealt - 1).copied()
    }
}

impl<T> FromIterator<T> for Deck<T> {
    fn from_iter<I: IntoIterator<Item = T>>(values: I) -> Self {
        Deck { cards: values.into_iter().collect(), n_dealt: 0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::generate::draws::{self, Purpose};

    #[test]
    fn every_value_comes_once_before_any_comes_again() {
        let mut rng = draws::stream(1, Purpose::Gpus);
        let mut deck: Deck<u32> = (0..50).collect();
        let mut rounds: Vec<Vec<u32>> =
            (0..3).map(|_| (0..50).filter_map(|_| deck.deal(&mut rng)).collect()).collect();
        assert!(rounds[0] != rounds[1] && rounds[1] != rounds[2], "each time in another order");
        for round in &mut rounds {
            round.sort_unstable();
            assert_eq!(*round, (0..50).collect::<Vec<_>>());
        }
        assert_eq!([].into_iter().collect::<Deck<u32>>().deal(&mut rng), None);
    }
}
