//! Requests about policies, which the decider answers.

use rota_transport::message::FromUser;
use rota_transport::value::{LongText, Text};

use super::Engine;
use super::refusal::Refusal;
use super::replies::Reply;
use crate::decider::{Ask, Scripts, Waiting, is_file_name};
use crate::roles::Person;
use crate::state::Moment;

/// A policy as a request names it.
struct Wanted {
    policy: String,
    set: Vec<(String, String)>,
    scripts: Scripts,
}

/// Passes a request to the decider, which answers later; refuses one that names what no request may.
pub(super) fn ask(engine: &mut Engine, moment: Moment, person: &Person, request: FromUser, reply: Reply) {
    let waiting = Waiting { user: person.name.clone(), reply };
    let snapshot = engine.state.snapshot(moment);
    let folder = engine.access.policies.clone();
    let wanted = |policy: Text, set: Vec<(Text, Text)>, texts: Vec<(Text, LongText)>| {
        let sent: Vec<_> = texts.iter().map(|(name, text)| (name.to_string(), text.to_string())).collect();
        check(policy.as_str(), &sent)?;
        let set = set.iter().map(|(key, value)| (key.to_string(), value.to_string())).collect();
        Ok::<_, Refusal>(Wanted {
            policy: policy.to_string(),
            set,
            scripts: Scripts { sent, folder, ..Scripts::default() },
        })
    };
    let (is_trial, wanted) = match request {
        FromUser::SetPolicy { policy, set } => (false, wanted(policy, set, Vec::new())),
        FromUser::SetPolicyText { policy, set, texts } => (false, wanted(policy, set, texts)),
        FromUser::WhatIf { policy, set } => (true, wanted(policy, set, Vec::new())),
        FromUser::WhatIfText { policy, set, texts } => (true, wanted(policy, set, texts)),
        _ => {
            engine.note_act(moment, person, "had the policy's scripts read again");
            let snapshot = Some(snapshot);
            return engine.decider.ask_for(waiting, |ticket| Ask::Reload { ticket: Some(ticket), snapshot });
        }
    };
    let Wanted { policy, set, scripts } = match wanted {
        Ok(wanted) => wanted,
        Err(refusal) => return engine.replies.refuse(waiting.reply, &refusal),
    };
    if is_trial {
        let user = person.name.clone();
        return engine.decider.ask_for(waiting, |ticket| Ask::WhatIf {
            ticket,
            user,
            policy,
            set,
            scripts,
            snapshot,
        });
    }
    let known = engine.state.cluster().policy();
    let is_known = (&known.name, &known.set) == (&policy, &set);
    // The same policy goes on with its memory.
    let memory = if is_known { None } else { Some(String::new()) };
    let snapshot = Some(snapshot);
    engine.decider.ask_for(waiting, |ticket| Ask::Choose { ticket, policy, set, memory, scripts, snapshot });
}

/// A policy's name is made of words, never of paths; a text that is sent has the name of a file and is used.
pub(super) fn check(policy: &str, sent: &[(String, String)]) -> Result<(), Refusal> {
    let is_word = |part: &str| {
        !part.is_empty() && part.chars().all(|c| c.is_ascii_alphanumeric() || "-_.:".contains(c))
    };
    let mut parts = policy.split('+').map(str::trim);
    if policy.contains('/') {
        return Err(Refusal::PolicyPath);
    }
    if !parts.all(is_word) {
        return Err(Refusal::PolicyName);
    }
    let is_part = |name: &str| {
        policy.split('+').any(|part| {
            part.trim().strip_prefix(name).is_some_and(|rest| rest.is_empty() || rest.starts_with(':'))
        })
    };
    match sent.iter().find(|(name, _)| !is_file_name(name) || !is_part(name)) {
        Some(_) => Err(Refusal::PolicyText),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_words_and_texts_belong_to_them() {
        let text = |name: &str| vec![(name.to_owned(), String::new())];
        for good in ["las+tune", "elasticflow:admit + las", "mine.rhai:order+tune", "site_2.rhai"] {
            assert!(check(good, &[]).is_ok(), "{good}");
        }
        for bad in ["/etc/shadow", "../x.rhai", "las+./mine.rhai", "", "las+", "las tune", "a\u{1b}[2J"] {
            assert!(check(bad, &[]).is_err(), "{bad}");
        }
        assert!(check("mine.rhai:order+tune", &text("mine.rhai")).is_ok());
        assert!(check("mine.rhai+tune", &text("other.rhai")).is_err());
        assert!(check("las+tune", &text("las")).is_err(), "a shipped script is not replaced");
    }
}
