//! Profiling a job that behaves as a profile says must return that profile, with at most a third of the full grid's runs:
//! every shipped model, measured through the emulation's own speed model with noise on top, no process started.

use rand::rngs::ChaCha8Rng;
use rand::{RngExt, SeedableRng};
use rota_core::profile::{Profile, Shape};
use rota_core::resources::Host;
use rota_lab::profile::findings::{Findings, Run};
use rota_lab::profile::fit::Fit;
use rota_lab::profile::grid::{Grid, Point};
use rota_lab::profile::knee::{knee, last_growth};
use rota_lab::profile::sweep::{MemoryAxis, Sweep};
use rota_traces::profile::{BUILT_IN, ProfileEntry, load};

/// Every iteration time is off by up to this part, either way.
const NOISE: f64 = 0.01;

fn gpu_type(profile: &Profile) -> &str {
    profile.scale.first().map_or("V100", |curve| curve.gpu_type.as_str())
}

/// What an emulated job would run at: the agent computes it with the same call.
fn true_rate(profile: &Profile, point: &Point) -> f64 {
    let per_gpu = Host { cpu_micro: point.cpu_micro, mem_bytes: point.mem_bytes, storage_bps: u64::MAX / 2 };
    let gpu_type = gpu_type(profile);
    profile.rate(&Shape { gpus: point.gpus, n_nodes: 1, per_gpu, gpu_type, batch: point.batch })
}

/// The levels a profile was measured at; where CPUs and memory were none, the ones a user would ask for.
fn grid(profile: &Profile) -> Grid {
    let micro = |cpus: &f64| (cpus * 1e6).round() as u64;
    let bytes = |gb: &f64| (gb * 1e9).round() as u64;
    let (cpus, memory) = match &profile.host {
        Some(curve) => (curve.cpus().iter().map(micro).collect(), curve.mem_gb().iter().map(bytes).collect()),
        None => (vec![1_000_000, 2_000_000, 4_000_000], vec![16_000_000_000, 64_000_000_000]),
    };
    let gpus: Vec<u32> = profile.scale.iter().flat_map(|c| c.points.iter().map(|point| point.0)).collect();
    let batches: Vec<u32> = profile.scale.iter().map(|curve| curve.batch).collect();
    let or = |levels: Vec<u32>, one: u32| if levels.is_empty() { vec![one] } else { levels };
    Grid::new(&or(gpus, 1), &or(batches, 0), &cpus, &memory).expect("levels")
}

fn sweep(grid: Grid) -> Sweep {
    Sweep {
        grid,
        memory: MemoryAxis::Measured,
        flat: 0.03,
        within: 0.05,
        most_runs_of_a_point: 4,
        warms_up: true,
    }
}

fn run_of(profile: &Profile, point: Point, is_warm_up: bool, noise: &mut ChaCha8Rng) -> Run {
    let seconds = 1.0 / true_rate(profile, &point);
    let iteration_s: Vec<f64> =
        (0..10).map(|_| seconds * (1.0 + NOISE * noise.random_range(-1.0..1.0))).collect();
    Run { point, wall_s: iteration_s.iter().sum(), iteration_s, failure: None, is_warm_up }
}

fn measure(profile: &Profile, sweep: &Sweep) -> Findings {
    let mut noise = ChaCha8Rng::seed_from_u64(7);
    let mut findings = Findings::default();
    while let Some(next) = sweep.next(&findings) {
        findings.add(run_of(profile, next.point, next.is_warm_up, &mut noise));
        assert!(findings.runs().len() < 1000, "{}: the sweep does not end", profile.name);
    }
    findings
}

/// The knee of the profile itself, where nothing is measured.
fn true_demand(profile: &Profile, sweep: &Sweep) -> (u64, u64, Vec<u32>) {
    let points = |axis: Vec<Point>, value: fn(&Point) -> u64| -> Vec<(u64, f64)> {
        axis.iter().map(|point| (value(point), true_rate(profile, point))).collect()
    };
    let gpus = sweep.grid.batches().iter().map(|batch| {
        let axis = sweep.grid.scale_axis().into_iter().filter(|point| point.batch == *batch).collect();
        last_growth(&points(axis, |point| u64::from(point.gpus)), sweep.flat).expect("levels") as u32
    });
    (
        knee(&points(sweep.grid.cpu_axis(), |point| point.cpu_micro), sweep.flat).expect("levels"),
        knee(&points(sweep.grid.mem_axis(), |point| point.mem_bytes), sweep.flat).expect("levels"),
        gpus.collect(),
    )
}

fn every_model() -> impl Iterator<Item = (String, ProfileEntry)> {
    BUILT_IN.iter().flat_map(|(name, _)| {
        let set = load(name).expect("built in");
        set.entries().to_vec().into_iter().map(move |entry| (format!("{name} {}", entry.profile.name), entry))
    })
}

#[test]
fn every_shipped_profile_comes_back_from_a_third_of_its_grid() {
    let mut n_models = 0;
    for (name, entry) in every_model() {
        let profile = &entry.profile;
        let sweep = sweep(grid(profile));
        let findings = measure(profile, &sweep);
        let n_full = sweep.grid.points().len();
        assert!(findings.runs().len() * 3 <= n_full, "{name}: {} runs of {n_full}", findings.runs().len());
        let cost = sweep.cost();
        let most = cost.most as usize;
        assert!((cost.least as usize..=most).contains(&findings.runs().len()), "{name}: {cost:?}");
        let fit = Fit::new(&sweep, &findings).expect("measured");
        let recovered = fit.profile("again", gpu_type(profile)).expect("a profile");
        for point in sweep.grid.points() {
            let (is, was) = (true_rate(&recovered, &point), true_rate(profile, &point));
            assert!((is / was - 1.0).abs() < 0.05, "{name}, {point}: {is} instead of {was}");
        }
        let demand = fit.demand();
        let gpus: Vec<u32> = demand.most_gpus.values().copied().collect();
        let (cpu_micro, mem_bytes, least_gpus) = true_demand(profile, &sweep);
        assert_eq!((demand.cpu_micro, demand.mem_bytes), (cpu_micro, mem_bytes), "{name}");
        // A step that is flat by less than the noise may be taken for growth.
        let noisy = Sweep { flat: sweep.flat - NOISE, ..sweep };
        let most_gpus = true_demand(profile, &noisy).2;
        for (gpus, bounds) in gpus.iter().zip(least_gpus.iter().zip(&most_gpus)) {
            assert!([bounds.0, bounds.1].contains(&gpus), "{name}: {gpus} GPUs instead of {bounds:?}");
        }
        assert_eq!(gpus.len(), least_gpus.len(), "{name}");
        n_models += 1;
    }
    assert!(n_models >= 60, "{n_models} models");
}

/// The shipped demands are the originals' own numbers. Where the knee is elsewhere, here is where.
#[test]
fn the_knee_is_the_shipped_demand_but_for_two_models() {
    let mut differing = Vec::new();
    for (name, entry) in every_model().filter(|(_, entry)| entry.profile.host.is_some()) {
        let sweep = sweep(grid(&entry.profile));
        let demand = Fit::new(&sweep, &measure(&entry.profile, &sweep)).expect("measured").demand();
        let stated = entry.profile.demand_per_gpu;
        // 20 GB is stated where the least level is 20.83.
        let least_mem = sweep.grid.mem_bytes()[0];
        let same_mem = demand.mem_bytes == stated.mem_bytes.max(least_mem);
        if demand.cpu_micro != stated.cpu_micro || !same_mem {
            differing.push(format!(
                "{name}: {} CPUs, stated {}",
                demand.cpu_micro / 1_000_000,
                stated.cpus()
            ));
        }
    }
    assert_eq!(
        differing,
        ["synergy-cpu6 alexnet: 12 CPUs, stated 24", "synergy-cpu6 shufflenet: 12 CPUs, stated 24"]
    );
}

#[test]
fn a_level_at_which_the_command_fails_is_left_out_and_the_rest_is_kept() {
    let set = load("synergy").expect("built in");
    let profile = set.get("res18").expect("there");
    let sweep = sweep(grid(profile));
    let mut noise = ChaCha8Rng::seed_from_u64(1);
    let mut findings = Findings::default();
    while let Some(next) = sweep.next(&findings) {
        let mut run = run_of(profile, next.point, next.is_warm_up, &mut noise);
        if next.point.mem_bytes < 60_000_000_000 {
            run.iteration_s.clear();
            run.failure = Some("out of memory".to_owned());
        }
        findings.add(run);
    }
    let fit = Fit::new(&sweep, &findings).expect("measured");
    assert_eq!(fit.mem_levels().count(), sweep.grid.mem_bytes().len() - 1);
    assert_eq!(fit.demand().mem_bytes, 62_500_000_000);
    let curve = fit.profile("m", "").expect("a profile").host.expect("a grid");
    assert_eq!(curve.mem_gb()[0], 62.5);
}

#[test]
fn a_command_that_never_runs_ends_the_sweep_at_once() {
    let set = load("synergy").expect("built in");
    let sweep = sweep(grid(set.get("res18").expect("there")));
    let mut findings = Findings::default();
    while let Some(next) = sweep.next(&findings) {
        let failure = Some("it failed with code 1".to_owned());
        findings.add(Run {
            point: next.point,
            iteration_s: Vec::new(),
            wall_s: 1.0,
            failure,
            is_warm_up: next.is_warm_up,
        });
    }
    assert_eq!(findings.runs().len(), 2, "the warm-up and the first point");
    assert!(Fit::new(&sweep, &findings).is_none());
}

#[test]
fn unsure_points_are_run_again_until_they_are_sure_or_often_enough() {
    let set = load("synergy").expect("built in");
    let profile = set.get("gnmt").expect("there");
    let sweep = Sweep { warms_up: false, ..sweep(grid(profile)) };
    let mut findings = Findings::default();
    let mut n_runs = 0;
    while let Some(next) = sweep.next(&findings) {
        n_runs += 1;
        let seconds = 1.0 / true_rate(profile, &next.point);
        // One in two is twice as slow: never sure.
        let iteration_s = vec![seconds, 2.0 * seconds];
        findings.add(Run { point: next.point, iteration_s, wall_s: 1.0, failure: None, is_warm_up: false });
        assert!(n_runs < 200);
    }
    assert!(findings.points().all(|point| findings.n_runs(&point) == sweep.most_runs_of_a_point));
}
