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
        text: "the original decides whenever a job arrives after a slot without a decision, and a start costs up to 43 s; the \
               shipped policy decides at multiples of the slot, follows the plans of the round before where new ones would \
               break a promise, and restarts cost nothing unless --restart-cost says so",
    },
    Difference {
        program: System::ElasticFlow,
        policies: &["edf"],
        text: "the original decides whenever a job arrives after a slot without a decision, and a start costs up to 43 s; the \
               shipped policy decides at multiples of the slot, and restarts cost nothing unless --restart-cost says so",
    },
    Difference {
        program: System::ElasticFlow,
        policies: &["gandiva"],
        text: "the shipped policy gives a gang free GPUs, else those of gangs of its own size, counts turns only among gangs that \
               share GPUs, and moves gangs to where fewer share",
    },
    Difference {
        program: System::ElasticFlow,
        policies: &["tiresias"],
        text: "the original decides whenever a job arrives after a slot without a decision; the shipped policy decides at \
               multiples of the slot, which short jobs with little time to spare wait for, and orders the waiting jobs of a \
               queue by when they were stopped",
    },
    Difference {
        program: System::ElasticFlow,
        policies: &["themis"],
        text: "the original solves for shares of time and serves the largest share; the shipped policy goes by the paper's ratio, \
               the time from arrival to the end over the time with its part of the cluster to itself, largest first",
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
