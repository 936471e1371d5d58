//! Runs as tests want them.

use std::sync::Arc;

use rota_scripts::study::Setting;

use super::{Key, Outcome, Ran};
use crate::study::Figures;

/// A run with one figure.
pub(crate) fn done(policy: &str, jobs_per_hour: f64, seed: i64, avg_jct_s: f64) -> Ran {
    let settings = vec![
        ("jobs_per_hour".to_owned(), Setting::Number(jobs_per_hour)),
        ("policy".to_owned(), Setting::Text(policy.to_owned())),
        ("seed".to_owned(), Setting::Whole(seed)),
    ];
    let figures = Figures {
        numbers: [("avg_jct_s".to_owned(), Some(avg_jct_s)), ("wall_s".to_owned(), Some(0.5))].into(),
        digest: "d".into(),
        jct_percentiles_s: vec![avg_jct_s; 101],
    };
    let key = Key::new([policy, &jobs_per_hour.to_string(), &seed.to_string()]);
    Ran { settings, key, outcome: Outcome::Done(Arc::new(figures)) }
}

/// A run that failed.
pub(crate) fn failed(policy: &str, why: &str) -> Ran {
    let settings = vec![("policy".to_owned(), Setting::Text(policy.to_owned()))];
    Ran { settings, key: Key::new([policy]), outcome: Outcome::Failed(why.to_owned()) }
}
