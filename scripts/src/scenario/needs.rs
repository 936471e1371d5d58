//! What a job of a scenario makes of CPUs and memory: a demand that changes nothing, or its speed at each level.

use rota_core::profile::HostCurve;

use super::error::LineError;

/// One resource, for each GPU.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Need {
    /// The least with which the job runs at its best.
    pub(super) demand: f64,
    /// (amount, iterations per second), ascending; empty where it makes no difference.
    points: Vec<(f64, f64)>,
}

impl Need {
    /// So much, without a difference in speed.
    pub(super) fn of(demand: f64) -> Need {
        Need { demand, points: Vec::new() }
    }

    /// Reads `6`, or `1:0.4,3:1,9:2.4`: the speed at each amount, whose best is the demand.
    pub(super) fn parse(text: &str) -> Result<Need, LineError> {
        if !text.contains(':') {
            return super::parse::number(text).map(Need::of);
        }
        let point = |point: &str| {
            let (amount, speed) =
                point.split_once(':').ok_or_else(|| super::parse::piece(point, "amount:speed"))?;
            Ok((super::parse::number(amount)?, super::parse::number(speed)?))
        };
        let points: Vec<(f64, f64)> = text.split(',').map(point).collect::<Result<_, LineError>>()?;
        let best = points.iter().map(|point| point.1).fold(0.0, f64::max);
        let demand = points.iter().find(|point| point.1 >= best).map_or(0.0, |point| point.0);
        Ok(Need { demand, points })
    }

    /// The levels of a grid: where it makes no difference, the demand alone.
    fn levels(&self) -> Vec<(f64, f64)> {
        if self.points.is_empty() { vec![(self.demand, f64::INFINITY)] } else { self.points.clone() }
    }
}

/// The speed by both: the scarcer one decides.
pub(super) fn curve(cpus: &Need, mem_gb: &Need) -> Result<Option<HostCurve>, LineError> {
    if cpus.points.is_empty() && mem_gb.points.is_empty() {
        return Ok(None);
    }
    let (cpus, mem_gb) = (cpus.levels(), mem_gb.levels());
    let row = |cpu: &(f64, f64)| mem_gb.iter().map(|mem| cpu.1.min(mem.1)).collect();
    let speed = cpus.iter().map(row).collect();
    let amounts = |levels: &[(f64, f64)]| levels.iter().map(|level| level.0).collect();
    HostCurve::new(amounts(&cpus), amounts(&mem_gb), speed).map(Some).map_err(LineError::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_demand_is_the_least_that_runs_best() {
        assert_eq!(Need::parse("1:0.4,3:1,9:2,12:2").map(|need| need.demand), Ok(9.0));
        assert_eq!(Need::parse("6"), Ok(Need::of(6.0)));
        assert!(Need::parse("1:0.4,three:1").is_err() && Need::parse("1:0.4,3").is_err());
    }

    #[test]
    fn the_scarcer_resource_decides() {
        let need = |text| Need::parse(text).expect("a need");
        let curve = |cpus, mem| curve(&need(cpus), &need(mem)).expect("a curve").expect("a sensitive job");
        let both = curve("1:0.5,3:1,9:3", "10:0.1,50:2");
        assert_eq!((both.at(9.0, 50.0), both.at(3.0, 50.0), both.at(9.0, 10.0)), (2.0, 1.0, 0.1));
        assert_eq!(curve("1:0.5,3:1", "10").at(2.0, 0.0), 0.75);
    }

    #[test]
    fn levels_that_do_not_ascend_and_speeds_of_nothing_are_refused() {
        let refused = |text| curve(&Need::parse(text).expect("numbers"), &Need::of(1.0)).is_err();
        assert!(refused("3:1,1:0.5") && refused("1:0,3:1"));
        assert_eq!(curve(&Need::of(4.0), &Need::of(1.0)), Ok(None));
    }
}
