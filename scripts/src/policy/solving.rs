//! The solver of a policy's models: HiGHS in this process, unless [`ScriptPolicy::use_solver`] sets another.
//!
//! A solve in this process cannot be killed. It ends by its limits of nodes, gap and time, which HiGHS checks itself. `rota
//! solve` runs models in a child process that is killed when it overruns; the live head runs whole policies so, and is told
//! where a script calls the solver ([`ScriptPolicy::announce_solves`]).

use std::fmt;
use std::ops::{Deref, DerefMut};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
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

/// Is told where a solver is called, and nothing (an empty text) when it has answered.
type Announce = Arc<dyn Fn(&str) + Send + Sync>;

/// The solver of one engine.
pub(crate) struct Solving {
    solver: Mutex<Box<dyn Solver + Send>>,
    announce: Mutex<Option<Announce>>,
}

impl Default for Solving {
    fn default() -> Self {
        Solving { solver: Mutex::new(Box::new(Highs)), announce: Mutex::new(None) }
    }
}

impl Solving {
    /// Held only while a model is solved; no script runs then. `place` says where it was called.
    pub(crate) fn solver(&self, place: &str) -> Called<'_> {
        self.announce(place);
        Called { solver: self.lock(), solving: self }
    }

    fn lock(&self) -> MutexGuard<'_, Box<dyn Solver + Send>> {
        self.solver.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Tells the same as another about its calls.
    pub(crate) fn announce_like(&self, other: &Solving) {
        let announce = other.announce.lock().unwrap_or_else(PoisonError::into_inner).clone();
        *self.announce.lock().unwrap_or_else(PoisonError::into_inner) = announce;
    }

    fn announce(&self, place: &str) {
        if let Some(announce) = &*self.announce.lock().unwrap_or_else(PoisonError::into_inner) {
            announce(place);
        }
    }
}

/// A solver that was called.
pub(crate) struct Called<'s> {
    solver: MutexGuard<'s, Box<dyn Solver + Send>>,
    solving: &'s Solving,
}

impl Deref for Called<'_> {
    type Target = Box<dyn Solver + Send>;

    fn deref(&self) -> &Self::Target {
        &self.solver
    }
}

impl DerefMut for Called<'_> {
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut self.solver
    }
}

impl Drop for Called<'_> {
    fn drop(&mut self) {
        self.solving.announce("");
    }
}

/// The solver for native code that lets scripts run between its solves: it is held for one solve at a time.
pub(crate) struct OneByOne<'a>(pub(crate) &'a Solving);

impl Solver for OneByOne<'_> {
    fn solve(&mut self, model: &Model, limits: &Limits, start: Start<'_>) -> Solution {
        self.0.solver("the solver of a native model").solve(model, limits, start)
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
        *self.shared.solving.lock() = solver;
    }

    /// Tells `announce` where a script calls a solver, with file and line where they are known, and an empty text when
    /// the solver has answered.
    pub fn announce_solves(&mut self, announce: impl Fn(&str) + Send + Sync + 'static) {
        *self.shared.solving.announce.lock().unwrap_or_else(PoisonError::into_inner) =
            Some(Arc::new(announce));
    }
}
