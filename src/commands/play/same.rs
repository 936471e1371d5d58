//! What the page shows, in other forms: as a command of `rota simulate`, as a study script. Both begin with the options that
//! `rota play` was given, and change those that were changed on the page.

use std::ffi::OsString;

use clap::{ArgAction, ArgMatches, CommandFactory as _};
use rota_play::{Choices, Upload};

use super::file_name;

/// Options that are the page's own.
const PAGE: [&str; 4] = ["policy", "against", "open", "port"];

/// Options by their long names, in the order of the help; a switch has no value.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Given(Vec<(String, Option<String>)>);

impl Given {
    /// The options of `simulate` that were typed.
    pub(super) fn of_this_process(words: Vec<OsString>) -> Self {
        let command = crate::commands::Cli::command();
        let Ok(matches) = command.clone().try_get_matches_from(words) else { return Given::default() };
        let Some((name, matches)) = matches.subcommand() else { return Given::default() };
        let Some(command) = command.find_subcommand(name) else { return Given::default() };
        Given(command.get_arguments().filter_map(|arg| typed(arg, matches)).collect())
    }

    /// The names of the options.
    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|(name, _)| name.as_str())
    }

    /// With what was chosen on the page.
    pub(super) fn with(&self, choices: &Choices, uploads: &[Upload]) -> Self {
        let mut all = self.clone();
        let seconds = |s: f64| format!("{s}s");
        let trace = choices.trace.and_then(|number| uploads.get(number));
        if choices.workload.is_some() || trace.is_some() {
            all.0.retain(|(name, _)| !["workload", "trace", "format", "map"].contains(&name.as_str()));
        }
        all.put("cluster", choices.cluster.clone());
        all.put("workload", choices.workload.clone().filter(|_| trace.is_none()));
        all.put("trace", trace.map(|upload| file_name(upload.name.as_ref()).display().to_string()));
        all.put("jobs", choices.jobs.map(|jobs| jobs.to_string()));
        let has_trace = all.names().any(|name| name == "trace");
        all.put("jobs-per-hour", choices.jobs_per_hour.filter(|_| !has_trace).map(|load| load.to_string()));
        all.0.retain(|(name, _)| name != "multi-gpu" || choices.multi_gpu != Some(false));
        if choices.multi_gpu == Some(true) && all.names().all(|name| name != "multi-gpu") {
            all.0.push(("multi-gpu".to_owned(), None));
        }
        all.put("seed", choices.seed.map(|seed| seed.to_string()));
        all.put("restart-cost", choices.restart_cost_s.map(seconds));
        all.put("estimate-noise", choices.estimate_noise.map(|noise| noise.to_string()));
        all.put("mtbf", choices.mtbf_h.map(|hours| format!("{hours}h")));
        all.put("round", choices.round_s.map(seconds));
        all
    }

    fn put(&mut self, name: &str, value: Option<String>) {
        let Some(value) = value else { return };
        match self.0.iter_mut().find(|(known, _)| known == name) {
            Some((_, present)) => *present = Some(value),
            None => self.0.push((name.to_owned(), Some(value))),
        }
    }

    /// One command; where parameters are set, a second one for the other policies, which they are not meant for.
    pub(super) fn command_line(&self, policies: &[String], set: &[String]) -> String {
        let options: String = self
            .0
            .iter()
            .map(|(name, value)| match value {
                Some(value) => format!(" --{name} {}", quoted(value)),
                None => format!(" --{name}"),
            })
            .collect();
        let command = |policies: &[String], set: &[String]| {
            let set: String = set.iter().map(|pair| format!(" --set {}", quoted(pair))).collect();
            format!("rota simulate -p {}{set}{options}", quoted(&policies.join(",")))
        };
        match policies {
            [edited, others @ ..] if !set.is_empty() && !others.is_empty() => {
                format!("{}\n{}", command(std::slice::from_ref(edited), set), command(others, &[]))
            }
            policies => command(policies, set),
        }
    }

    /// A study over the same seeds, the first of them the one on the page.
    pub(super) fn study_script(
        &self,
        policies: &[String],
        set: &[(String, String)],
        seed: u64,
        n_seeds: u64,
    ) -> String {
        let mut lines = vec!["// What rota play showed: run it with `rota study FILE.rhai`.".to_owned()];
        lines.push("let setting = #{".to_owned());
        for (name, value) in self.0.iter().filter(|(name, _)| name != "seed") {
            let value = value.as_deref().map_or_else(|| "true".to_owned(), literal);
            lines.push(format!("    {}: {value},", name.replace('-', "_")));
        }
        let last = seed.saturating_add(n_seeds.max(1) - 1);
        lines.push(format!("    seed: {seed}..={last},"));
        lines.push("};".to_owned());
        let set: Vec<String> =
            set.iter().map(|(key, value)| format!("{}: {}", text(key), literal(value))).collect();
        let set = if set.is_empty() { String::new() } else { format!(", set: #{{ {} }}", set.join(", ")) };
        for (at, policy) in policies.iter().enumerate() {
            let set = if at == 0 { set.as_str() } else { "" };
            lines.push(format!("sweep(setting + #{{ policy: {}{set} }});", text(policy)));
        }
        lines.join("\n") + "\n"
    }
}

/// An option that was typed, with its values as one word.
fn typed(arg: &clap::Arg, matches: &ArgMatches) -> Option<(String, Option<String>)> {
    let (id, long) = (arg.get_id().as_str(), arg.get_long()?);
    let is_typed = matches.value_source(id) == Some(clap::parser::ValueSource::CommandLine);
    if !is_typed || PAGE.contains(&long) {
        return None;
    }
    let is_switch = matches!(arg.get_action(), ArgAction::SetTrue);
    let values = matches.get_raw(id).into_iter().flatten().map(|value| value.to_string_lossy().into_owned());
    let values: Vec<String> = values.collect();
    Some((long.to_owned(), (!is_switch).then(|| values.join(","))))
}

/// A word that a shell reads as it is.
fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "+,./:=_-".contains(c);
    match !word.is_empty() && word.chars().all(is_plain) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', "'\\''")),
    }
}

/// A value of a script: a number or switch as it is, anything else as text.
fn literal(value: &str) -> String {
    match value.parse::<f64>().is_ok_and(f64::is_finite) || ["true", "false"].contains(&value) {
        true => value.to_owned(),
        false => text(value),
    }
}

fn text(value: &str) -> String {
    format!("\"{}\"", value.replace('\\', "\\\\").replace('"', "\\\""))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn given(line: &str) -> Given {
        Given::of_this_process(line.split_whitespace().map(OsString::from).collect())
    }

    #[test]
    fn the_command_has_what_was_typed_and_what_was_chosen() {
        let line = given("rota play mine.rhai --jobs 500 --static --seed 3 --against fifo,las --port 4000");
        let choices = Choices { seed: Some(7), jobs_per_hour: Some(12.5), ..Choices::default() };
        let chosen = line.with(&choices, &[]);
        let policies = ["mine.rhai".to_owned(), "a b".to_owned()];
        assert_eq!(
            chosen.command_line(&policies, &[]),
            "rota simulate -p 'mine.rhai,a b' --jobs 500 --static --seed 7 --jobs-per-hour 12.5"
        );
        let set = ["mine.limit=3".to_owned()];
        assert!(
            chosen
                .command_line(&policies, &set)
                .starts_with("rota simulate -p mine.rhai --set mine.limit=3 ")
        );
        assert_eq!(chosen.command_line(&policies, &set).lines().count(), 2);
    }

    #[test]
    fn another_workload_replaces_the_trace() {
        let line = given("rota play --trace jobs.csv");
        let choices = Choices { workload: Some("small".into()), ..Choices::default() };
        assert_eq!(
            line.with(&choices, &[]).command_line(&["las".to_owned()], &[]),
            "rota simulate -p las --workload small"
        );
    }

    #[test]
    fn the_study_script_sweeps_the_same_seeds() {
        let script = given("rota play --multi-gpu --cluster philly").study_script(
            &["./mine.rhai".to_owned(), "las".to_owned()],
            &[("mine.limit".to_owned(), "3".to_owned())],
            5,
            10,
        );
        for line in ["    multi_gpu: true,\n", "    cluster: \"philly\",\n"] {
            assert!(script.contains(line), "{script}");
        }
        assert!(script.contains("seed: 5..=14,"), "{script}");
        assert!(script.contains("policy: \"./mine.rhai\", set: #{ \"mine.limit\": 3 }"), "{script}");
        assert!(script.contains("sweep(setting + #{ policy: \"las\" });"), "{script}");
    }
}
