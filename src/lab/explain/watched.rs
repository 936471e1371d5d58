//! A policy whose decisions are watched while a run is simulated again.

use std::cell::Cell;
use std::ops::ControlFlow;

use rota_core::guards;
use rota_core::plan::Plan;
use rota_core::policy::{Policy, PolicyError};
use rota_core::snapshot::Snapshot;

/// Shows every decision of a policy to somebody, until they have seen enough.
pub struct Watched<'a> {
    inner: &'a mut dyn Policy,
    watch: &'a mut dyn FnMut(&Snapshot, &Plan) -> ControlFlow<()>,
    has_seen_enough: &'a Cell<bool>,
}

impl<'a> Watched<'a> {
    /// Watches a policy; the cell is set when enough was seen, so that the run can be ended.
    pub fn new(
        inner: &'a mut dyn Policy,
        watch: &'a mut dyn FnMut(&Snapshot, &Plan) -> ControlFlow<()>,
        has_seen_enough: &'a Cell<bool>,
    ) -> Self {
        Watched { inner, watch, has_seen_enough }
    }
}

impl Policy for Watched<'_> {
    fn decide(&mut self, snapshot: &Snapshot) -> Result<Plan, PolicyError> {
        let plan = self.inner.decide(snapshot)?;
        if !self.has_seen_enough.get() {
            // What is watched is what the cluster is given, after the guards.
            let mut mended = plan.clone();
            guards::mend(snapshot, &mut mended);
            self.has_seen_enough.set((self.watch)(snapshot, &mended).is_break());
        }
        Ok(plan)
    }

    fn memory(&self) -> String {
        self.inner.memory()
    }
}
