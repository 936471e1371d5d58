//! Finish-time fairness (Themis, NSDI'20, §3): shares of a cluster under which the worst-off job is as well off as it
//! can be. A small convex problem with one unknown that matters, so it is solved by bisection on that one.

/// A job as the problem sees it. Its ratio with a share `x` of its gang's time is `(waited + left / x) / alone`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Claim {
    /// GPUs of its gang.
    pub gpus: f64,
    /// Time since it was submitted.
    pub waited: f64,
    /// Time it still needs with its gang to itself.
    pub left: f64,
    /// Time it would have needed in all with its part of the cluster to itself.
    pub alone: f64,
}

/// Relative width at which the ratio is exact enough: shares are then exact to their last digits.
const PRECISION: f64 = 1e-15;

/// The least possible largest ratio, and the smallest share of each job that attains it.
pub fn fair_shares(claims: &[Claim], n_gpus: f64) -> (f64, Vec<f64>) {
    let shares = |ratio: f64| claims.iter().map(move |c| share(c, ratio));
    let fits = |ratio: f64| claims.iter().zip(shares(ratio)).map(|(c, x)| c.gpus * x).sum::<f64>() <= n_gpus;
    let mut low = claims.iter().map(|c| (c.waited + c.left) / c.alone).fold(0.0, f64::max);
    if !fits(low) {
        let mut high = low.max(f64::MIN_POSITIVE);
        while !fits(high) && high.is_finite() {
            low = high;
            high *= 2.0;
        }
        while high - low > PRECISION * high {
            let middle = low + (high - low) / 2.0;
            if middle <= low || middle >= high {
                break;
            }
            *(if fits(middle) { &mut high } else { &mut low }) = middle;
        }
        low = high;
    }
    (low, shares(low).collect())
}

/// The share with which a job's ratio is just `ratio`; all of its gang's time where that is not enough.
fn share(claim: &Claim, ratio: f64) -> f64 {
    let slack = ratio * claim.alone - claim.waited;
    if slack > claim.left { claim.left / slack } else { 1.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn claim(gpus: f64, waited: f64, left: f64, alone: f64) -> Claim {
        Claim { gpus, waited, left, alone }
    }

    #[test]
    fn where_all_fit_the_slowest_sets_the_ratio() {
        let (ratio, shares) = fair_shares(&[claim(1.0, 0.0, 10.0, 10.0), claim(1.0, 10.0, 10.0, 10.0)], 2.0);
        assert_eq!((ratio, shares), (2.0, vec![0.5, 1.0]));
    }

    #[test]
    fn equal_jobs_share_a_cluster_that_is_too_small_equally() {
        let (ratio, shares) = fair_shares(&[claim(2.0, 0.0, 10.0, 10.0); 4], 2.0);
        assert!((ratio - 4.0).abs() < 1e-9, "{ratio}");
        assert!(shares.iter().all(|x| (x - 0.25).abs() < 1e-9), "{shares:?}");
    }

    #[test]
    fn no_other_shares_do_better() {
        let mut state = 7_u64;
        let mut draw = |scale: f64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            0.01 + scale * (state >> 33) as f64 / f64::from(u32::MAX >> 1)
        };
        for round in 0..200 {
            let claims: Vec<Claim> =
                (0..6).map(|_| claim(draw(8.0), draw(50.0), draw(100.0), draw(100.0))).collect();
            let n_gpus = draw(20.0);
            let (ratio, shares) = fair_shares(&claims, n_gpus);
            let used: f64 = claims.iter().zip(&shares).map(|(c, x)| c.gpus * x).sum();
            assert!(used <= n_gpus * (1.0 + 1e-9), "round {round}: {used} of {n_gpus}");
            let worst = |shares: &[f64]| {
                claims.iter().zip(shares).map(|(c, x)| (c.waited + c.left / x) / c.alone).fold(0.0, f64::max)
            };
            assert!(worst(&shares) <= ratio * (1.0 + 1e-9), "round {round}");
            for favoured in 0..claims.len() {
                let mut other = shares.clone();
                other[favoured] = (other[favoured] * 1.01).min(1.0);
                let used: f64 = claims.iter().zip(&other).map(|(c, x)| c.gpus * x).sum();
                let shrink = (n_gpus / used).min(1.0);
                other.iter_mut().for_each(|x| *x *= shrink);
                assert!(worst(&other) >= ratio * (1.0 - 1e-9), "round {round}: {other:?} beat {shares:?}");
            }
        }
    }

    #[test]
    fn nobody_claims_nothing() {
        assert_eq!(fair_shares(&[], 8.0), (0.0, vec![]));
    }
}
