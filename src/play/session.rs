//! What requests share: the files, the results kept for the next key press, and the one run that is under way.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rayon::prelude::*;
use rota_lab::results::{RunResult, Summary};
use rota_scripts::{LoadError, ScriptPolicy, Source};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::bench::{Bench, Choices, Prepared, Upload};
use crate::diagnose::{self, Diagnostic};
use crate::kept::Kept;
use crate::parts::Files;
use crate::refusal::{Refusal, Unresolved};
use crate::run::{Failure, run};
use crate::{PlayError, answer};

/// Inputs, whole results and figures of further seeds that are kept.
const MAX_PREPARED: usize = 48;
const MAX_RESULTS: usize = 24;
const MAX_SUMMARIES: usize = 4_000;
/// Limits on what the page can ask for.
const MAX_SEEDS: u64 = 100;
const MAX_AGAINST: usize = 8;
const MAX_UPLOADS: usize = 20;
/// Seeds that are run at a time after the first.
const SEEDS_AT_A_TIME: usize = 2;

/// What requests share.
pub(crate) struct Session {
    pub(crate) policy: String,
    pub(crate) against: Vec<String>,
    pub(crate) files: Files,
    pub(crate) bench: Box<dyn Bench>,
    prepared: Kept<Prepared>,
    results: Kept<RunResult>,
    summaries: Kept<Summary>,
    /// Set to cancel the run under way.
    under_way: Mutex<Arc<AtomicBool>>,
    /// Held while a run is under way: a new one waits until the stale one has seen that it is cancelled.
    running: Mutex<()>,
    shown: Mutex<Option<Arc<Shown>>>,
    uploads: Mutex<Vec<Upload>>,
    folder: tempfile::TempDir,
    n_shown: AtomicU64,
}

/// What the page asks to run.
#[derive(Clone, Debug, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Question {
    /// The policy in the editor, by its name.
    pub(crate) policy: String,
    /// The texts of its parts.
    pub(crate) texts: Vec<String>,
    /// Its parameters: `part.name` and value.
    #[serde(default)]
    pub(crate) set: Vec<(String, String)>,
    /// What it is compared with.
    pub(crate) against: Vec<String>,
    #[serde(default)]
    pub(crate) choices: Choices,
    /// Seeds in all.
    pub(crate) n_seeds: u64,
}

/// One policy of an answer.
pub(crate) struct Contender {
    pub(crate) label: String,
    pub(crate) name: String,
    pub(crate) sources: Vec<Source>,
    pub(crate) set: Vec<(String, String)>,
}

/// The answer that the page shows, for questions about it.
pub(crate) struct Shown {
    pub(crate) id: u64,
    pub(crate) question: Question,
    pub(crate) prepared: Arc<Prepared>,
    pub(crate) contenders: Vec<Contender>,
    pub(crate) results: Vec<Arc<RunResult>>,
}

/// Why a question was not answered to its end.
enum Stopped {
    Cancelled,
    Said,
}

impl Session {
    /// A session with a policy in the editor.
    pub(crate) fn open(
        policy: String,
        against: Vec<String>,
        bench: Box<dyn Bench>,
    ) -> Result<Arc<Self>, PlayError> {
        let names = std::iter::once(policy.as_str()).chain(against.iter().map(String::as_str));
        Ok(Arc::new(Session {
            files: Files::named_in(names)?,
            policy,
            against,
            bench,
            prepared: Kept::new(MAX_PREPARED),
            results: Kept::new(MAX_RESULTS),
            summaries: Kept::new(MAX_SUMMARIES),
            under_way: Mutex::default(),
            running: Mutex::default(),
            shown: Mutex::default(),
            uploads: Mutex::default(),
            folder: tempfile::tempdir().map_err(PlayError::Serve)?,
            n_shown: AtomicU64::new(0),
        }))
    }

    /// Cancels what is under way; what cancels the run that comes now.
    pub(crate) fn begin(&self) -> Arc<AtomicBool> {
        let mine = Arc::new(AtomicBool::new(false));
        let stale = std::mem::replace(&mut *lock(&self.under_way), Arc::clone(&mine));
        stale.store(true, Relaxed);
        mine
    }

    /// Answers a question line by line, until it is answered or cancelled.
    pub(crate) fn answer(&self, question: Question, is_cancelled: &AtomicBool, say: &dyn Fn(Value)) {
        let _running = lock(&self.running);
        match self.answer_all(question, is_cancelled, say) {
            Ok(()) | Err(Stopped::Said) => say(json!({ "kind": "done" })),
            Err(Stopped::Cancelled) => {}
        }
    }

    fn answer_all(
        &self,
        question: Question,
        is_cancelled: &AtomicBool,
        say: &dyn Fn(Value),
    ) -> Result<(), Stopped> {
        let wrong = |found: Vec<Diagnostic>| {
            say(json!({ "kind": "checked", "diagnostics": found }));
            Stopped::Said
        };
        let refused = |why: Unresolved| {
            say(json!({ "kind": "refused", "message": why.to_string() }));
            Stopped::Said
        };
        let edited = self.edited(&question).map_err(|error| wrong(vec![diagnose::of_load(error, &[])]))?;
        let mut policy = diagnose::policy(&edited.name, &edited.sources, &edited.set).map_err(wrong)?;
        say(
            json!({ "kind": "checked", "diagnostics": [], "parameters": diagnose::parameters(&policy), "label": edited.label }),
        );
        let prepared = self.prepared(&question.choices).map_err(refused)?;
        let mut contenders = vec![edited];
        for name in question.against.iter().take(MAX_AGAINST) {
            match self.files.sources(name) {
                Ok(sources) => {
                    let (label, name) = (name.clone(), name.clone());
                    contenders.push(Contender { label, name, sources, set: Vec::new() });
                }
                Err(error) => say(json!({ "kind": "remark", "message": error.to_string() })),
            }
        }
        let (own, others) = rayon::join(
            || self.ran(&contenders[0], &question.choices, &prepared, Some(&mut policy), is_cancelled),
            || -> Vec<_> {
                let others = contenders[1..].par_iter();
                others
                    .map(|other| self.ran(other, &question.choices, &prepared, None, is_cancelled))
                    .collect()
            },
        );
        let own = own.map_err(|failure| failed(failure, &contenders[0], say))?;
        let mut results = vec![own];
        let mut kept = vec![contenders.remove(0)];
        for (other, result) in contenders.into_iter().zip(others) {
            match result {
                Ok(result) => {
                    results.push(result);
                    kept.push(other);
                }
                Err(Failure::Cancelled) => return Err(Stopped::Cancelled),
                Err(failure) => {
                    say(json!({ "kind": "remark", "message": format!("{}: {failure}", other.label) }))
                }
            }
        }
        let id = self.n_shown.fetch_add(1, Relaxed) + 1;
        let runs: Vec<&RunResult> = results.iter().map(|result| &**result).collect();
        say(json!({
            "kind": "result",
            "id": id,
            "seed": prepared.seed.to_string(),
            "n_jobs": prepared.workload.jobs.len(),
            "workload": prepared.name,
            "cluster": { "name": prepared.cluster.name, "gpus": prepared.cluster.n_gpus(), "nodes": prepared.cluster.nodes().len() },
            "labels": kept.iter().map(|contender| &contender.label).collect::<Vec<_>>(),
            "n_decisions": results.iter().map(|result| result.samples.len()).collect::<Vec<_>>(),
            "table": answer::table(&runs),
            "figures": answer::figures(&runs),
        }));
        let shown = Arc::new(Shown { id, question: question.clone(), prepared, contenders: kept, results });
        *lock(&self.shown) = Some(Arc::clone(&shown));
        self.more_seeds(&question, &shown, is_cancelled, say)
    }

    /// The same with further seeds, as many as were asked for.
    fn more_seeds(
        &self,
        question: &Question,
        shown: &Shown,
        is_cancelled: &AtomicBool,
        say: &dyn Fn(Value),
    ) -> Result<(), Stopped> {
        if !shown.prepared.is_drawn || shown.contenders.len() < 2 {
            return Ok(());
        }
        let labels: Vec<String> = shown.contenders.iter().map(|contender| contender.label.clone()).collect();
        let mut of_seeds: Vec<Vec<Summary>> =
            vec![shown.results.iter().map(|result| result.summary.clone()).collect()];
        let n_seeds = question.n_seeds.clamp(1, MAX_SEEDS);
        let seeds: Vec<u64> = (1..n_seeds).map(|more| shown.prepared.seed.wrapping_add(more)).collect();
        for some in seeds.chunks(SEEDS_AT_A_TIME) {
            let one_seed = |seed: &u64| -> Result<Vec<Summary>, Failure> {
                let choices = Choices { seed: Some(*seed), ..question.choices.clone() };
                let prepared = self.prepared(&choices).map_err(|why| Failure::Other(why.to_string()))?;
                let contenders = shown.contenders.par_iter();
                contenders.map(|one| self.summary(one, &choices, &prepared, is_cancelled)).collect()
            };
            let ran: Vec<Result<Vec<Summary>, Failure>> = some.par_iter().map(one_seed).collect();
            for seed in ran {
                of_seeds.push(seed.map_err(|failure| failed(failure, &shown.contenders[0], say))?);
            }
            say(json!({
                "kind": "seeds",
                "n": of_seeds.len(),
                "of": n_seeds,
                "against": answer::comparisons(&of_seeds, &labels),
            }));
        }
        Ok(())
    }

    fn edited(&self, question: &Question) -> Result<Contender, LoadError> {
        let name = question.policy.clone();
        let original = self.files.sources(&name)?;
        let sources = self.files.edited(&name, &question.texts)?;
        let is_edited = original.iter().zip(&sources).any(|(was, is)| was.text != is.text);
        let label = if is_edited { format!("{name} (edited)") } else { name.clone() };
        Ok(Contender { label, name, sources, set: question.set.clone() })
    }

    pub(crate) fn prepared(&self, choices: &Choices) -> Result<Arc<Prepared>, Unresolved> {
        let key = json!(choices).to_string();
        match self.prepared.find(&key) {
            Some(prepared) => Ok(prepared),
            None => Ok(self.prepared.keep(key, self.bench.prepare(choices, &self.uploads())?)),
        }
    }

    /// The result of a run, from before or from now; `policy` where it is compiled already.
    fn ran(
        &self,
        contender: &Contender,
        choices: &Choices,
        prepared: &Prepared,
        policy: Option<&mut ScriptPolicy>,
        is_cancelled: &AtomicBool,
    ) -> Result<Arc<RunResult>, Failure> {
        let key = contender.key(choices);
        match self.results.find(&key) {
            Some(result) => Ok(result),
            None => Ok(self.results.keep(key, contender.run(prepared, policy, is_cancelled)?)),
        }
    }

    /// The figures of a run of another seed.
    fn summary(
        &self,
        contender: &Contender,
        choices: &Choices,
        prepared: &Prepared,
        is_cancelled: &AtomicBool,
    ) -> Result<Summary, Failure> {
        let key = contender.key(choices);
        let kept = match self.summaries.find(&key) {
            Some(summary) => summary,
            None => self.summaries.keep(key, contender.run(prepared, None, is_cancelled)?.summary),
        };
        Ok(Summary::clone(&kept))
    }

    /// The answer that the page shows, if it is this one.
    pub(crate) fn shown(&self, id: u64) -> Option<Arc<Shown>> {
        lock(&self.shown).clone().filter(|shown| shown.id == id)
    }

    /// Traces that the browser sent.
    pub(crate) fn uploads(&self) -> Vec<Upload> {
        lock(&self.uploads).clone()
    }

    /// Keeps a trace until the program ends; its number. Readers may go by how a name ends, so that part of it is kept.
    pub(crate) fn take_trace(&self, name: &str, bytes: &[u8]) -> Result<usize, Refusal> {
        let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_');
        let plain: String = name.chars().filter(|c| is_plain(*c)).take(80).collect();
        let mut uploads = lock(&self.uploads);
        let number = uploads.len();
        if number == MAX_UPLOADS {
            return Err(Refusal::TooManyTraces(MAX_UPLOADS));
        }
        let folder = self.folder.path().join(number.to_string());
        let path = folder.join(if plain.trim_matches('.').is_empty() { "trace.csv" } else { &plain });
        std::fs::create_dir_all(&folder)
            .and_then(|()| std::fs::write(&path, bytes))
            .map_err(Refusal::Trace)?;
        uploads.push(Upload { name: name.to_owned(), path });
        Ok(number)
    }

    /// Where uploaded traces are; messages need not say so.
    pub(crate) fn uploads_folder(&self) -> String {
        self.folder.path().display().to_string()
    }

    /// Forgets the trace that came last, because it cannot be read.
    pub(crate) fn drop_trace(&self, number: usize) {
        let mut uploads = lock(&self.uploads);
        if uploads.len() == number + 1 {
            uploads.pop();
        }
    }
}

impl Shown {
    /// One of its policies, with its result.
    pub(crate) fn run(&self, policy: usize) -> Result<(&Contender, &RunResult), Refusal> {
        let found = self.contenders.get(policy).zip(self.results.get(policy));
        found.map(|(one, result)| (one, &**result)).ok_or(Refusal::NoRun)
    }
}

impl Contender {
    /// The policy with its parameters set.
    pub(crate) fn compile(&self) -> Result<ScriptPolicy, Failure> {
        diagnose::policy(&self.name, &self.sources, &self.set)
            .map_err(|found| Failure::Other(json!(found).to_string()))
    }

    fn run(
        &self,
        prepared: &Prepared,
        policy: Option<&mut ScriptPolicy>,
        is_cancelled: &AtomicBool,
    ) -> Result<RunResult, Failure> {
        match policy {
            Some(policy) => run(prepared, policy, &self.label, is_cancelled),
            None => run(prepared, &mut self.compile()?, &self.label, is_cancelled),
        }
    }

    /// Everything that its result depends on.
    fn key(&self, choices: &Choices) -> String {
        let mut hash = Sha256::new();
        let texts = self.sources.iter().flat_map(|source| [&source.name, &source.text]);
        for text in texts.chain([&self.label]).chain(self.set.iter().flat_map(|(key, value)| [key, value])) {
            hash.update((text.len() as u64).to_le_bytes());
            hash.update(text.as_bytes());
        }
        hash.update(json!(choices).to_string().as_bytes());
        hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
    }
}

fn failed(failure: Failure, contender: &Contender, say: &dyn Fn(Value)) -> Stopped {
    let found = match failure {
        Failure::Cancelled => return Stopped::Cancelled,
        Failure::Script(error) => diagnose::of_script(*error, &contender.sources),
        Failure::Other(message) => diagnose::plain(message),
    };
    say(json!({ "kind": "failed", "diagnostics": [found] }));
    Stopped::Said
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
