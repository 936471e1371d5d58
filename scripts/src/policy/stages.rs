//! The stages of one decision, in order, each by the part that defines it or by its default.

use std::sync::Arc;

use rhai::{CallFnOptions, Dynamic, FuncArgs, Scope};
use rota_core::plan::{Plan, Verdict, Wake};
use rota_core::table::JobPhase;

use crate::language::error::{Explainer, ScriptError, at};
use crate::language::session::Session;
use crate::policy::ScriptPolicy;
use crate::policy::part::Stage;
use crate::values::rank;
use crate::values::{
    FillValue, JobValue, Jobs, Placement, PlanValue, Queue, Rows, VerdictValue, VerdictsValue, View,
    gang_and_nodes, type_label,
};

impl ScriptPolicy {
    fn part_of(&self, stage: Stage) -> Option<usize> {
        self.parts.iter().position(|part| part.stages.contains(&stage))
    }

    /// All stages of one decision.
    pub(crate) fn stages_of(&mut self, session: &Arc<Session>) -> Result<Plan, ScriptError> {
        let begun = session.shared.begin_stage();
        let verdicts = self.admission(session)?;
        if let Some(part) = self.part_of(Stage::Admit) {
            self.close_stage(session, begun, Stage::Admit, Some(part));
        }
        let mut value = match self.part_of(Stage::Decide) {
            Some(part) => self.planned(session, part, Stage::Decide)?,
            None => {
                let begun = session.shared.begin_stage();
                let queue = self.order(session)?;
                session.shared.note_queue(&queue.rows);
                self.close_stage(session, begun, Stage::Order, self.part_of(Stage::Order));
                let begun = session.shared.begin_stage();
                session.stage().queue = Some(queue.rows.clone());
                session.stage().placement = self.placement(session)?;
                if let Some(part) = self.part_of(Stage::Place) {
                    self.close_stage(session, begun, Stage::Place, Some(part));
                }
                match self.part_of(Stage::Allocate) {
                    Some(part) => self.planned(session, part, Stage::Allocate)?,
                    None => {
                        let begun = session.shared.begin_stage();
                        let walked = FillValue::new(queue).fair_share().run(&self.engine);
                        self.close_stage(session, begun, Stage::Allocate, None);
                        walked.map_err(|e| self.explain(*e, 0, Stage::Allocate))?
                    }
                }
            }
        };
        merge_verdicts(&mut value, verdicts);
        let has_wake = value.has_wake;
        let mut plan = value.plan;
        if !has_wake && self.is_steady() {
            // Where running jobs stay as they are, time alone lets none of them be moved.
            plan.wake = if self.keeps_running() { Wake::OnChange } else { session.snapshot.steady_wake() };
        }
        Ok(plan)
    }

    /// Verdicts on the jobs that ask for admission. Without a script for it all are admitted, at no cost.
    fn admission(&mut self, session: &Arc<Session>) -> Result<Vec<(u32, VerdictValue)>, ScriptError> {
        if session.snapshot.jobs.n_asking() == 0 {
            return Ok(Vec::new());
        }
        let asking = session.rows_in(JobPhase::Asking);
        let Some(part) = self.part_of(Stage::Admit) else {
            return Ok(asking.into_iter().map(|row| (row, VerdictValue::Accept)).collect());
        };
        let jobs = &session.snapshot.jobs;
        let mut admitted: Vec<u32> = session.rows_by_id().to_vec();
        admitted.retain(|row| jobs.phase(*row as usize) != JobPhase::Asking);
        session.stage().admitted = Rows::Some(Arc::new(admitted.clone()));
        let mut verdicts = Vec::with_capacity(asking.len());
        let mut in_bulk: Option<VerdictsValue> = None;
        for row in asking {
            let verdict = match &in_bulk {
                Some(all) => all.of(row),
                None => {
                    session.stage().asked = Some(row);
                    let args = (JobValue::new(session, row), View(Arc::clone(session)));
                    let value = self.call(part, Stage::Admit, args)?;
                    in_bulk = value.clone().try_cast::<VerdictsValue>();
                    let one =
                        in_bulk.as_ref().map_or_else(|| value.clone().try_cast(), |all| Some(all.of(row)));
                    let expected = "accept(), decline(\"why\") or wait()";
                    one.ok_or_else(|| self.wrong_type(part, Stage::Admit, expected, &value))?
                }
            };
            if verdict == VerdictValue::Accept {
                let place = admitted.partition_point(|r| jobs.id(*r as usize) < jobs.id(row as usize));
                admitted.insert(place, row);
                if in_bulk.is_none() {
                    session.stage().admitted = Rows::Some(Arc::new(admitted.clone()));
                }
            }
            verdicts.push((row, verdict));
        }
        session.stage().asked = None;
        session.stage().admitted = Rows::Some(Arc::new(admitted.clone()));
        if admitted.len() == jobs.len() {
            session.stage().admitted = Rows::All;
        }
        Ok(verdicts)
    }

    fn order(&mut self, session: &Arc<Session>) -> Result<Queue, ScriptError> {
        let jobs: Jobs = View(Arc::clone(session)).jobs();
        match self.part_of(Stage::Order) {
            None => Ok(rank::by_default(&self.shared, &jobs)),
            Some(part) => {
                let now = session.snapshot.now.as_secs_f64();
                let value = self.call(part, Stage::Order, (jobs, now))?;
                if !Queue::can_be(&value) {
                    return Err(self.wrong_type(
                        part,
                        Stage::Order,
                        "a Queue (what `rank` returns) or an array of jobs",
                        &value,
                    ));
                }
                Queue::from_value(session, value).map_err(|error| self.returned(*error, part, Stage::Order))
            }
        }
    }

    fn placement(&mut self, session: &Arc<Session>) -> Result<Placement, ScriptError> {
        let Some(part) = self.part_of(Stage::Place) else { return Ok(Placement::FirstFit) };
        if let Some(placement) = &self.lasting_placement {
            return Ok(placement.clone());
        }
        let by_nodes = self.parts[part].places_by_nodes();
        let value = match by_nodes {
            true => self.call_without_memory(part, Stage::Place, gang_and_nodes())?,
            false => self.call(part, Stage::Place, (View(Arc::clone(session)),))?,
        };
        let expected =
            if by_nodes { "a Placement, such as rank(nodes.id)" } else { "a Placement, such as first_fit()" };
        let placement = value
            .clone()
            .try_cast::<Placement>()
            .ok_or_else(|| self.wrong_type(part, Stage::Place, expected, &value))?;
        if by_nodes && placement.is_lasting() {
            self.lasting_placement = Some(placement.clone());
        }
        Ok(placement)
    }

    /// Calls a stage that ends in a plan, or in a walk that makes one.
    fn planned(
        &mut self,
        session: &Arc<Session>,
        part: usize,
        stage: Stage,
    ) -> Result<PlanValue, ScriptError> {
        let begun = session.shared.begin_stage();
        let value = self.call(part, stage, (View(Arc::clone(session)),))?;
        if let Some(fill) = value.read_lock::<FillValue>() {
            let walked = fill.run(&self.engine);
            self.close_stage(session, begun, stage, Some(part));
            return walked.map_err(|error| self.explain(*error, part, stage));
        }
        self.close_stage(session, begun, stage, Some(part));
        match value.clone().try_cast::<PlanValue>() {
            Some(plan) => Ok(plan),
            None => Err(self.wrong_type(part, stage, "a Fill (from `view.fill`) or a Plan", &value)),
        }
    }

    fn call(&mut self, part: usize, stage: Stage, args: impl FuncArgs) -> Result<Dynamic, ScriptError> {
        self.shared.call_state().part = part;
        let script = &self.parts[part];
        let memory = &mut self.memories[part];
        let options = CallFnOptions::new().eval_ast(script.has_constants).bind_this_ptr(memory.value());
        let result: Result<Dynamic, _> =
            self.engine.call_fn_with_options(options, &mut Scope::new(), &script.script, stage.name(), args);
        let checked = memory.check(self.shared.meter.limits().memory_text_bytes);
        let value = result.map_err(|error| self.explain(*error, part, stage))?;
        match checked {
            Ok(()) => Ok(value),
            Err(error) => {
                Err(at(script, script.position_of(stage), error.to_string(), None, Some(stage.name())))
            }
        }
    }

    /// Calls a stage that is asked once: it has nothing to remember.
    fn call_without_memory(
        &mut self,
        part: usize,
        stage: Stage,
        args: impl FuncArgs,
    ) -> Result<Dynamic, ScriptError> {
        self.shared.call_state().part = part;
        let script = &self.parts[part];
        let options = CallFnOptions::new().eval_ast(script.has_constants);
        let result =
            self.engine.call_fn_with_options(options, &mut Scope::new(), &script.script, stage.name(), args);
        result.map_err(|error| self.explain(*error, part, stage))
    }

    fn explain(&self, error: rhai::EvalAltResult, part: usize, stage: Stage) -> ScriptError {
        let explainer = Explainer { parts: &self.parts, entries: &self.entries, meter: &self.shared.meter };
        explainer.explain(error, &self.parts[part], Some(stage.name()))
    }

    /// An error about what a stage returned: it points at the stage's function.
    fn returned(&self, error: rhai::EvalAltResult, part: usize, stage: Stage) -> ScriptError {
        let mut explained = self.explain(error, part, stage);
        if explained.position.is_none() {
            let part = &self.parts[part];
            explained = at(part, part.position_of(stage), explained.message, explained.hint, explained.stage);
        }
        explained
    }

    fn wrong_type(&self, part: usize, stage: Stage, expected: &str, value: &Dynamic) -> ScriptError {
        let part = &self.parts[part];
        let message = format!("`{}` must return {expected}, got {}", stage.name(), type_label(value));
        let hint = value.is_unit().then(|| "end the function with the value it returns".to_owned());
        at(part, part.position_of(stage), message, hint, Some(stage.name()))
    }
}

/// Adds the admission stage's verdicts, except for jobs that the plan itself decides on.
fn merge_verdicts(value: &mut PlanValue, verdicts: Vec<(u32, VerdictValue)>) {
    for (row, verdict) in verdicts {
        let id = value.session().snapshot.jobs.id(row as usize);
        let is_settled = value.wait.contains(&id) || value.plan.verdicts.iter().any(|(job, _)| *job == id);
        match verdict {
            _ if is_settled => {}
            VerdictValue::Accept => value.plan.verdicts.push((id, Verdict::Admit)),
            VerdictValue::Decline(reason) => value.plan.verdicts.push((id, Verdict::Decline(reason))),
            VerdictValue::Wait => {}
        }
    }
}
