//! Speed and memory of the simulator, printed as tables. Run with `cargo bench --bench speed`.

mod twin;

use std::sync::Arc;
use std::time::Instant;

use rota_core::cluster::Cluster;
use rota_core::policy::Policy;
use rota_core::simulation::{Settings, simulate};
use rota_core::workload::Workload;
use twin::{Key, Share, Twin};

fn cluster(nodes: u32) -> Arc<Cluster> {
    let text = format!("[CLUSTER]\nracks=1\nservers_per_rack={nodes}\ngpus_per_server=8\ncpus_per_server=24\ndram_per_server=500\nsspeed_per_server=500\n");
    Arc::new(rota_traces::cluster::read(&rota_traces::source::Source::new("bench.ini", text)).expect("a cluster"))
}

fn philly(cluster: &Cluster) -> Workload {
    let shared = std::env::var("ROTA_SHARED").unwrap_or("../shared".into());
    let path = std::path::Path::new(&shared).join("traces/philly-pollux/philly.csv");
    let source = rota_traces::source::Source::open(&path).expect("philly.csv");
    let profiles = rota_traces::profile::load("synergy").expect("profiles");
    let setting = rota_traces::format::Setting::new(cluster, &profiles);
    rota_traces::format::read(&source, None, &setting).expect("a trace").workload
}

fn main() {
    for nodes in [64, 128] {
        let cluster = cluster(nodes);
        let t = Instant::now();
        let workload = Arc::new(philly(&cluster));
        println!("read in {:?}", t.elapsed());
        for (key, share) in [(Key::Remaining, Share::Tune), (Key::Attained, Share::Tune), (Key::Arrival, Share::Fair)] {
            let mut policy = Twin::new(key, share);
            let settings = Settings::default();
            let t = Instant::now();
            let ledger = simulate(Arc::clone(&cluster), Arc::clone(&workload), Vec::new(), &mut policy as &mut dyn Policy, &settings, &mut |_| {}).expect("runs");
            let s = t.elapsed().as_secs_f64();
            let q: f64 = ledger.samples.iter().map(|s| f64::from(s.waiting)).sum::<f64>() / ledger.samples.len() as f64;
            let r: f64 = ledger.samples.iter().map(|s| f64::from(s.running)).sum::<f64>() / ledger.samples.len() as f64;
            let c: f64 = ledger.samples.iter().map(|s| f64::from(s.commands)).sum::<f64>();
            println!("{nodes} {key:?} {share:?}: {s:.2}s {:.0} jobs/s, {} decisions, {} skipped, queue {q:.0}, running {r:.0}, commands {c} {}", workload.jobs.len() as f64 / s, ledger.n_decisions, ledger.n_skipped, ledger.digest);
        }
    }
}
