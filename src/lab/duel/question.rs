//! What a case is judged by, and how the answer is measured: as a ratio, in which 1 is as it should be and more is worse.

use rota_core::plan::Plan;
use rota_core::simulation::SimulationError;
use rota_core::snapshot::Snapshot;
use rota_scripts::optimum::speed_of;

use super::case::Setting;
use super::property::Property;
use super::side::{Match, Outcome, Side, SideError};
use crate::solve::given;

/// What is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Question {
    /// How much larger the mean completion time is than the other's.
    Jct,
    /// How much less all jobs together do after the first decision than the other's, in speed relative to proportional
    /// shares.
    Speed,
    /// Whether a property holds, without another policy.
    Property(Property),
}

/// The answer for one case.
#[derive(Clone, Debug, PartialEq)]
pub struct Judged {
    /// 1 is as it should be; more is worse.
    pub ratio: f64,
    /// Whether more GPUs were asked for than there are.
    pub is_crowded: bool,
    /// Stops and moves, of the policy and of the other.
    pub n_stops: (u32, u32),
    /// What was observed, if the ratio alone does not show it.
    pub what: Option<String>,
}

impl Judged {
    pub(super) fn of(ratio: f64, outcome: &Outcome, what: Option<String>) -> Judged {
        Judged { ratio, is_crowded: outcome.is_crowded, n_stops: (outcome.n_stops, 0), what }
    }
}

/// The policies of a match, loaded, and what is asked of them.
pub struct Arena {
    /// What is asked.
    pub question: Question,
    /// Policy that is judged.
    pub policy: Side,
    /// Policy it is compared with; `None` where a property of one policy is tested.
    pub against: Option<Side>,
}

impl Arena {
    /// Loads the policies of a match.
    pub fn load(question: Question, of: &Match, set: &Parameters) -> Result<Arena, SideError> {
        let policy = Side::load(&of.policy, &set.policy)?;
        let against = of.against.as_ref().map(|name| Side::load(name, &set.against)).transpose()?;
        Ok(Arena { question, policy, against })
    }

    /// Answers the question for a case.
    pub fn judge(&mut self, setting: &Setting) -> Judged {
        match (self.question, &mut self.against) {
            (Question::Property(property), _) => property.judge(&mut self.policy, setting),
            (Question::Jct, Some(against)) => jct(&mut self.policy, against, setting),
            (Question::Speed, Some(against)) => speed(&mut self.policy, against, setting),
            (Question::Jct | Question::Speed, None) => {
                unreachable!("a comparison names the other policy")
            }
        }
    }
}

/// Parameters set on each side.
#[derive(Clone, Debug, Default)]
pub struct Parameters {
    /// Of the policy in question.
    pub policy: Vec<(String, String)>,
    /// Of the other.
    pub against: Vec<(String, String)>,
}

fn jct(policy: &mut Side, against: &mut Side, setting: &Setting) -> Judged {
    let (ours, theirs) = (policy.run(setting), against.run(setting));
    let ratio = match (ours.mean_jct_s(), theirs.mean_jct_s()) {
        _ if ours.failure.is_some() => f64::INFINITY,
        // A job that never ends under both is not the policy's fault.
        (_, theirs) if theirs.is_infinite() => 1.0,
        (ours, theirs) if theirs > 0.0 => ours / theirs,
        _ => 1.0,
    };
    Judged {
        ratio,
        is_crowded: ours.is_crowded || theirs.is_crowded,
        n_stops: (ours.n_stops, theirs.n_stops),
        what: ours.failure,
    }
}

fn speed(policy: &mut Side, against: &mut Side, setting: &Setting) -> Judged {
    let (ours, theirs) = (first_speed(policy, setting), first_speed(against, setting).unwrap_or(0.0));
    let ratio = match ours {
        Ok(ours) if ours > 0.0 => theirs / ours,
        Ok(_) if theirs > 0.0 => f64::INFINITY,
        Ok(_) => 1.0,
        Err(_) => f64::INFINITY,
    };
    let asked: u32 = setting.workload.jobs.iter().map(|job| job.gpus.asked).sum();
    Judged {
        ratio,
        is_crowded: asked > setting.cluster.n_gpus(),
        n_stops: (0, 0),
        what: ours.err().map(|error| error.to_string()),
    }
}

/// Speed of all jobs together after the first decision, relative to proportional shares.
fn first_speed(side: &mut Side, setting: &Setting) -> Result<f64, SimulationError> {
    let mut total = 0.0;
    side.first(setting, &mut |snapshot, plan| total = total_speed(snapshot, plan))?;
    Ok(total)
}

fn total_speed(snapshot: &Snapshot, plan: &Plan) -> f64 {
    let speed = |(row, allocation)| speed_of(snapshot, snapshot.jobs.spec(row), allocation);
    given(snapshot, plan).into_iter().map(speed).sum()
}
