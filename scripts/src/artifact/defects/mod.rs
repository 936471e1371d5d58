//! Mistakes of the originals by name, each of which can be switched on alone.
//!
//! A driver with all of them is the original; with none, all of them are mended.
//! `table` says in a sentence each what the original does and what is done instead. Where a defect cannot be taken out
//! by itself it has no name here, and docs/fidelity.md says so.

mod table;

use std::fmt;

pub use table::Defect;

use crate::language::nearest;

/// The published system whose program is reproduced.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum System {
    /// Synergy (OSDI'22).
    Synergy,
    /// ElasticFlow (ASPLOS'23), with the baselines in its repository.
    ElasticFlow,
    /// Chronus (SoCC'21).
    Chronus,
}

impl System {
    /// All of them.
    pub const ALL: [System; 3] = [System::Synergy, System::ElasticFlow, System::Chronus];
}

impl fmt::Display for System {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            System::Synergy => "Synergy",
            System::ElasticFlow => "ElasticFlow",
            System::Chronus => "Chronus",
        })
    }
}

/// A set of defects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Defects(u64);

/// Words that are no defect's name.
const WORDS: [&str; 2] = ["all", "none"];

/// The prefix of a defect that is taken away while all others stay.
const NOT: &str = "no-";

impl Defects {
    /// None: everything is mended.
    pub const NONE: Defects = Defects(0);
    /// Every one: the originals as they are.
    pub const ALL: Defects = {
        let (mut bits, mut index) = (0, 0);
        while index < Defect::ALL.len() {
            bits |= 1 << Defect::ALL[index] as u64;
            index += 1;
        }
        Defects(bits)
    };

    /// One alone.
    pub const fn only(defect: Defect) -> Self {
        Defects(1 << defect as u64)
    }

    /// With one more.
    #[must_use]
    pub const fn with(self, defect: Defect) -> Self {
        Defects(self.0 | 1 << defect as u64)
    }

    /// Without one.
    #[must_use]
    pub const fn without(self, defect: Defect) -> Self {
        Defects(self.0 & !(1 << defect as u64))
    }

    /// Whether it is among them.
    pub const fn has(self, defect: Defect) -> bool {
        self.0 & (1 << defect as u64) != 0
    }

    /// Those of one program.
    #[must_use]
    pub fn of(self, system: System) -> Self {
        self.iter().filter(|defect| defect.system() == system).fold(Defects::NONE, Defects::with)
    }

    /// One by one, program by program.
    pub fn iter(self) -> impl Iterator<Item = Defect> {
        Defect::ALL.into_iter().filter(move |defect| self.has(*defect))
    }

    /// Reads names, in lists with commas or one by one: `all`, `none`, the names of those that a run has, or with `no-` before each
    /// name of those that it does not have.
    pub fn parse<'a>(texts: impl IntoIterator<Item = &'a str>) -> Result<Self, DefectError> {
        let names: Vec<&str> = texts.into_iter().flat_map(|text| text.split(',')).map(str::trim).collect();
        let (mended, there): (Vec<&str>, Vec<&str>) = names.iter().partition(|name| name.starts_with(NOT));
        match (there.as_slice(), mended.as_slice()) {
            ([], []) => Err(DefectError::Nothing),
            (["all"], []) => Ok(Defects::ALL),
            (["none"], []) => Ok(Defects::NONE),
            (there, []) => {
                there.iter().try_fold(Defects::NONE, |set, name| Ok(set.with(Defect::parse(name)?)))
            }
            ([] | ["all"], mended) => mended.iter().try_fold(Defects::ALL, |set, name| {
                Ok(set.without(Defect::parse(name.trim_start_matches(NOT))?))
            }),
            (_, [first, ..]) => Err(DefectError::Mixed { name: (*first).to_owned() }),
        }
    }

    /// Words from which [`Defects::parse`] reads the same set.
    pub fn names(self) -> Vec<&'static str> {
        match self {
            Defects::ALL => vec!["all"],
            Defects::NONE => vec!["none"],
            some => some.iter().map(Defect::name).collect(),
        }
    }
}

impl fmt::Display for Defects {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.names().join(","))
    }
}

impl Defect {
    /// By its name.
    pub fn parse(name: &str) -> Result<Self, DefectError> {
        match Defect::ALL.into_iter().find(|defect| defect.name() == name) {
            Some(defect) => Ok(defect),
            None if name.is_empty() => Err(DefectError::Nothing),
            None if WORDS.contains(&name) => Err(DefectError::NotAlone { word: name.to_owned() }),
            None => {
                let names = Defect::ALL.iter().map(|defect| defect.name()).chain(WORDS);
                let hint = nearest::hint(name, names).unwrap_or_default();
                Err(DefectError::Unknown { name: name.to_owned(), hint })
            }
        }
    }
}

impl fmt::Display for Defect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Words that do not name a set of defects.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DefectError {
    /// No word at all.
    #[error(
        "a name is missing: `all`, `none`, names of defects with commas between them, or `no-` and a name"
    )]
    Nothing,
    /// A word for a whole set together with others.
    #[error("`{word}` cannot be combined with other names")]
    NotAlone {
        /// `all` or `none`.
        word: String,
    },
    /// Names of both kinds.
    #[error("`{name}` takes one away from all: it cannot be combined with names without `no-`")]
    Mixed {
        /// The first that is taken away.
        name: String,
    },
    /// No original has it.
    #[error("`{name}` is not a defect of an original{}{hint}", if hint.is_empty() { "" } else { ": " })]
    Unknown {
        /// The word as it was written.
        name: String,
        /// A sentence with the nearest names, if there are any.
        hint: String,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_set_is_read_as_it_is_written() {
        let some = Defects::only(Defect::GrowthSign).with(Defect::FtfAscending);
        for set in [Defects::ALL, Defects::NONE, some, Defects::ALL.without(Defect::GrowthSign)] {
            let text = set.to_string();
            assert_eq!(Defects::parse([text.as_str()]), Ok(set), "{text}");
        }
        assert_eq!(Defects::parse(["growth-sign", "ftf-ascending"]), Ok(some));
        assert_eq!(Defects::parse(["growth-sign, ftf-ascending"]), Ok(some));
        let but_one = Defects::ALL.without(Defect::GrowthSign);
        assert_eq!(Defects::parse(["no-growth-sign"]), Ok(but_one));
        assert_eq!(Defects::parse(["all", "no-growth-sign"]), Ok(but_one));
    }

    #[test]
    fn names_are_told_apart_and_belong_to_one_program() {
        let mut names: Vec<_> = Defect::ALL.iter().map(|defect| defect.name()).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), Defect::ALL.len());
        for name in names {
            let is_kebab = name.split('-').all(|word| {
                !word.is_empty() && word.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit())
            });
            assert!(is_kebab, "{name}");
        }
        let n_of = |system| Defects::ALL.of(system).iter().count();
        assert_eq!(System::ALL.map(n_of).iter().sum::<usize>(), Defect::ALL.len());
        for defect in Defect::ALL {
            assert!(defect.original().ends_with('.') && defect.mended().ends_with('.'), "{defect}");
        }
    }

    #[test]
    fn what_is_no_set_is_refused_with_what_was_meant() {
        let why = |text: &str| Defects::parse([text]).expect_err(text).to_string();
        assert_eq!(
            why("grwoth-sign"),
            "`grwoth-sign` is not a defect of an original: did you mean `growth-sign`?"
        );
        assert_eq!(why("turbo"), "`turbo` is not a defect of an original");
        assert_eq!(why("none,growth-sign"), "`none` cannot be combined with other names");
        assert!(why("").starts_with("a name is missing"));
        assert!(why("ftf-ascending,no-growth-sign").starts_with("`no-growth-sign` takes one away from all"));
        assert!(why("no-grwoth-sign").contains("did you mean `growth-sign`?"));
        assert!(Defects::parse([]).is_err());
    }
}
