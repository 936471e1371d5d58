//! The solver of a policy's models: HiGHS in this process, unless [`ScriptPolicy::use_solver`] sets another.
//!
//! A solve in this process cannot be killed. It ends by its limits of nodes, gap and time, which HiGHS checks itself; a
//! solve that does not check them holds up the thread that decides. Only `rota solve` runs models in a child process
//! that is killed when it overruns.

use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rota_solvers::{Highs, Limits, Model, Solution, Solver, Start};

use crate::language::limits::Meter;
use crate::policy::ScriptPolicy;

/// Without an alarm a solve is meant to end by nodes and gap, because these give the same answer on every machine; this
/// time limit is for a solve that reaches neither.
const NO_ALARM: Duration = Duration::from_secs(3600);

/// Limits of a solve under the limits of its script.
pub(crate) fn limits(meter: &Meter, gap: f64, nodes: u64) -> Limits {
    Limits { gap, nodes, wall: meter.limits().alarm.unwrap_or(NO_ALARM), ..Limits::default() }
}

/// The solver of one engine.
pub(crate) struct Solving(Mutex<Box<dyn Solver + Send>>);

impl Default for Solving {
    fn default() -> Self {
        Solving(Mutex::new(Box::new(Highs)))
    }
}

impl Solving {
    /// Held only while a model is solved; no script runs then.
    pub(crate) fn solver(&self) -> MutexGuard<'_, Box<dyn Solver + Send>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The solver for native code that lets scripts run between its solves: it is held for one solve at a time.
pub(crate) struct OneByOne<'a>(pub(crate) &'a Solving);

impl Solver for OneByOne<'_> {
    fn solve(&mut self, model: &Model, limits: &Limits, start: Start<'_>) -> Solution {
        self.0.solver().solve(model, limits, start)
    }
}

impl fmt::Debug for Solving {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Solving")
    }
}

impl ScriptPolicy {
    /// Lets another solver answer the models of this policy from now on.
    pub fn use_solver(&mut self, solver: Box<dyn Solver + Send>) {
        *self.shared.solving.solver() = solver;
    }
}
