//! What can be set in an original besides its defects: the options of its command line, by Rota's names for them.

use rota_core::time::{Span, SpanError};
use rota_scripts::artifact::System;
use rota_scripts::artifact::chronus::{ChronusSettings, Objective, Placement, Plans, PowerSaving};

use super::Original;

/// Parameters of all originals.
#[derive(Clone, Copy, Debug)]
pub struct Parameters {
    chronus: Chronus,
}

/// Times as they were given; they become units of the trace when all are known.
#[derive(Clone, Copy, Debug)]
struct Chronus {
    base: ChronusSettings<'static>,
    lease: Span,
    check: Span,
    slot: Span,
}

/// A parameter: its name, whose it is, and what it means.
const KNOWN: [(&str, System, &str); 9] = [
    (
        "edition",
        System::Chronus,
        "artifact, or elasticflow: its port to seconds, with leases, slots and ticks of 240 s",
    ),
    ("unit", System::Chronus, "unit of time, in which restarts are charged, half a unit at least: 60s"),
    ("lease", System::Chronus, "length of a lease: 20m"),
    ("slot", System::Chronus, "time between admissions: 5m"),
    ("check", System::Chronus, "time between ticks: 1m"),
    ("objective", System::Chronus, "minimize, maximize, random or adaptive"),
    (
        "plans",
        System::Chronus,
        "solved: the model of every lease is solved; proved: not where a packed plan is proved to be as good",
    ),
    ("placement", System::Chronus, "random, consolidate, consolidate_random or local_search"),
    ("power", System::Chronus, "off, aggressive or conservative"),
];

impl Default for Parameters {
    /// As the originals have them.
    fn default() -> Self {
        Parameters { chronus: Chronus::of(ChronusSettings::minutes()) }
    }
}

impl Parameters {
    /// Reads `KEY=VALUE` pairs for a run of these originals; every key must mean something to one of them.
    pub fn parse<'a>(
        pairs: impl IntoIterator<Item = (&'a str, &'a str)> + Clone,
        originals: &[Original],
    ) -> Result<Self, ParameterError> {
        let mut parameters = Parameters::default();
        // An edition sets the defaults of the others, so it is applied first.
        let (editions, others): (Vec<_>, Vec<_>) = pairs.into_iter().partition(|(key, _)| *key == "edition");
        for (key, value) in editions.into_iter().chain(others) {
            let known = KNOWN.iter().find(|(known, _, _)| *known == key);
            let is_theirs = |system: System| originals.iter().any(|original| original.system() == system);
            match known {
                Some((_, system, _)) if is_theirs(*system) => parameters.chronus.set(key, value)?,
                _ => return Err(ParameterError::unknown(key, value, originals)),
            }
        }
        parameters.chronus.settings()?;
        Ok(parameters)
    }

    /// The parameters of Chronus.
    pub fn chronus(&self) -> Result<ChronusSettings<'static>, ParameterError> {
        self.chronus.settings()
    }
}

impl Chronus {
    fn of(base: ChronusSettings<'static>) -> Self {
        let span = |units: i64| base.unit * units;
        Chronus { base, lease: span(base.lease), check: span(base.check), slot: span(base.slot) }
    }

    fn set(&mut self, key: &str, value: &str) -> Result<(), ParameterError> {
        let span = || {
            Span::parse(value).map_err(|error| ParameterError::Span {
                key: key.to_owned(),
                value: value.to_owned(),
                error,
            })
        };
        match key {
            "edition" => {
                *self = Chronus::of(word(
                    key,
                    value,
                    [("artifact", ChronusSettings::minutes()), ("elasticflow", ChronusSettings::seconds())],
                )?);
            }
            "unit" => self.base.unit = span()?,
            "lease" => self.lease = span()?,
            "slot" => self.slot = span()?,
            "check" => self.check = span()?,
            "objective" => self.base.objective = word(key, value, OBJECTIVES)?,
            "plans" => self.base.plans = word(key, value, PLANS)?,
            "placement" => self.base.placement = word(key, value, PLACEMENTS)?,
            _ => self.base.power = word(key, value, POWER)?,
        }
        Ok(())
    }

    fn settings(&self) -> Result<ChronusSettings<'static>, ParameterError> {
        let unit = self.base.unit;
        if unit <= Span::ZERO {
            return Err(ParameterError::Unit { unit });
        }
        let units = |key: &'static str, span: Span| match span.0 % unit.0 {
            0 if span > Span::ZERO => Ok(span.0 / unit.0),
            _ => Err(ParameterError::Units { key, span, unit }),
        };
        Ok(ChronusSettings {
            lease: units("lease", self.lease)?,
            check: units("check", self.check)?,
            slot: units("slot", self.slot)?,
            ..self.base
        })
    }
}

const OBJECTIVES: [(&str, Objective); 4] = [
    ("minimize", Objective::Minimize),
    ("maximize", Objective::Maximize),
    ("random", Objective::Random),
    ("adaptive", Objective::Adaptive),
];

const PLANS: [(&str, Plans); 2] = [("solved", Plans::Solved), ("proved", Plans::Proved)];

const PLACEMENTS: [(&str, Placement); 4] = [
    ("random", Placement::Random),
    ("consolidate", Placement::Consolidate),
    ("consolidate_random", Placement::ConsolidateRandom),
    ("local_search", Placement::LocalSearch),
];

const POWER: [(&str, PowerSaving); 3] = [
    ("off", PowerSaving::Off),
    ("aggressive", PowerSaving::Aggressive),
    ("conservative", PowerSaving::Conservative),
];

/// What a word means.
fn word<T: Copy, const N: usize>(key: &str, value: &str, words: [(&str, T); N]) -> Result<T, ParameterError> {
    words.iter().find(|(word, _)| *word == value).map(|(_, meaning)| *meaning).ok_or_else(|| {
        let words = words.map(|(word, _)| word).join(", ");
        ParameterError::Word { key: key.to_owned(), value: value.to_owned(), words }
    })
}

/// A parameter that cannot be set to this value.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ParameterError {
    /// None of the originals that run has it.
    #[error("--set {key}={value}: {known} (compat=artifact)")]
    Unknown {
        /// Name of the parameter.
        key: String,
        /// The value as it was given.
        value: String,
        /// What is possible instead.
        known: String,
    },
    /// One of several words is expected.
    #[error("--set {key}={value}: one of {words} is expected (compat=artifact)")]
    Word {
        /// Name of the parameter.
        key: String,
        /// The value as it was given.
        value: String,
        /// What is possible instead.
        words: String,
    },
    /// A time is expected.
    #[error("--set {key}={value}: {error} (compat=artifact)")]
    Span {
        /// Name of the parameter.
        key: String,
        /// The value as it was given.
        value: String,
        /// What is wrong with it.
        error: SpanError,
    },
    /// A unit of no length.
    #[error("--set unit={unit}: the unit must be longer than 0 (compat=artifact)")]
    Unit {
        /// The length that was asked for.
        unit: Span,
    },
    /// The original counts time in whole units.
    #[error(
        "--set {key}={span}: the original counts time in whole units of {unit} s, at least one; --set unit=1s makes them smaller, \
             and restarts cheaper (compat=artifact)"
    )]
    Units {
        /// Name of the parameter.
        key: &'static str,
        /// The value as it was given.
        span: Span,
        /// Length of a unit.
        unit: Span,
    },
}

impl ParameterError {
    fn unknown(key: &str, value: &str, originals: &[Original]) -> Self {
        let theirs = KNOWN.iter().filter(|(_, system, _)| originals.iter().any(|o| o.system() == *system));
        let known: Vec<String> = theirs.map(|(key, _, help)| format!("{key} ({help})")).collect();
        let known = match known.as_slice() {
            [] => "the original has no parameters".to_owned(),
            known => format!("the original has {}", known.join("; ")),
        };
        ParameterError::Unknown { key: key.to_owned(), value: value.to_owned(), known }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(pairs: &[(&'static str, &'static str)]) -> Result<ChronusSettings<'static>, ParameterError> {
        Parameters::parse(pairs.iter().copied(), &[Original::Chronus])?.chronus()
    }

    #[test]
    fn times_become_units_of_the_trace() {
        let plain = parse(&[]).expect("nothing set");
        assert_eq!((plain.lease, plain.check, plain.slot), (20, 1, 5));
        assert_eq!(parse(&[("lease", "1h")]).map(|s| s.lease), Ok(60));
        let port = parse(&[("lease", "480"), ("edition", "elasticflow")]).expect("the port");
        assert_eq!((port.unit, port.lease, port.check, port.slot), (Span::from_secs(1), 480, 240, 240));
        let fine = parse(&[("unit", "1s"), ("lease", "90s")]).expect("seconds");
        assert_eq!((fine.lease, fine.check, fine.slot), (90, 60, 300));
    }

    #[test]
    fn what_no_original_can_have_is_refused_with_what_it_can() {
        let why = |pairs: &[(&'static str, &'static str)]| parse(pairs).expect_err("nonsense").to_string();
        assert!(
            why(&[("lease", "90s")])
                .starts_with("--set lease=90: the original counts time in whole units of 60 s")
        );
        assert!(why(&[("unit", "0")]).contains("the unit must be longer than 0"));
        assert!(why(&[("power", "night")]).contains("one of off, aggressive, conservative is expected"));
        assert!(why(&[("leas", "90s")]).contains("the original has edition"));
        assert!(why(&[("check", "soon")]).contains("`soon` is not a length of time"));
        let scheme = Original::parse("las+tune").expect("Synergy's");
        let error = Parameters::parse([("lease", "1h")], &[scheme]).expect_err("not Synergy's");
        assert_eq!(error.to_string(), "--set lease=1h: the original has no parameters (compat=artifact)");
    }
}
