//! Why a job does not fit before its deadline, in terms that a user can act on.

use std::fmt;

use super::{Need, Timeline};
use crate::time::Time;

/// Why a job cannot meet its deadline.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Shortfall {
    /// From when it was planned.
    pub from: Time,
    /// The deadline that cannot be met.
    pub deadline: Time,
    /// The lowest level that would do if all of it were free all the time; `None` when no level is fast enough.
    pub share: Option<u32>,
    /// The level at which it would be done first if all were free, and the seconds it would take.
    pub fastest: Option<(u32, f64)>,
    /// The stretch with fewest free GPUs: (from, to, free). `None` when there is no time left.
    pub scarcest: Option<(Time, Time, i32)>,
    /// Part of its work that can be done in time with what is free, from 0 to 1.
    pub doable: f64,
}

impl Timeline {
    /// Why `need` cannot be met from `from` on.
    pub fn shortfall(&self, need: &Need<'_>, from: Time) -> Shortfall {
        let time_left = (need.deadline - from).as_secs_f64().max(0.0);
        let levels = need.speeds.levels().iter().take_while(|l| l.0 <= self.n_gpus());
        let share = levels.clone().find(|l| l.1 * time_left >= need.work).map(|l| l.0);
        let fastest = levels.clone().copied().reduce(|best, l| if l.1 > best.1 { l } else { best });
        let fastest = fastest.map(|(gpus, rate)| (gpus, need.work / rate));
        let most = levels.last().map_or(0, |l| l.0) as i32;
        let mut done = 0.0;
        let mut scarcest: Option<(Time, Time, i32)> = None;
        for (begin, end, free) in self.window(from, need.deadline) {
            let rate = need.speeds.within(free.min(most)).map_or(0.0, |l| l.1);
            done += (end - begin).as_secs_f64() * rate;
            if scarcest.is_none_or(|s| free < s.2) {
                scarcest = Some((begin, end, free));
            }
        }
        let doable = if need.work > 0.0 { (done / need.work).min(1.0) } else { 1.0 };
        Shortfall { from, deadline: need.deadline, share, fastest, scarcest, doable }
    }
}

impl fmt::Display for Shortfall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some((begin, end, free)) = self.scarcest else {
            return write!(f, "its deadline {} s had passed at {} s", self.deadline, self.from);
        };
        let Some(share) = self.share else {
            write!(f, "no number of GPUs it can use would finish it by its deadline {} s", self.deadline)?;
            return match self.fastest {
                Some((gpus, seconds)) => write!(
                    f,
                    ": with {gpus}, the fastest, it takes {seconds:.0} s of the {:.0} s from {} s on",
                    (self.deadline - self.from).as_secs_f64(),
                    self.from
                ),
                None => Ok(()),
            };
        };
        let percent = (self.doable * 100.0).floor();
        write!(
            f,
            "needs {share} GPUs from {} s to its deadline {} s, but from {begin} s to {end} s only {} are free: \
             {percent} % of its work can be done in time",
            self.from,
            self.deadline,
            free.max(0)
        )
    }
}
