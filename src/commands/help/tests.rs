//! Every help text of every command, looked at by rules.

use clap::{Arg, ArgAction, CommandFactory as _};

use super::*;
use crate::commands::Cli;

/// Calls `look` for every command that people see, with its whole name.
fn walk(look: &mut dyn FnMut(&str, &Command)) {
    fn below(name: &str, command: &Command, look: &mut dyn FnMut(&str, &Command)) {
        look(name, command);
        for child in
            command.get_subcommands().filter(|child| !child.is_hide_set() && child.get_name() != "help")
        {
            below(&format!("{name} {}", child.get_name()), child, look);
        }
    }
    let mut root = Cli::command();
    root.build();
    below("rota", &root, look);
}

/// Every option and argument of every command, apart from those that clap adds.
fn walk_arguments(look: &mut dyn FnMut(&str, &Arg)) {
    walk(&mut |name, command| {
        let own = |arg: &&Arg| !arg.is_hide_set() && !["help", "version"].contains(&arg.get_id().as_str());
        command.get_arguments().filter(own).for_each(|arg| look(&format!("{name} {arg}"), arg));
    });
}

fn text_of(arg: &Arg) -> String {
    arg.get_help().map(ToString::to_string).unwrap_or_default()
}

fn assert_none(faults: &[String]) {
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn every_command_is_in_one_group_with_a_description_of_one_line() {
    let root = Cli::command();
    let visible: Vec<&Command> = root.get_subcommands().filter(|command| !command.is_hide_set()).collect();
    for command in &visible {
        let name = command.get_name();
        let n_groups = GROUPS.iter().filter(|(_, names)| names.contains(&name)).count();
        assert_eq!(n_groups, 1, "{name} is in {n_groups} groups");
        let about = command.get_about().map(ToString::to_string).unwrap_or_default();
        assert!(about.len() <= 64 && !about.contains('\n'), "{name}: `{about}` is too long for 80 columns");
    }
    let n_grouped: usize = GROUPS.iter().map(|(_, names)| names.len()).sum();
    assert_eq!(n_grouped, visible.len(), "a group names a command that does not exist");
    let help = grouped(Cli::command()).render_help().to_string();
    for (title, names) in GROUPS {
        assert!(help.contains(&format!("\n{title}:\n")), "{help}");
        names.iter().for_each(|name| assert!(help.contains(&format!("\n  {name} ")), "{name}: {help}"));
    }
    assert!(help.lines().all(|line| line.len() <= 80), "{help}");
}

#[test]
fn every_command_option_and_argument_has_a_text_that_reads_well() {
    let mut faults = Vec::new();
    let mut look = |name: &str, text: &str| {
        let first = text.chars().next();
        let mut fault = |what: &str| faults.push(format!("{name}: {what}: {text}"));
        if first.is_none() {
            fault("has no text");
        } else if !first.is_some_and(|c| c.is_uppercase() || "`$".contains(c)) {
            fault("begins in lower case");
        }
        if text.contains("for who ") || text.contains("so many ") || text.contains("So much") {
            fault("reads like a translation");
        }
        if text.contains("  ") || text.contains(" ,") || text.contains("..  ") {
            fault("has stray spaces");
        }
        if text.ends_with('.') {
            fault("is no sentence, but ends with a full stop");
        }
        for word in ["beside", "reckon", "whoever", "mends", "who wants"] {
            if text.contains(word) {
                fault(&format!("says `{word}`"));
            }
        }
    };
    walk(&mut |name, command| {
        let about = command.get_about().map(ToString::to_string).unwrap_or_default();
        look(name, &about);
    });
    walk_arguments(&mut |name, arg| look(name, &text_of(arg)));
    assert_none(&faults);
}

#[test]
fn every_option_says_what_holds_without_it() {
    let mut faults = Vec::new();
    walk_arguments(&mut |name, arg| {
        let takes_value = matches!(arg.get_action(), ArgAction::Set | ArgAction::Append);
        let has_own = !arg.get_default_values().is_empty() && !arg.is_hide_default_value_set();
        let long = arg.get_long_help().map(ToString::to_string);
        let texts = [Some(text_of(arg)), long];
        let n_told = texts.iter().flatten().filter(|text| text.contains("[default: ")).count();
        if texts.iter().flatten().any(|text| text.matches("[default: ").count() > 1) {
            faults.push(format!("{name}: its default is told twice"));
        }
        let n_texts = texts.iter().flatten().count();
        match (has_own, n_told) {
            (true, 0) => {}
            (true, _) => faults.push(format!("{name}: two defaults")),
            (false, n) if n == n_texts || arg.is_required_set() || !takes_value => {}
            (false, _) => faults.push(format!("{name}: no default is told: {}", text_of(arg))),
        }
    });
    assert_none(&faults);
}

#[test]
fn policies_have_a_default_in_every_command_that_runs_them() {
    let mut defaults = Vec::new();
    walk_arguments(&mut |name, arg| {
        if arg.get_id() == "policies" {
            let values: Vec<_> =
                arg.get_default_values().iter().map(|value| value.to_string_lossy()).collect();
            defaults.push(format!("{} {}", name.split(" -").next().unwrap_or(name), values.join(",")));
        }
    });
    defaults.sort();
    assert_eq!(
        defaults,
        [
            "rota compare fifo+proportional,fifo+tune,srtf+proportional,srtf+tune,las+proportional,las+tune",
            "rota deploy las+tune",
            "rota play fifo+tune,srtf+tune",
            "rota simulate las+proportional,las+tune",
        ]
    );
}

#[test]
fn lists_in_help_are_those_in_errors() {
    let root = Cli::command();
    let simulate = root.find_subcommand("simulate").expect("the command");
    let help = |id: &str| {
        let arg = simulate.get_arguments().find(|arg| arg.get_id() == id).expect(id);
        arg.get_long_help().map(ToString::to_string).unwrap_or_default()
    };
    let listed = |error: String, after: &str| error.split(after).nth(1).expect(after).trim().to_owned();
    let clusters = rota_traces::cluster::load("nonesuch").expect_err("unknown").to_string();
    assert!(help("cluster").contains(&listed(clusters, "built-in clusters ")), "{}", help("cluster"));
    let workloads = rota_traces::generate::load("nonesuch").expect_err("unknown").to_string();
    assert!(help("workload").contains(&listed(workloads, "built-in workloads ")), "{}", help("workload"));
    let profiles = rota_traces::profile::load("nonesuch").expect_err("unknown").to_string();
    assert!(help("profiles").contains(&listed(profiles, "built-in sets ")), "{}", help("profiles"));
    let formats = crate::commands::inputs::parse_format("nonesuch").expect_err("unknown").to_string();
    assert!(help("format").contains(&listed(formats, "the formats are ")), "{}", help("format"));
    for script in shipped::ALL {
        assert!(help("policies").contains(script.name), "{}", script.name);
    }
}
