//! The columns of a figure that are run: the runs of its study, with options added to those of the script.

use anyhow::{Result, bail};
use rota_scripts::artifact::Defect;
use rota_scripts::study::{Setting, Settings};

use crate::commands::run::parse_set;
use crate::commands::study::Simulate;
use rota_lab::original::Original;
use rota_lab::reproduce::evidence::Column;
use rota_lab::results::RunResult;
use rota_lab::study::{Execute, Key, RunError};

/// Parameters by name.
pub(super) type Pairs = Vec<(String, String)>;

/// Which columns are run, and the rest of what the user set.
pub(super) fn to_run(set: &[String]) -> Result<(Vec<Column>, Pairs)> {
    let mut columns = vec![Column::Original, Column::Shipped];
    let mut rest = Vec::new();
    for (key, value) in parse_set(set)? {
        match (key.as_str(), value.as_str()) {
            ("compat", "artifact") => columns = vec![Column::Original],
            ("compat", "none") => columns = vec![Column::Shipped],
            ("compat", _) => {
                bail!("--set compat={value}: there is `artifact`, the original's rules, and `none`")
            }
            _ => rest.push((key, value)),
        }
    }
    Ok((columns, rest))
}

/// What is added to the settings of a script.
#[derive(Clone, Debug)]
pub(super) enum Also {
    /// Nothing: the shipped policies.
    Nothing,
    /// The original's rules, with some of the defects.
    Original {
        /// Parameters that originals run with, by policy.
        parameters: &'static [(&'static str, &'static str, &'static str)],
        /// The defects, as `--defect` takes them; none named are all.
        defects: Vec<String>,
        /// Policies whose original is left out.
        without: &'static [&'static str],
    },
}

impl Also {
    /// The settings of a run with what is added.
    pub(super) fn added_to(&self, settings: &Settings) -> Settings {
        let Also::Original { parameters, defects, .. } = self else { return settings.clone() };
        let own = parameters.iter().filter(|(whose, ..)| policy(settings) == Some(*whose));
        let own = own.map(|(_, key, value)| (*key, *value));
        let pairs = std::iter::once(("compat", "artifact")).chain(own);
        let pairs = pairs.map(|(key, value)| (key.to_owned(), Setting::Text(value.to_owned())));
        let mut also = vec![("set".to_owned(), Setting::Pairs(pairs.collect()))];
        let defects = of_its_program(defects, policy(settings));
        if !defects.is_empty() {
            also.push(("defect".to_owned(), Setting::Text(defects.join(","))));
        }
        merged(settings, &also)
    }

    /// Whether a run is left out.
    fn leaves_out(&self, settings: &Settings) -> bool {
        let Also::Original { without, .. } = self else { return false };
        policy(settings).is_some_and(|policy| without.contains(&policy))
    }
}

/// The named defects that the original of a policy can have: in ElasticFlow's figures Chronus is another program. `all` and
/// `none` are said of every program; without a name of its own, a program keeps its defects.
fn of_its_program(names: &[String], policy: Option<&str>) -> Vec<String> {
    let system = policy.and_then(|policy| Original::parse(policy).ok()).map(Original::system);
    let is_its_own = |name: &&String| {
        let defect = Defect::ALL.into_iter().find(|defect| defect.name() == name.trim_start_matches("no-"));
        defect.is_none_or(|defect| Some(defect.system()) == system)
    };
    names.iter().filter(is_its_own).cloned().collect()
}

fn policy(settings: &Settings) -> Option<&str> {
    settings.iter().find_map(|(name, value)| match value {
        Setting::Text(text) if name == "policy" => Some(text.as_str()),
        _ => None,
    })
}

/// Settings with others added; pairs of the same name are put together.
fn merged(settings: &Settings, also: &Settings) -> Settings {
    let mut all = settings.clone();
    for (name, value) in also {
        match (all.iter_mut().find(|(known, _)| known == name), value) {
            (Some((_, Setting::Pairs(pairs))), Setting::Pairs(more)) => pairs.extend(more.iter().cloned()),
            (Some((_, known)), value) => *known = value.clone(),
            (None, value) => all.push((name.clone(), value.clone())),
        }
    }
    all.sort_by(|a, b| a.0.cmp(&b.0));
    all
}

/// Runs settings with something added.
pub(super) struct With {
    pub(super) simulate: Simulate,
    pub(super) also: Also,
}

impl Execute for With {
    /// Nothing for a run that is left out.
    type Plan = Option<<Simulate as Execute>::Plan>;

    fn plan(&self, settings: &Settings) -> Result<(Self::Plan, Key), RunError> {
        let (plan, key) = self.simulate.plan(&self.also.added_to(settings))?;
        Ok((Some(plan).filter(|_| !self.also.leaves_out(settings)), key))
    }

    fn run(&self, plan: &Self::Plan) -> Result<RunResult, RunError> {
        match plan {
            Some(plan) => self.simulate.run(plan),
            None => Err(RunError { why: "its original is left out".to_owned() }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_columns_are_run_unless_one_is_asked_for() {
        let set = |texts: &[&str]| to_run(&texts.iter().map(|t| (*t).to_owned()).collect::<Vec<_>>());
        let (columns, rest) = set(&["seeds=5"]).expect("set");
        assert_eq!((columns.len(), rest), (2, vec![("seeds".to_owned(), "5".to_owned())]));
        assert_eq!(set(&["compat=artifact"]).expect("set").0, [Column::Original]);
        assert_eq!(set(&["compat=none"]).expect("set").0, [Column::Shipped]);
        assert!(set(&["compat=both"]).is_err());
    }

    #[test]
    fn parameters_of_a_policy_stay_when_others_are_added() {
        let lease = ("lease".to_owned(), Setting::Whole(240));
        let settings = vec![
            ("policy".to_owned(), Setting::Text("chronus".into())),
            ("set".to_owned(), Setting::Pairs(vec![lease])),
        ];
        let also = |defects: &[&str]| Also::Original {
            parameters: &[("chronus", "edition", "elasticflow"), ("edf", "width", "1")],
            defects: defects.iter().map(|name| (*name).to_owned()).collect(),
            without: &["chronus"],
        };
        assert!(also(&[]).leaves_out(&settings) && !Also::Nothing.leaves_out(&settings));
        let text = format!("{:?}", also(&[]).added_to(&settings));
        for part in ["lease", "artifact", "edition"] {
            assert!(text.contains(part), "{part} is missing in {text}");
        }
        assert!(!text.contains("width") && !text.contains("defect"), "{text}");
        assert!(format!("{:?}", also(&["odd-ticks", "none"]).added_to(&settings)).contains("odd-ticks,none"));
        assert_eq!(Also::Nothing.added_to(&settings), settings);
    }

    #[test]
    fn a_defect_is_given_to_the_program_that_has_it() {
        let of = |policy: &str, names: &[&str]| {
            of_its_program(&names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>(), Some(policy))
        };
        assert_eq!(of("edf", &["edf-width", "odd-ticks"]), ["edf-width"]);
        assert_eq!(of("chronus", &["edf-width", "odd-ticks"]), ["odd-ticks"]);
        assert_eq!(of("chronus", &["no-edf-width"]), [""; 0], "Chronus' port stays as it is");
        assert_eq!(of("chronus", &["none"]), ["none"]);
    }
}
