//! A submission of one job and its answer: over QUIC as users of Rota make it, and over gRPC (tonic) with the same
//! content, the same certificates and TLS on both sides. Prints the table of docs/benchmarks.md.
//!
//! Transport alone: either server answers at once, nothing is decided or written down. Both sides of both are in this
//! process, in turn, so that whatever else the machine does meets both alike.

mod over_grpc;
mod over_quic;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use rota_transport::identity::{Authority, Identity, Role, Validity};
use rota_transport::value::Name;

/// Connections at once, and requests on each of them.
const SIZES: [(usize, usize); 2] = [(1, 2_000), (100, 100)];
const N_RUNS: usize = 3;

type Failure = Box<dyn std::error::Error + Send + Sync>;

/// Times of requests, and of all of them together.
struct Run {
    times_us: Vec<f64>,
    whole: Duration,
}

/// Certificates for a server and its clients.
struct Folders {
    head: PathBuf,
    user: PathBuf,
}

#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
async fn main() -> Result<(), Failure> {
    let folder = tempfile::tempdir()?;
    let folders = issue(folder.path())?;
    let quic = over_quic::serve(&folders).await?;
    let grpc = over_grpc::serve(&folders).await?;
    println!("\n**One request compared with gRPC**: a submission of one job and its answer, transport alone, TLS with certificates on");
    println!("both sides, server and clients in one process, median of {N_RUNS} runs in turn.\n");
    println!("| connections | | p50 µs | p99 µs | requests/s |\n|---|---|---|---|---|");
    for (n_connections, n_requests) in SIZES {
        let (mut ours, mut theirs) = (Vec::new(), Vec::new());
        for _ in 0..N_RUNS {
            ours.push(over_quic::run(&folders, quic, n_connections, n_requests).await?);
            theirs.push(over_grpc::run(&folders, grpc, n_connections, n_requests).await?);
        }
        let (ours, theirs) = (Figures::of(&mut ours), Figures::of(&mut theirs));
        ours.print(n_connections, "Rota (QUIC, a stream for each)");
        theirs.print(n_connections, "gRPC (tonic, unary)");
        let (p50, p99, rate) = (ours.p50 / theirs.p50, ours.p99 / theirs.p99, ours.rate / theirs.rate);
        println!("| {n_connections} | *ratio* | {p50:.2} | {p99:.2} | {rate:.2} |");
    }
    Ok(())
}

/// Lets every client make its requests one after another, all clients at once.
async fn together<C, F>(clients: Vec<C>, n_requests: usize, ask: impl Fn(Arc<C>) -> F) -> Result<Run, Failure>
where
    C: Send + Sync + 'static,
    F: Future<Output = Result<(), Failure>> + Send + 'static,
{
    let begun = Instant::now();
    let mut tasks = Vec::new();
    for client in clients.into_iter().map(Arc::new) {
        let asks: Vec<_> = (0..n_requests).map(|_| ask(client.clone())).collect();
        tasks.push(tokio::spawn(async move {
            let mut times_us = Vec::with_capacity(asks.len());
            for ask in asks {
                let sent = Instant::now();
                ask.await?;
                times_us.push(sent.elapsed().as_secs_f64() * 1e6);
            }
            Ok::<_, Failure>(times_us)
        }));
    }
    let mut times_us = Vec::new();
    for task in tasks {
        times_us.extend(task.await??);
    }
    Ok(Run { times_us, whole: begun.elapsed() })
}

struct Figures {
    p50: f64,
    p99: f64,
    rate: f64,
}

impl Figures {
    /// The median over runs of each figure.
    fn of(runs: &mut [Run]) -> Self {
        let mut of_each = |figure: &dyn Fn(&mut Run) -> f64| {
            let mut figures: Vec<_> = runs.iter_mut().map(figure).collect();
            figures.sort_unstable_by(f64::total_cmp);
            figures[figures.len() / 2]
        };
        let quantile = |run: &mut Run, q: f64| {
            run.times_us.sort_unstable_by(f64::total_cmp);
            run.times_us[((run.times_us.len() - 1) as f64 * q) as usize]
        };
        Figures {
            p50: of_each(&|run| quantile(run, 0.5)),
            p99: of_each(&|run| quantile(run, 0.99)),
            rate: of_each(&|run| run.times_us.len() as f64 / run.whole.as_secs_f64()),
        }
    }

    fn print(&self, n_connections: usize, name: &str) {
        println!("| {n_connections} | {name} | {:.0} | {:.0} | {:.0} |", self.p50, self.p99, self.rate);
    }
}

fn issue(folder: &Path) -> Result<Folders, Failure> {
    let authority = Authority::create(folder, Validity::days(1))?;
    let issued = |role, name| -> Result<PathBuf, Failure> {
        Ok(authority.issue(&Identity { role, name: Name::new(name)? }, Validity::days(1))?.folder)
    };
    Ok(Folders { head: issued(Role::Head, "head")?, user: issued(Role::User, "ada")? })
}
