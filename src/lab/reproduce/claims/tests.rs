//! Every kind of predicate says no to a table on which it must, and yes or tie to others; so does every claim that ships.

use super::super::evidence::Row;
use super::super::quantity::{AVG_JCT, BROKEN, DEADLINES, Quantity};
use super::*;

const BY_ALLOCATION: Pairing = Pairing::Allocations("tune", "proportional");
const LOAD: AlongAxis = AlongAxis { name: "jobs_per_hour", values: &[] };

fn claim(test: Test) -> Claim {
    Claim { name: "a-claim", says: "that it is so", by: Claimant::Paper, scope: Scope::Figure, test }
}

fn row(policy: &str, at: &[(&str, &str)], of: Quantity, value: f64) -> Row {
    Row {
        policy: policy.into(),
        at: at.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect(),
        seed: None,
        numbers: [(of.name.into(), value)].into(),
    }
}

/// Rows of tune and proportional at a load, in hours.
fn jct(split: &str, load: &str, tune_h: f64, proportional_h: f64) -> [Row; 2] {
    let at = [("split", split), ("jobs_per_hour", load)];
    [("las+tune", tune_h), ("las+proportional", proportional_h)]
        .map(|(policy, hours)| row(policy, &at, AVG_JCT, 3_600.0 * hours))
}

fn outcome(test: Test, rows: &[Row]) -> Outcome {
    claim(test).judge(rows, &[]).outcome
}

#[test]
fn the_lead_must_grow_under_every_split_and_not_only_under_the_first() {
    let grows = Test::LeadGrows(BY_ALLOCATION, AVG_JCT, LOAD);
    let first = [jct("20,70,10", "2", 10.0, 10.5), jct("20,70,10", "9", 10.0, 20.0)].concat();
    let falls = [jct("50,0,50", "2", 10.0, 11.3), jct("50,0,50", "9", 10.0, 10.0)].concat();
    assert_eq!(outcome(grows, &first), Outcome::Holds);
    let verdict = claim(grows).judge(&[first.clone(), falls].concat(), &[]);
    assert_eq!(verdict.outcome, Outcome::DoesNotHold);
    assert!(
        verdict.why.contains("by 1.130x at jobs per hour 2, split 50,0,50 and by 1.000x"),
        "{}",
        verdict.why
    );
    let level = [jct("20,70,10", "2", 10.0, 11.0), jct("20,70,10", "9", 20.0, 22.0)].concat();
    assert_eq!(outcome(grows, &level), Outcome::Tie);
    assert_eq!(outcome(grows, &first[..2]), Outcome::NotComparable, "one load says nothing");
}

#[test]
fn only_the_highest_load_decides_whether_tune_is_ahead_there() {
    let ahead = Test::AheadAtEnd(BY_ALLOCATION, AVG_JCT, LOAD);
    let light = jct("20,70,10", "2", 10.0, 10.0);
    let rows = |tune: f64| [light.clone(), jct("20,70,10", "9", tune, 10.0)].concat();
    assert_eq!(outcome(ahead, &rows(5.0)), Outcome::Holds);
    assert_eq!(outcome(ahead, &rows(10.0)), Outcome::Tie);
    assert_eq!(outcome(ahead, &rows(12.0)), Outcome::DoesNotHold);
    let other = [rows(5.0), jct("50,0,50", "9", 11.0, 10.0).to_vec()].concat();
    assert_eq!(outcome(ahead, &other), Outcome::DoesNotHold, "under every split");
    let numbers = row("las+tune", &[], AVG_JCT, 1.0);
    assert_eq!(outcome(ahead, &[numbers]), Outcome::NotComparable, "no load is known");
}

#[test]
fn within_a_tenth_must_hold_in_each_comparison() {
    let within = Test::Within(Pairing::Allocations("tune", "opt"), AVG_JCT, 0.1);
    let at = |order: &str, tune: f64| {
        [("tune", tune), ("opt", 100.0)]
            .map(|(name, value)| row(&format!("{order}+{name}"), &[], AVG_JCT, value))
    };
    assert_eq!(outcome(within, &at("fifo", 109.0)), Outcome::Holds);
    let verdict = claim(within).judge(&[at("fifo", 109.0), at("srtf", 114.0)].concat(), &[]);
    assert_eq!(verdict.outcome, Outcome::DoesNotHold);
    assert!(verdict.why.starts_with("not so in 1 of 2 comparisons; worst: srtf+tune"), "{}", verdict.why);
}

#[test]
fn equal_numbers_are_a_tie_and_no_victory() {
    let ahead = Test::Ahead(Pairing::Named("elasticflow", &["elasticflow-open"]), DEADLINES);
    let rows = |own: f64, other: f64| {
        [row("elasticflow", &[], DEADLINES, own), row("elasticflow-open", &[], DEADLINES, other)]
    };
    assert_eq!(outcome(ahead, &rows(0.946, 0.946)), Outcome::Tie);
    assert_eq!(outcome(ahead, &rows(0.926, 0.452)), Outcome::Holds);
    assert_eq!(outcome(ahead, &rows(0.264, 0.954)), Outcome::DoesNotHold);
}

#[test]
fn never_behind_lets_some_rows_be_level_but_not_all() {
    let never = Test::NeverBehind(BY_ALLOCATION, AVG_JCT);
    let rows = |pairs: &[(f64, f64)]| -> Vec<Row> {
        let at = pairs.iter().enumerate();
        at.flat_map(|(load, (tune, other))| jct("20,70,10", &load.to_string(), *tune, *other)).collect()
    };
    assert_eq!(outcome(never, &rows(&[(10.0, 10.0), (10.0, 12.0)])), Outcome::Holds);
    assert_eq!(outcome(never, &rows(&[(10.0, 10.0), (10.01, 10.0)])), Outcome::Tie);
    assert_eq!(outcome(never, &rows(&[(10.0, 20.0), (10.2, 10.0)])), Outcome::DoesNotHold);
}

#[test]
fn seeds_that_disagree_with_their_mean_are_counted() {
    let seeded = |seed: &str, tune: f64| {
        jct("20,70,10", "9", tune, 10.0).map(|row| Row { seed: Some(seed.into()), ..row })
    };
    let rows = [seeded("1", 5.0), seeded("2", 11.0)].concat();
    let verdict = claim(Test::Ahead(BY_ALLOCATION, AVG_JCT)).judge(&rows, &[]);
    assert_eq!(verdict.outcome, Outcome::Holds);
    assert!(verdict.why.contains("(behind in 1 of 2 seeds)"), "{}", verdict.why);
}

#[test]
fn a_factor_is_asked_of_all_rows_or_of_the_best() {
    let who = Pairing::Everybody("elasticflow");
    let rows = [("elasticflow", 0.6), ("edf", 0.1), ("tiresias", 0.4)];
    let rows = rows.map(|(policy, value)| row(policy, &[], DEADLINES, value));
    assert_eq!(outcome(Test::ByFactor(who, DEADLINES, 1.46), &rows), Outcome::Holds);
    assert_eq!(outcome(Test::ByFactor(who, DEADLINES, 1.6), &rows), Outcome::DoesNotHold);
    assert_eq!(outcome(Test::UpTo(who, DEADLINES, 5.9), &rows), Outcome::Holds);
    assert_eq!(outcome(Test::UpTo(who, DEADLINES, 6.1), &rows), Outcome::DoesNotHold);
}

#[test]
fn a_count_must_be_nothing_in_every_row() {
    let none = Test::None(&["elasticflow"], BROKEN);
    let at = |trace: &'static str, value| row("elasticflow", &[("trace", trace)], BROKEN, value);
    assert_eq!(outcome(none, &[at("a", 0.0), at("b", 0.0)]), Outcome::Holds);
    let verdict = claim(none).judge(&[at("a", 0.0), at("b", 2.0)], &[]);
    assert_eq!(verdict.outcome, Outcome::DoesNotHold);
    assert!(verdict.why.ends_with("2 promises broken of elasticflow at trace b"), "{}", verdict.why);
}

#[test]
fn every_published_number_must_be_met() {
    let agrees = claim(Test::Agrees(&[DEADLINES], 0.1));
    let published = [row("edf", &[], DEADLINES, 0.10), row("pollux", &[], DEADLINES, 0.5)];
    let ask = |own: f64| agrees.judge(&[row("edf", &[], DEADLINES, own)], &published);
    assert_eq!((ask(0.105).outcome, ask(0.12).outcome), (Outcome::Holds, Outcome::DoesNotHold));
    assert!(ask(0.12).why.contains("deadlines met of edf is 0.120, published 0.100"));
    assert_eq!(agrees.judge(&published, &[]).outcome, Outcome::NotComparable);
}

#[test]
fn no_rows_are_no_evidence() {
    for test in [
        Test::Ahead(BY_ALLOCATION, AVG_JCT),
        Test::LeadGrows(BY_ALLOCATION, AVG_JCT, LOAD),
        Test::None(&["las"], AVG_JCT),
    ] {
        assert_eq!(outcome(test, &[]), Outcome::NotComparable);
        assert_eq!(outcome(test, &[row("other", &[], DEADLINES, 1.0)]), Outcome::NotComparable);
    }
}

/// Rows in which the leader of a pairing is so many times better than a rival.
fn led(who: Pairing, of: Quantity, lead: f64, at: &[(&str, &str)]) -> Vec<Row> {
    let (leader, rival) = match who {
        Pairing::Allocations(leader, rival) => (format!("las+{leader}"), format!("las+{rival}")),
        Pairing::Named(leader, rivals) => (leader.to_owned(), rivals[0].to_owned()),
        Pairing::Everybody(leader) => (leader.to_owned(), "somebody".to_owned()),
    };
    let (own, other) = if of.is_less_better { (100.0, 100.0 * lead) } else { (100.0 * lead, 100.0) };
    vec![row(&leader, at, of, own), row(&rival, at, of, other)]
}

/// The first and the last value of an axis.
fn ends(along: &AlongAxis) -> [&'static str; 2] {
    match along.values {
        [] => ["1", "9"],
        [low, .., high] => [*low, *high],
        [_] => panic!("an axis of one value"),
    }
}

/// A table of which a claim is true, or is not.
fn table(test: Test, is_so: bool) -> (Vec<Row>, Vec<Row>) {
    let choose = |yes: f64, no: f64| if is_so { yes } else { no };
    let rows = match test {
        Test::Ahead(who, of) | Test::NeverBehind(who, of) => led(who, of, choose(2.0, 0.5), &[]),
        Test::AheadAtEnd(who, of, along) => {
            // Level at the low end either way: only the high end decides.
            let at = |value, lead| led(who, of, lead, &[(along.name, value)]);
            let [low, high] = ends(&along);
            [at(low, 1.0), at(high, choose(2.0, 0.5))].concat()
        }
        Test::Within(who, of, part) => led(who, of, choose(1.0, 0.9) / (1.0 + part), &[]),
        Test::ByFactor(who, of, factor) | Test::UpTo(who, of, factor) => {
            led(who, of, choose(1.1, 0.9) * factor, &[])
        }
        Test::LeadGrows(who, of, along) => {
            let [low, high] = ends(&along);
            let at = |value, lead| led(who, of, lead, &[(along.name, value)]);
            [at(low, choose(1.0, 2.0)), at(high, choose(2.0, 1.0))].concat()
        }
        Test::None(policies, of) => vec![row(policies[0], &[], of, choose(0.0, 3.0))],
        Test::Agrees(quantities, part) => {
            let of = quantities[0];
            let own = row("edf", &[], of, choose(1.0, 1.0 + 2.0 * part));
            return (vec![own], vec![row("edf", &[], of, 1.0)]);
        }
    };
    (rows, Vec::new())
}

#[test]
fn every_claim_that_ships_says_no_where_it_must_and_names_the_row() {
    for figure in super::super::papers::PAPERS.iter().flat_map(|paper| paper.figures) {
        for claim in figure.claims {
            for (is_so, outcome) in [(true, Outcome::Holds), (false, Outcome::DoesNotHold)] {
                let (rows, published) = table(claim.test, is_so);
                let verdict = claim.judge(&rows, &published);
                assert_eq!(verdict.outcome, outcome, "{} {}: {}", figure.name, claim.name, verdict.why);
                assert!(
                    verdict.why.contains(&rows[0].policy),
                    "{} {}: {}",
                    figure.name,
                    claim.name,
                    verdict.why
                );
            }
        }
    }
}
