//! Models that native verbs ask for: stages that are called in the middle of another part's stage.

use std::sync::Arc;

use rhai::{AST, CallFnOptions, Dynamic, Engine, EvalAltResult, Position, Scope};

use crate::language::session::{CallState, Outcome, Shared};
use crate::policy::part::{Part, Stage};

/// A stage that a verb asks for, and the part that defines it.
#[derive(Clone, Debug)]
pub(crate) struct AskedModel {
    stage: Stage,
    /// The part, by position.
    part: usize,
    script: Arc<AST>,
    file: String,
    has_constants: bool,
}

impl CallState {
    /// Keeps the models of the part that was compiled last.
    pub(crate) fn learn_models(&mut self, part: &Part) {
        let models = part.stages.iter().filter(|stage| stage.asked_by().is_some());
        let model = |stage: &Stage| AskedModel {
            stage: *stage,
            part: self.scripts.len() - 1,
            script: Arc::clone(&part.script),
            file: part.file.clone(),
            has_constants: part.has_constants,
        };
        let models: Vec<AskedModel> = models.map(model).collect();
        self.models.extend(models);
    }
}

impl Shared {
    /// The part that defines a model, if one does.
    pub(crate) fn model(&self, stage: Stage) -> Option<AskedModel> {
        self.call_state().models.iter().find(|model| model.stage == stage).cloned()
    }

    /// What a model answers to a problem. It runs as a stage of its own part, with that part's parameters.
    pub(crate) fn ask(&self, engine: &Engine, model: &AskedModel, problem: Dynamic) -> Outcome<Dynamic> {
        let _nested = self.meter.enter()?;
        let asking = std::mem::replace(&mut self.call_state().part, model.part);
        let begun = self.begin_stage();
        let options = CallFnOptions::new().eval_ast(model.has_constants);
        let name = model.stage.name();
        let answer = engine.call_fn_with_options(options, &mut Scope::new(), &model.script, name, (problem,));
        self.call_state().part = asking;
        self.end_stage(begun, model.stage, Some(&model.file), true);
        answer.map_err(|error| model.blame(error))
    }
}

impl AskedModel {
    /// The file it is written in.
    pub(crate) fn file(&self) -> &str {
        &self.file
    }

    /// An error with the file of the model, which Rhai loses when the host calls.
    pub(crate) fn blame(&self, error: Box<EvalAltResult>) -> Box<EvalAltResult> {
        if error.is_system_exception() {
            return error;
        }
        let (name, file) = (self.stage.name().to_owned(), self.file.clone());
        Box::new(EvalAltResult::ErrorInFunctionCall(name, file, error, Position::NONE))
    }
}
