//! Why a shipped policy differs from its original even with all named defects of the original mended: differences of
//! design, which no `--defect` switches.

use rota_scripts::artifact::System;

/// How a shipped policy differs from the original's rules without their defects.
struct Difference {
    program: System,
    policies: &'static [&'static str],
    text: &'static str,
}

const DIFFERENCES: &[Difference] = &[
    Difference {
        program: System::ElasticFlow,
        policies: &["elasticflow", "elasticflow-open", "edf-admission"],
        text: "the original plans in whole slots and a start costs up to 43 s; the shipped policy plans to the second, follows \
               the plans of the round before where new ones would break a promise, and restarts cost nothing unless \
               --restart-cost says so",
    },
    Difference {
        program: System::ElasticFlow,
        policies: &["edf"],
        text: "the original plans in whole slots and a start costs up to 43 s; the shipped policy decides again whenever a job \
               arrives or ends, and restarts cost nothing unless --restart-cost says so",
    },
    Difference {
        program: System::ElasticFlow,
        policies: &["gandiva"],
        text: "the original seats gangs of one size on sets of servers and lets them take turns; the shipped policy shares the \
               GPUs of a node by time slices",
    },
    Difference {
        program: System::ElasticFlow,
        policies: &["tiresias"],
        text: "the original charges up to 43 s for a start; restarts of the shipped policy cost nothing unless --restart-cost \
               says so, and it may move a job between queues in every round",
    },
    Difference {
        program: System::ElasticFlow,
        policies: &["themis"],
        text: "the original solves an auction with leases of fixed length; the shipped policy orders the jobs by their \
               finish-time ratio in every round",
    },
];

/// The difference between the shipped policy and the original's rules without defects; none where they are the same rules.
pub(crate) fn difference(program: System, policy: &str) -> Option<&'static str> {
    let is_its =
        |difference: &&Difference| difference.program == program && difference.policies.contains(&policy);
    DIFFERENCES.iter().find(is_its).map(|difference| difference.text)
}

#[cfg(test)]
mod tests {
    use super::super::PAPERS;
    use super::*;

    #[test]
    fn every_policy_of_elasticflows_tables_of_defects_has_its_differences() {
        let of_elasticflow = PAPERS.iter().filter(|paper| paper.program() == System::ElasticFlow);
        let attributed =
            of_elasticflow.flat_map(|paper| paper.figures).filter_map(|figure| figure.attributed);
        for policy in attributed.flat_map(|attributed| attributed.policies) {
            assert!(difference(System::ElasticFlow, policy).is_some(), "{policy}");
        }
    }
}
