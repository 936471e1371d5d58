//! Policies written natively in Rust, for one purpose: to measure what writing them as scripts costs.

use rota_core::fill::{Answer, Demand, Fill, Sequence, Walk, plan_of};
use rota_core::place::FirstFit;
use rota_core::plan::{Plan, Wake};
use rota_core::policy::{Policy, PolicyError};
use rota_core::reclaim::Reclaim;
use rota_core::room::Room;
use rota_core::simulation::admit_all;
use rota_core::snapshot::Snapshot;
use rota_core::table::{Field, JobTable};

/// What is sorted by.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Key {
    /// fifo.
    Arrival,
    /// srtf.
    Remaining,
    /// las.
    Attained,
}

/// How much a job gets.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Share {
    /// proportional.
    Fair,
    /// tune.
    Tune,
}

/// A native policy.
pub(crate) struct Twin {
    key: Key,
    share: Share,
    room: Option<Room>,
    /// Rows in last round's order: nearly sorted input makes the sort linear.
    keyed: Vec<(f64, f64, f64, u32, u32)>,
    last: Vec<rota_core::ids::JobId>,
}

impl Twin {
    /// The twin of `key+share`.
    pub(crate) fn new(key: Key, share: Share) -> Self {
        Twin { key, share, room: None, keyed: Vec::new(), last: Vec::new() }
    }

    fn order(&mut self, jobs: &JobTable) -> Vec<u32> {
        let priority = jobs.column(Field::Priority);
        let arrival = jobs.column(Field::Arrival);
        let key = match self.key {
            Key::Arrival => arrival,
            Key::Remaining => jobs.column(Field::Remaining),
            Key::Attained => jobs.column(Field::Service),
        };
        let mut seen = vec![false; jobs.len()];
        self.keyed.clear();
        for row in self.last.iter().filter_map(|job| jobs.row(*job)) {
            seen[row] = true;
            self.keyed.push((-priority[row], key[row], arrival[row], jobs.id(row).0, row as u32));
        }
        for row in (0..jobs.len()).filter(|row| !seen[*row]) {
            self.keyed.push((-priority[row], key[row], arrival[row], jobs.id(row).0, row as u32));
        }
        self.keyed.sort_by(|a, b| {
            a.0.total_cmp(&b.0).then(a.1.total_cmp(&b.1)).then(a.2.total_cmp(&b.2)).then(a.3.cmp(&b.3))
        });
        self.last.clear();
        self.last.extend(self.keyed.iter().map(|k| rota_core::ids::JobId(k.3)));
        self.keyed.iter().map(|k| k.4).collect()
    }
}

impl Policy for Twin {
    fn decide(&mut self, snapshot: &Snapshot) -> Result<Plan, PolicyError> {
        let order = self.order(&snapshot.jobs);
        let room = self.room.get_or_insert_with(|| Room::new(snapshot));
        room.reset(snapshot);
        let mut placement = FirstFit;
        let fill = Fill::new(snapshot, room, &mut placement);
        let granted = match self.share {
            Share::Fair => fill.run(&order, &Walk { demand: Demand::FairShare, ..Walk::default() }, &mut []),
            Share::Tune => {
                let walk = Walk {
                    only_selected: true,
                    stayers_first: true,
                    rearranges: Some(Sequence::Queue),
                    tops_up: Some(Sequence::Queue),
                    ..Walk::default()
                };
                fill.run(&order, &walk, &mut [Answer::FairShare, Answer::Reclaim(Reclaim::default())])
            }
        };
        let mut plan = plan_of(snapshot, granted);
        plan.wake = if self.key == Key::Arrival { Wake::OnChange } else { Wake::NextRound };
        admit_all(snapshot, &mut plan);
        Ok(plan)
    }
}
