//! Who goes first: the seam between the driver and the scripts of `scripts/artifact/synergy`.

use rota_core::policy::PolicyError;
use rota_core::snapshot::Snapshot;
use rota_core::table::Field;

use super::scheme::OrderName;

/// Puts all jobs of an instant in an order.
pub trait Order {
    /// The rows of all jobs, most important first.
    fn order(&mut self, snapshot: &Snapshot) -> Result<Vec<u32>, PolicyError>;
}

/// temporary
pub struct ScriptedOrder {
    name: OrderName,
}

impl ScriptedOrder {
    /// temporary
    pub fn new(name: OrderName) -> Result<Self, PolicyError> {
        Ok(ScriptedOrder { name })
    }
}

impl Order for ScriptedOrder {
    fn order(&mut self, snapshot: &Snapshot) -> Result<Vec<u32>, PolicyError> {
        let jobs = &snapshot.jobs;
        let col = |f, r: u32| jobs.column(f)[r as usize];
        let total = snapshot.cluster.host_total();
        let now = snapshot.now.as_secs_f64();
        let g = |r| col(Field::Gpus, r) / f64::from(snapshot.cluster.n_gpus());
        let c = |r| col(Field::CpuDemand, r) / total.cpus();
        let m = |r| col(Field::MemDemand, r) / total.mem_gb();
        let rem = |r| col(Field::Remaining, r);
        let key = |r: u32| match self.name {
            OrderName::Fifo => col(Field::Arrival, r),
            OrderName::Srtf => rem(r),
            OrderName::Las => col(Field::Attained, r) * col(Field::Gpus, r),
            OrderName::Ftf => (now - col(Field::Arrival, r) + rem(r)) / col(Field::Duration, r),
            OrderName::Drf => g(r).max(c(r)).max(m(r)),
            OrderName::Tetris => g(r) * rem(r) + c(r) * rem(r) + m(r) * rem(r),
        };
        let mut rows: Vec<(f64, f64, f64, f64, u32)> = (0..jobs.len() as u32)
            .map(|r| {
                let p = if self.name == OrderName::Fifo { 0.0 } else { -col(Field::Priority, r) };
                (p, key(r), col(Field::Arrival, r), col(Field::LastRank, r), r)
            })
            .collect();
        rows.sort_by(|a, b| a.partial_cmp(b).expect("numbers"));
        Ok(rows.into_iter().map(|r| r.4).collect())
    }
}
