//! Phase 1 without a solver: a bound on the throughput of all jobs together, by prices for CPUs and memory.
//!
//! Whatever the prices `p`, `q` ≥ 0, no choice of levels within `C` CPUs and `M` memory has more throughput than
//!
//! ```text
//! p C + q M + Σ over jobs of max over levels (throughput − p cpus − q memory)
//! ```
//!
//! The least of these is the optimum of the linear relaxation, in which jobs may mix levels. It is looked for with
//! tangents, first along `p` and around that along `q`: the function is convex and made of planes, so tangents meet in
//! its corners after few steps. Wherever the search ends, what it returns is the value at some prices, and so a bound.

use super::Level;

/// Tangents along one price; corners are met after a handful.
const MOST_STEPS: u32 = 40;
/// Doublings until a price is high enough; when none is, no choice of levels fits at all.
const MOST_DOUBLINGS: u32 = 60;
/// Tangents that meet this close to the function have met on it.
const CLOSE: f64 = 1e-10;

/// Like jobs: ways to run one of them, and how many they are.
#[derive(Clone, Copy, Debug)]
pub struct Offered<'a> {
    /// Ways to run one of them; without any they count for nothing.
    pub levels: &'a [Level],
    /// How many jobs.
    pub count: u32,
}

/// What the relaxation says.
#[derive(Clone, Debug, PartialEq)]
pub struct Relaxed {
    /// Throughput that no choice of levels exceeds.
    pub bound: f64,
    /// Throughput that one job of each class has at the optimum of the relaxation, on average over the class.
    pub due: Vec<f64>,
}

/// A bound for jobs that share so many CPUs and so much memory.
pub fn relaxed(cpus: f64, memory: f64, classes: &[Offered<'_>]) -> Relaxed {
    let market = Market { cpus, memory, classes };
    let found = descend(&|q| market.at_best_cpu_price(q));
    let mut due = vec![0.0; classes.len()];
    for (part, q) in found.mixture {
        for (part_of_q, p) in market.cpu_prices(q).mixture {
            for (due, class) in due.iter_mut().zip(classes) {
                let level = best(class.levels, p, q);
                *due += part * part_of_q * level.map_or(0.0, |level| level.throughput);
            }
        }
    }
    Relaxed { bound: found.value, due }
}

/// Levels worth offering: no other needs as little and gives as much.
pub fn worth_offering(levels: &[Level]) -> Vec<Level> {
    super::undominated(levels).into_iter().map(|at| levels[at]).collect()
}

struct Market<'a> {
    cpus: f64,
    memory: f64,
    classes: &'a [Offered<'a>],
}

/// The function at one price: its value, how it rises there, and what else is known of the place.
#[derive(Clone, Copy)]
struct Tangent {
    value: f64,
    slope: f64,
    /// How the value rises with the other price.
    slope_across: f64,
}

/// Where a descent ended: the value, and which prices in which parts make the slope zero there.
struct Found {
    value: f64,
    slope_across: f64,
    mixture: Vec<(f64, f64)>,
}

impl Market<'_> {
    /// At both prices, as a function of that of CPUs.
    fn at(&self, p: f64, q: f64) -> Tangent {
        let (mut value, mut slope, mut slope_across) =
            (p * self.cpus + q * self.memory, self.cpus, self.memory);
        for class in self.classes {
            let Some(level) = best(class.levels, p, q) else { continue };
            let count = f64::from(class.count);
            value += count * profit(&level, p, q);
            slope -= count * level.cpus;
            slope_across -= count * level.memory;
        }
        Tangent { value, slope, slope_across }
    }

    fn cpu_prices(&self, q: f64) -> Found {
        descend(&|p| self.at(p, q))
    }

    /// At the best price of CPUs, as a function of that of memory.
    fn at_best_cpu_price(&self, q: f64) -> Tangent {
        let found = self.cpu_prices(q);
        Tangent { value: found.value, slope: found.slope_across, slope_across: 0.0 }
    }
}

fn profit(level: &Level, p: f64, q: f64) -> f64 {
    level.throughput - p * level.cpus - q * level.memory
}

/// The level with the most profit, the first of equals.
fn best(levels: &[Level], p: f64, q: f64) -> Option<Level> {
    let mut best: Option<(f64, &Level)> = None;
    for level in levels {
        let profit = profit(level, p, q);
        if best.is_none_or(|(most, _)| profit > most) {
            best = Some((profit, level));
        }
    }
    best.map(|(_, level)| *level)
}

/// The least value over prices from 0 on of a convex function made of straight pieces.
fn descend(function: &dyn Fn(f64) -> Tangent) -> Found {
    let at_once = |price: f64, t: Tangent| Found {
        value: t.value,
        slope_across: t.slope_across,
        mixture: vec![(1.0, price)],
    };
    let (mut low, mut low_price) = (function(0.0), 0.0);
    if low.slope >= 0.0 {
        return at_once(0.0, low);
    }
    // What the capacity is worth at most, for each unit that is too much.
    let mut high_price = (low.value / -low.slope).max(f64::MIN_POSITIVE);
    let mut high = function(high_price);
    for _ in 0..MOST_DOUBLINGS {
        if high.slope >= 0.0 {
            break;
        }
        (low, low_price) = (high, high_price);
        high_price *= 2.0;
        high = function(high_price);
    }
    if high.slope < 0.0 {
        return at_once(high_price, high);
    }
    let mut least = if low.value < high.value { low.value } else { high.value };
    for _ in 0..MOST_STEPS {
        let price = (high.value - low.value + low.slope * low_price - high.slope * high_price)
            / (low.slope - high.slope);
        let met = low.value + low.slope * (price - low_price);
        let here = function(price);
        least = least.min(here.value);
        if here.value - met <= CLOSE * here.value.abs() || !(low_price < price && price < high_price) {
            break;
        }
        if here.slope < 0.0 {
            (low, low_price) = (here, price);
        } else {
            (high, high_price) = (here, price);
        }
    }
    let of_low = high.slope / (high.slope - low.slope);
    Found {
        value: least,
        slope_across: of_low * low.slope_across + (1.0 - of_low) * high.slope_across,
        mixture: vec![(of_low, low_price), (1.0 - of_low, high_price)],
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::synergy_opt::{ClassProblem, LevelClass, LevelJob, LevelProblem, Shape};
    use crate::{Highs, Limits, Solver, Start};

    fn level(cpus: f64, memory: f64, throughput: f64) -> Level {
        Level { cpus, memory, throughput }
    }

    #[test]
    fn who_fits_at_full_speed_is_bounded_by_it() {
        let fast = [level(3.0, 60.0, 1.0), level(12.0, 60.0, 3.0)];
        let found = relaxed(24.0, 500.0, &[Offered { levels: &fast, count: 2 }]);
        assert_eq!((found.bound, found.due), (6.0, vec![3.0]));
    }

    /// Of 21 CPUs three jobs have 3 each, and the other 12 bring 2/9 each to the fast ones: 3 + 12 x 2/9. Whole levels
    /// reach 5.
    #[test]
    fn what_is_scarce_goes_where_it_brings_most() {
        let fast = [level(3.0, 60.0, 1.0), level(12.0, 60.0, 3.0)];
        let slow = [level(3.0, 60.0, 1.0), level(12.0, 60.0, 1.5)];
        let both = [Offered { levels: &fast, count: 2 }, Offered { levels: &slow, count: 1 }];
        let found = relaxed(21.0, 500.0, &both);
        assert!((found.bound - (3.0 + 12.0 * 2.0 / 9.0)).abs() < 1e-9, "{found:?}");
        assert!((found.due[0] - (1.0 + 6.0 * 2.0 / 9.0)).abs() < 1e-9 && found.due[1] == 1.0, "{found:?}");
    }

    #[test]
    fn two_scarce_resources_have_a_price_each() {
        // One more CPU brings 1 to the first, one more unit of memory 1 to the second; 10 of each are there.
        let first = [level(0.0, 0.0, 0.0), level(20.0, 0.0, 20.0)];
        let second = [level(0.0, 0.0, 0.0), level(0.0, 40.0, 40.0)];
        let both = [Offered { levels: &first, count: 1 }, Offered { levels: &second, count: 1 }];
        let found = relaxed(10.0, 10.0, &both);
        assert!((found.bound - 20.0).abs() < 1e-9, "{found:?}");
        assert!((found.due[0] - 10.0).abs() < 1e-9 && (found.due[1] - 10.0).abs() < 1e-9, "{found:?}");
    }

    #[test]
    fn no_jobs_have_no_throughput() {
        assert_eq!(relaxed(10.0, 10.0, &[]).bound, 0.0);
        assert_eq!(relaxed(10.0, 10.0, &[Offered { levels: &[], count: 3 }]).due, [0.0]);
    }

    mod random {
        use proptest::prelude::*;

        use super::*;

        prop_compose! {
            fn a_level()(cpus in 0.0..24.0_f64, memory in 0.0..500.0_f64, throughput in 0.1..4.0_f64) -> Level {
                level(cpus, memory, throughput)
            }
        }

        prop_compose! {
            fn a_class()(levels in prop::collection::vec(a_level(), 1..12), count in 1..6_u32) -> (Vec<Level>, u32) {
                // Somebody who gets nothing is always possible, so that there is a solution.
                let levels = levels.into_iter().chain([level(0.0, 0.0, 0.05)]);
                (levels.collect(), count)
            }
        }

        proptest! {
            #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

            /// Never below the optimum of whole levels, nor noticeably above that of the linear relaxation.
            #[test]
            fn the_bound_lies_between_the_optimum_and_the_relaxation(
                classes in prop::collection::vec(a_class(), 1..6),
                cpus in 1.0..120.0_f64,
                memory in 10.0..2000.0_f64,
            ) {
                let offered: Vec<Vec<Level>> = classes.iter().map(|(levels, _)| worth_offering(levels)).collect();
                let offered: Vec<Offered<'_>> = offered
                    .iter()
                    .zip(&classes)
                    .map(|(levels, (_, count))| Offered { levels, count: *count })
                    .collect();
                let found = relaxed(cpus, memory, &offered);
                let like = classes.iter().map(|(levels, count)| LevelClass {
                    levels: levels.clone(),
                    floor: 0.0,
                    count: *count,
                });
                let problem = ClassProblem { cpus, memory, classes: like.collect() };
                let exact = Highs.solve(&problem.model().unwrap().model, &Limits::default(), Start::Cold).objective.unwrap();
                prop_assert!(found.bound >= exact - 1e-6 * exact.abs(), "{} below {exact}", found.bound);
                let apart = classes.iter().flat_map(|(levels, count)| {
                    vec![LevelJob { levels: levels.clone(), floor: 0.0 }; *count as usize]
                });
                let apart = LevelProblem { cpus, memory, jobs: apart.collect() };
                let linear = apart.model(Shape::Relaxed).unwrap().model;
                let linear = Highs.solve(&linear, &Limits::default(), Start::Cold).objective.unwrap();
                prop_assert!(found.bound <= linear + 1e-5 * linear.abs(), "{} above {linear}", found.bound);
                let due: f64 = found.due.iter().zip(&offered).map(|(due, class)| due * f64::from(class.count)).sum();
                prop_assert!((due - linear).abs() <= 1e-4 * linear.abs(), "{due} is not {linear}");
            }
        }
    }
}
