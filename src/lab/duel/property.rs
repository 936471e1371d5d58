//! Properties that a policy should have by itself, without comparison: in every round (`rounds`), or between two runs.

use std::sync::Arc;

use rota_core::cluster::{Cluster, ClusterError, Node, NodeGroup};
use rota_core::resources::Host;
use rota_core::workload::Workload;

use super::case::Setting;
use super::question::Judged;
use super::rounds::{self, RoundCheck};
use super::side::{Fate, Outcome, Side, mean};

/// A property by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Property {
    /// Every job ends.
    Ends,
    /// No job waits while its GPUs are free together with its share.
    Conserves,
    /// No job waits while its GPUs are free together with its whole demand.
    Serves,
    /// No job runs below its share.
    Share,
    /// No job runs below its demand where its own nodes could give all of it.
    Tops,
    /// Nothing that would speed a running job up is left on its nodes.
    Leaves,
    /// No job runs below its demand while another node has room for all of it.
    Roams,
    /// Asking at every round gives what skipping rounds gives.
    Steady,
    /// More nodes, CPUs or memory slow no job down.
    Capacity,
    /// Taking a job away slows no other job down.
    Fewer,
}

/// A property with its texts.
pub struct About {
    /// The property that the texts describe.
    pub property: Property,
    /// As on the command line.
    pub name: &'static str,
    /// The property as a sentence.
    pub says: &'static str,
    /// How far off it may be before it is a counterexample, unless the user says otherwise.
    pub margin: f64,
}

/// Shares are rounded down to millionths of CPUs and to bytes.
const EXACT: f64 = 1e-6;

impl Property {
    /// Every property.
    pub const ALL: &[About] = &[
        About {
            property: Property::Ends,
            name: "ends",
            says: "every job that is not refused ends",
            margin: EXACT,
        },
        About {
            property: Property::Conserves,
            name: "conserves",
            says: "no job waits while its GPUs are free with its share (or its demand, if that is less)",
            margin: EXACT,
        },
        About {
            property: Property::Serves,
            name: "serves",
            says: "no job waits while its GPUs are free with its whole demand",
            margin: EXACT,
        },
        About {
            property: Property::Share,
            name: "share",
            says: "no job runs with less than its proportional share (or its demand, if that is less) of anything",
            margin: EXACT,
        },
        About {
            property: Property::Tops,
            name: "tops",
            says: "no job runs below its demand while its own nodes could give it all of it",
            margin: EXACT,
        },
        About {
            property: Property::Leaves,
            name: "leaves",
            says: "nothing that would speed a running job up is left on its nodes",
            margin: EXACT,
        },
        About {
            property: Property::Roams,
            name: "roams",
            says: "no job that can move at no cost runs below its demand while another node has room for all of it",
            margin: EXACT,
        },
        About {
            property: Property::Steady,
            name: "steady",
            says: "skipping rounds in which nothing changed does not change the result",
            margin: EXACT,
        },
        About {
            property: Property::Capacity,
            name: "capacity",
            says: "one more node, or half as many CPUs or half as much memory again, does not raise the mean completion time",
            margin: 0.25,
        },
        About {
            property: Property::Fewer,
            name: "fewer",
            says: "removing a job does not raise the mean completion time of the others",
            margin: 0.25,
        },
    ];

    /// Its name and what it says.
    pub fn about(self) -> &'static About {
        Property::ALL.iter().find(|about| about.property == self).expect("every property is in the table")
    }

    /// A property by its name.
    pub fn find(name: &str) -> Option<Property> {
        Property::ALL.iter().find(|about| about.name == name).map(|about| about.property)
    }

    pub(super) fn judge(self, side: &mut Side, setting: &Setting) -> Judged {
        match self {
            Property::Ends => ends(&side.run(setting)),
            Property::Conserves => in_every_round(side, setting, rounds::conserves),
            Property::Serves => in_every_round(side, setting, rounds::serves),
            Property::Share => in_every_round(side, setting, rounds::share),
            Property::Tops => in_every_round(side, setting, rounds::tops),
            Property::Leaves => in_every_round(side, setting, rounds::leaves),
            Property::Roams => in_every_round(side, setting, rounds::roams),
            Property::Steady => steady(side, setting),
            Property::Capacity => capacity(side, setting),
            Property::Fewer => fewer(side, setting),
        }
    }
}

fn ends(outcome: &Outcome) -> Judged {
    let n_never = outcome.fates.iter().filter(|fate| **fate == Fate::Never).count();
    let what =
        outcome.failure.clone().or_else(|| (n_never > 0).then(|| format!("jobs that never end: {n_never}")));
    Judged::of(if n_never > 0 { f64::INFINITY } else { 1.0 }, outcome, what)
}

/// The worst of all rounds.
fn in_every_round(side: &mut Side, setting: &Setting, check: RoundCheck) -> Judged {
    let mut worst: Option<rounds::Breach> = None;
    let outcome = side.watched(setting, &mut |snapshot, plan| {
        if let Some(breach) = check(snapshot, plan)
            && worst.as_ref().is_none_or(|worst| breach.ratio > worst.ratio)
        {
            worst = Some(breach);
        }
    });
    if let Some(failure) = &outcome.failure {
        return Judged::of(f64::INFINITY, &outcome, Some(failure.clone()));
    }
    let (ratio, what) = worst.map_or((1.0, None), |worst| (worst.ratio, Some(worst.what)));
    Judged::of(ratio, &outcome, what)
}

fn steady(side: &mut Side, setting: &Setting) -> Judged {
    let (skipping, asking) = (side.run(setting), side.every_round(setting));
    let is_same = skipping.digest == asking.digest && skipping.failure == asking.failure;
    let (skips, asks) = (skipping.mean_jct_s(), asking.mean_jct_s());
    let what = || format!("mean completion time {skips:.0} s when rounds are skipped, {asks:.0} s when not");
    Judged::of(if is_same { 1.0 } else { 2.0 }, &skipping, (!is_same).then(what))
}

fn capacity(side: &mut Side, setting: &Setting) -> Judged {
    let before = side.run(setting);
    let mut worst = Judged::of(1.0, &before, before.failure.clone());
    for (name, cluster) in larger(&setting.cluster) {
        let Ok(cluster) = cluster else { continue };
        let after = side.run(&Setting { cluster: Arc::new(cluster), ..setting.clone() });
        let what =
            |ratio: f64| format!("with {name} the mean completion time is {ratio:.3} times what it was");
        keep_worst(&mut worst, compared(&before.fates, &after.fates), what);
    }
    worst
}

/// The cluster with more: of what, and the cluster.
fn larger(cluster: &Cluster) -> Vec<(&'static str, Result<Cluster, ClusterError>)> {
    let half_more = |amount: u64| amount + amount / 2;
    let more_cpus = |host: Host| Host { cpu_micro: half_more(host.cpu_micro), ..host };
    let more_mem = |host: Host| Host { mem_bytes: half_more(host.mem_bytes), ..host };
    let one_more = |last: &Node| cluster.join("more", last.rack, &group(cluster, last, last.host));
    let mut larger = vec![
        ("half as many CPUs again", with_hosts(cluster, more_cpus)),
        ("half as much memory again", with_hosts(cluster, more_mem)),
    ];
    larger.extend(cluster.nodes().last().map(|last| ("one more node", one_more(last))));
    larger
}

fn with_hosts(cluster: &Cluster, host: impl Fn(Host) -> Host) -> Result<Cluster, ClusterError> {
    let join = |whole: Cluster, node: &Node| {
        whole.join(&node.name, node.rack, &group(cluster, node, host(node.host)))
    };
    cluster.nodes().iter().try_fold(Cluster::empty(cluster.name.clone()), join)
}

fn group(cluster: &Cluster, node: &Node, host: Host) -> NodeGroup {
    NodeGroup {
        count: 1,
        racks: 1,
        gpu_type: cluster.gpu_types()[node.gpu_type.index()].clone(),
        n_gpus: node.n_gpus,
        gpu_mem_bytes: node.gpu_mem_bytes,
        host,
        cache_bytes: node.cache_bytes,
        fetch_bps: node.fetch_bps,
    }
}

fn fewer(side: &mut Side, setting: &Setting) -> Judged {
    let before = side.run(setting);
    let mut worst = Judged::of(1.0, &before, before.failure.clone());
    for gone in 0..setting.workload.jobs.len() {
        let workload = Arc::new(without(&setting.workload, gone));
        let after = side.run(&Setting { workload, ..setting.clone() });
        let mut others = before.fates.clone();
        others.remove(gone);
        let name = &setting.workload.jobs[gone].name;
        let what = |ratio: f64| {
            format!("without {name} the others' mean completion time is {ratio:.3} times what it was")
        };
        keep_worst(&mut worst, compared(&others, &after.fates), what);
    }
    worst
}

/// The workload without one of its jobs.
fn without(workload: &Workload, gone: usize) -> Workload {
    let mut left = workload.clone();
    left.jobs.remove(gone);
    left.truths.remove(gone);
    for (index, job) in left.jobs.iter_mut().enumerate().skip(gone) {
        Arc::make_mut(job).id = index.into();
    }
    left
}

/// Mean completion time after over before, of the jobs that were refused in neither.
fn compared(before: &[Fate], after: &[Fate]) -> f64 {
    let both = before.iter().zip(after).filter_map(|(before, after)| Some((before.jct_s()?, after.jct_s()?)));
    let (before, after): (Vec<f64>, Vec<f64>) = both.unzip();
    let (before, after) = (mean(before.into_iter()), mean(after.into_iter()));
    if before > 0.0 && before.is_finite() { after / before } else { 1.0 }
}

fn keep_worst(worst: &mut Judged, ratio: f64, what: impl Fn(f64) -> String) {
    if ratio > worst.ratio {
        (worst.ratio, worst.what) = (ratio, Some(what(ratio)));
    }
}
