//! Python's random numbers (`random.Random(seed)`): the Mersenne Twister MT19937 of Matsumoto and Nishimura (1998).
//!
//! Used only to draw a published run again number by number: see `artifact` next to it, and the golden cases of Gavel.

const N: usize = 624;
const M: usize = 397;
const UPPER: u32 = 0x8000_0000;

/// A generator in the state that Python's is in after `seed(n)`.
#[derive(Clone, Debug)]
pub struct PythonRandom {
    state: [u32; N],
    next: usize,
}

impl PythonRandom {
    /// Seeds it as Python does: by the 32-bit words of the number.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        let words = [seed as u32, (seed >> 32) as u32];
        let key = if words[1] == 0 { &words[..1] } else { &words[..] };
        let mut state = [0; N];
        state[0] = 19_650_218;
        for at in 1..N {
            let last: u32 = state[at - 1];
            state[at] = 1_812_433_253_u32.wrapping_mul(last ^ (last >> 30)).wrapping_add(at as u32);
        }
        let mut at = 1;
        for step in 0..N {
            let word = step % key.len();
            let mixed = state[at] ^ previous(&state, at).wrapping_mul(1_664_525);
            state[at] = mixed.wrapping_add(key[word]).wrapping_add(word as u32);
            at = following(&mut state, at);
        }
        for _ in 1..N {
            let mixed = state[at] ^ previous(&state, at).wrapping_mul(1_566_083_941);
            state[at] = mixed.wrapping_sub(at as u32);
            at = following(&mut state, at);
        }
        state[0] = UPPER;
        PythonRandom { state, next: N }
    }

    /// `random()`: 53 bits, from 0 to less than 1.
    pub(super) fn random(&mut self) -> f64 {
        let (high, low) = (self.word() >> 5, self.word() >> 6);
        (f64::from(high) * 67_108_864.0 + f64::from(low)) / 9_007_199_254_740_992.0
    }

    /// `uniform(low, high)`.
    pub(super) fn uniform(&mut self, low: f64, high: f64) -> f64 {
        low + (high - low) * self.random()
    }

    /// `randint(0, 9)`.
    pub(super) fn digit(&mut self) -> u32 {
        self.below(10)
    }

    /// `randrange(n)`: as many bits as `n` has, again until they are below it. `n` is at least 1.
    pub fn below(&mut self, n: u32) -> u32 {
        loop {
            let bits = self.word() >> n.leading_zeros();
            if bits < n {
                return bits;
            }
        }
    }

    fn word(&mut self) -> u32 {
        if self.next == N {
            self.twist();
        }
        let mut word = self.state[self.next];
        self.next += 1;
        word ^= word >> 11;
        word ^= (word << 7) & 0x9d2c_5680;
        word ^= (word << 15) & 0xefc6_0000;
        word ^ (word >> 18)
    }

    fn twist(&mut self) {
        for at in 0..N {
            let joined = (self.state[at] & UPPER) | (self.state[(at + 1) % N] & !UPPER);
            let odd = if joined & 1 == 1 { 0x9908_b0df } else { 0 };
            self.state[at] = self.state[(at + M) % N] ^ (joined >> 1) ^ odd;
        }
        self.next = 0;
    }
}

fn previous(state: &[u32; N], at: usize) -> u32 {
    let last = state[at - 1];
    last ^ (last >> 30)
}

/// The next place; the last word is carried over to the first.
fn following(state: &mut [u32; N], at: usize) -> usize {
    if at + 1 < N {
        return at + 1;
    }
    state[0] = state[N - 1];
    1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_numbers_are_pythons() {
        let mut rng = PythonRandom::new(42);
        let drawn: Vec<f64> = (0..3).map(|_| rng.random()).collect();
        assert_eq!(drawn, [0.639_426_798_457_883_7, 0.025_010_755_222_666_936, 0.275_029_318_369_119_26]);
        let mut rng = PythonRandom::new(42);
        let digits: Vec<u32> = (0..12).map(|_| rng.digit()).collect();
        assert_eq!(digits, [1, 0, 4, 3, 3, 2, 1, 8, 1, 9, 6, 0]);
        assert_eq!(rng.random(), 0.029_797_219_438_070_344);
        assert_eq!(PythonRandom::new((1 << 40) + 5).random(), 0.504_380_297_041_844_3, "a seed of two words");
    }
}
