//! Rota's fault file: what fails how often, in which law, and single outages at known times.

use rota_core::cluster::Cluster;
use rota_core::time::{Span, Time};
use serde::Deserialize;

use super::{Cause, DrawnEnds, FaultPlan, Kind, Law, Outage, table};
use crate::error::InputError;
use crate::source::Source;
use crate::units::Length;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    format: u32,
    seed: Option<u64>,
    #[serde(default)]
    failures: Vec<Failures>,
    #[serde(default)]
    outages: Vec<Single>,
    jobs: Option<Jobs>,
}

/// One `[[failures]]` table: things of one kind fail again and again.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Failures {
    of: KindWord,
    mtbf: Length,
    #[serde(default)]
    law: LawWord,
    shape: Option<f64>,
    repair: Length,
    #[serde(default)]
    repair_law: LawWord,
    repair_shape: Option<f64>,
    #[serde(default)]
    together: f64,
    #[serde(default)]
    loses_checkpoints: f64,
    speed: Option<f64>,
}

/// One `[[outages]]` table: something fails once.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Single {
    at: Length,
    lasts: Length,
    of: KindWord,
    which: String,
    speed: Option<f64>,
    #[serde(default)]
    loses_checkpoints: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Jobs {
    #[serde(default)]
    failed: f64,
    #[serde(default)]
    killed: f64,
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum KindWord {
    Node,
    Gpu,
    Rack,
    Switch,
}

#[derive(Clone, Copy, Default, Deserialize, PartialEq)]
#[serde(rename_all = "kebab-case")]
enum LawWord {
    #[default]
    Exponential,
    Weibull,
    LogNormal,
    Fixed,
}

pub(super) fn read(source: &Source, cluster: &Cluster) -> Result<FaultPlan, InputError> {
    let file = source.toml(|file: &File| file.format)?;
    let in_file = |error: InputError| InputError { file: source.name.clone(), ..error };
    let ends = file.jobs.map(|jobs| DrawnEnds { failed: jobs.failed, killed: jobs.killed });
    ends.map_or(Ok(()), |ends| ends.check()).map_err(in_file)?;
    let causes = file.failures.iter().map(cause).collect::<Result<_, _>>().map_err(in_file)?;
    let outage = |single: &Single| single.outage(cluster);
    let outages = file.outages.iter().map(outage).collect::<Result<_, _>>().map_err(in_file)?;
    Ok(FaultPlan { causes, outages, ends, seed: file.seed })
}

fn cause(failures: &Failures) -> Result<Cause, InputError> {
    check_speed(failures.of.kind(), failures.speed)?;
    for (name, chance) in [("together", failures.together), ("loses_checkpoints", failures.loses_checkpoints)]
    {
        if !(0.0..=1.0).contains(&chance) {
            let wrong = InputError::expected("", "a chance from 0 to 1").at_name(name);
            return Err(wrong.got(chance.to_string()));
        }
    }
    if failures.together > 0.0 && !matches!(failures.of, KindWord::Node) {
        return Err(InputError::problem("", "only nodes fail together").at_name("together"));
    }
    Ok(Cause {
        of: failures.of.kind(),
        between: law("mtbf", failures.mtbf, failures.law, failures.shape)?,
        repair: law("repair", failures.repair, failures.repair_law, failures.repair_shape)?,
        together: failures.together,
        loses_checkpoints: failures.loses_checkpoints,
        speed: failures.speed,
    })
}

fn law(name: &str, Length(mean): Length, word: LawWord, shape: Option<f64>) -> Result<Law, InputError> {
    if mean <= Span::ZERO {
        let wrong = InputError::expected("", "a length of time greater than 0").at_name(name);
        return Err(wrong.got(mean.to_string()));
    }
    match (word, shape) {
        (LawWord::Exponential, None) => Law::exponential(mean),
        (LawWord::Fixed, None) => Ok(Law::fixed(mean)),
        (LawWord::Weibull, Some(shape)) => Law::weibull(mean, shape),
        (LawWord::LogNormal, Some(sigma)) => Law::log_normal(mean, sigma),
        (LawWord::Weibull | LawWord::LogNormal, None) => {
            Err(InputError::expected("", "a shape: this law has one").at_name(name))
        }
        (LawWord::Exponential | LawWord::Fixed, Some(_)) => {
            Err(InputError::expected("", "no shape: this law has none").at_name(name))
        }
    }
}

impl Single {
    fn outage(&self, cluster: &Cluster) -> Result<Outage, InputError> {
        let kind = self.of.kind();
        check_speed(kind, self.speed)?;
        let what = table::part(kind, &self.which, cluster).ok_or_else(|| {
            InputError::expected("", table::expected(kind)).at_name("which").got(&self.which)
        })?;
        if self.lasts.0 <= Span::ZERO {
            let wrong = InputError::expected("", "a length of time greater than 0").at_name("lasts");
            return Err(wrong.got(self.lasts.0.to_string()));
        }
        let from = Time::ZERO + self.at.0;
        let (speed, loses_checkpoints) = (self.speed, self.loses_checkpoints);
        Ok(Outage { from, to: from + self.lasts.0, what, speed, loses_checkpoints })
    }
}

/// Only whole nodes become slow, and not faster.
pub(super) fn check_speed(kind: Kind, speed: Option<f64>) -> Result<(), InputError> {
    let Some(speed) = speed else { return Ok(()) };
    if kind == Kind::Gpu {
        return Err(InputError::problem("", "only nodes and racks become slow").at_name("speed"));
    }
    match speed > 0.0 && speed < 1.0 {
        true => Ok(()),
        false => Err(InputError::expected("", "a part of full speed, more than 0 and less than 1")
            .at_name("speed")
            .got(speed.to_string())),
    }
}

impl KindWord {
    fn kind(self) -> Kind {
        match self {
            KindWord::Node => Kind::Node,
            KindWord::Gpu => Kind::Gpu,
            KindWord::Rack | KindWord::Switch => Kind::Rack,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::Part;
    use super::*;
    use crate::cluster;
    use rota_core::ids::NodeId;

    fn read_text(text: &str) -> Result<FaultPlan, String> {
        let cluster = cluster::load("small").expect("built in");
        let text = format!("format = 1\n{text}");
        FaultPlan::read(&Source::new("faults.toml", text), &cluster).map_err(|e| e.to_string())
    }

    #[test]
    fn a_file_says_the_same_as_the_options() {
        let options = FaultPlan::of_nodes(Span::from_secs(30 * 86_400), Span::from_secs(4 * 3_600));
        let file = read_text("[[failures]]\nof = \"node\"\nmtbf = \"30d\"\nrepair = \"4h\"\n");
        assert_eq!(file, Ok(options.expect("sound")));
    }

    #[test]
    fn single_outages_and_ends_of_jobs_are_read() {
        let plan = read_text(
            "[[outages]]\nat = \"1h\"\nlasts = \"10m\"\nof = \"gpu\"\nwhich = \"2/5\"\nloses_checkpoints = true\n\
             [jobs]\nfailed = 0.2\nkilled = 0.1\n",
        )
        .expect("sound");
        let [outage] = plan.outages.as_slice() else { panic!("{plan:?}") };
        assert_eq!(outage.what, Part::Gpu(NodeId(2), 5));
        assert_eq!((outage.from, outage.to), (Time(3_600_000_000), Time(4_200_000_000)));
        assert!(outage.loses_checkpoints);
        assert_eq!(plan.ends, Some(DrawnEnds { failed: 0.2, killed: 0.1 }));
    }

    #[test]
    fn what_makes_no_sense_is_refused_with_its_name() {
        let node = "[[failures]]\nof = \"node\"\nmtbf = \"1d\"\nrepair = \"1h\"\n";
        for (text, expected) in [
            (format!("{node}law = \"weibull\"\n"), "faults.toml, mtbf: expected a shape: this law has one"),
            (format!("{node}shape = 2.0\n"), "faults.toml, mtbf: expected no shape: this law has none"),
            (
                format!("{node}together = 2.0\n"),
                "faults.toml, together: got \"2\", expected a chance from 0 to 1",
            ),
            (
                format!("{node}speed = 1.5\n"),
                "faults.toml, speed: got \"1.5\", expected a part of full speed, more than 0 and less than 1",
            ),
            (
                "[[outages]]\nat = \"1h\"\nlasts = \"1h\"\nof = \"node\"\nwhich = \"9\"\n".to_owned(),
                "faults.toml, which: got \"9\", expected the name or number of a node",
            ),
            (
                "[jobs]\nfailed = 0.7\nkilled = 0.7\n".to_owned(),
                "faults.toml, jobs: failed, killed: got \"0.7, 0.7\", expected parts from 0 to 1, together at most 1",
            ),
        ] {
            assert_eq!(read_text(&text).expect_err(&text), expected);
        }
        let unknown = read_text("[[failures]]\nof = \"disk\"\nmtbf = \"1d\"\nrepair = \"1h\"\n");
        assert!(unknown.expect_err("no kind").contains("unknown variant"));
    }
}
