//! Requests to the engine: those that people also send over QUIC, and looks. The engine judges both by its rules.

use std::sync::Arc;
use std::time::Duration;

use rota_transport::access::RequestKind;
use rota_transport::message::{FromUser, ToUser};
use tokio::sync::{Semaphore, mpsc, oneshot, watch};

use super::error::{Answer, ApiError};
use super::sessions::Session;
use crate::engine::looks::Look;
use crate::engine::refusal::Refusal;
use crate::engine::{Engine, Input, Said};
use crate::roles::Person;
use crate::state::Moment;

/// Requests that may be before the engine at once.
const MOST_AT_ONCE: usize = 128;
/// Readers of the disk at once: each may look through much of the journal.
const MOST_READERS: usize = 4;
/// How long a request waits for its turn, and for the engine.
const PATIENCE: Duration = Duration::from_secs(30);
/// How many answers of a request may be queued.
const MOST_ANSWERS: usize = 4_096;

/// The way to the engine.
pub(crate) struct Asking {
    inputs: mpsc::Sender<Input>,
    is_ready: watch::Receiver<bool>,
    turns: Semaphore,
    readers: Arc<Semaphore>,
}

impl Asking {
    pub(crate) fn new(inputs: mpsc::Sender<Input>, is_ready: watch::Receiver<bool>) -> Self {
        let readers = Arc::new(Semaphore::new(MOST_READERS));
        Asking { inputs, is_ready, turns: Semaphore::new(MOST_AT_ONCE), readers }
    }

    /// Whether the journal has been read.
    pub(crate) fn is_ready(&self) -> bool {
        *self.is_ready.borrow()
    }

    /// Sends a request and returns all its answers.
    pub(crate) async fn ask(&self, session: &Session, request: FromUser) -> Answer<Vec<Said>> {
        let mut answers = self.begin(session, request, MOST_ANSWERS).await?;
        let mut found = Vec::new();
        loop {
            // What needs the decider or an agent may take longer than what the engine answers itself.
            match tokio::time::timeout(PATIENCE * 4, answers.recv()).await {
                Ok(Some(Said::Message(ToUser::End))) => return Ok(found),
                Ok(Some(Said::Refused { kind, why })) => return Err(ApiError::of(kind, why.as_str())),
                Ok(Some(answer)) => found.push(answer),
                Ok(None) => return Err(ApiError::unavailable("the head ended the conversation")),
                Err(_) => return Err(ApiError::unavailable("the head has not answered in time")),
            }
        }
    }

    /// Sends a request with a long answer, which is taken as it comes.
    pub(crate) async fn begin(
        &self,
        session: &Session,
        request: FromUser,
        most: usize,
    ) -> Answer<mpsc::Receiver<Said>> {
        let (reply, answers) = mpsc::channel(most);
        let (user, role) = (session.user.clone(), session.role);
        self.send(Input::User { user, role, left: None, request, reply }).await?;
        Ok(answers)
    }

    /// Looks at the engine's state, if the person may ask for this kind of thing.
    pub(crate) async fn look<T: Send + 'static>(
        &self,
        session: &Session,
        kind: RequestKind,
        look: impl FnOnce(&mut Engine, Moment, &Person) -> Result<T, Refusal> + Send + 'static,
    ) -> Answer<T> {
        let (look, answer) = Look::new(kind, look);
        self.show(session, look, answer).await
    }

    /// Looks at what concerns nobody.
    pub(crate) async fn look_at_the_head<T: Send + 'static>(
        &self,
        session: &Session,
        look: impl FnOnce(&mut Engine, Moment, &Person) -> T + Send + 'static,
    ) -> Answer<T> {
        let (look, answer) = Look::at_the_head(look);
        self.show(session, look, answer).await
    }

    /// Does work that reads the disk, in a thread of its own when it is its turn.
    pub(crate) async fn read<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Answer<T> {
        let turn = tokio::time::timeout(PATIENCE, Arc::clone(&self.readers).acquire_owned()).await;
        let turn = turn.map_err(|_| ApiError::unavailable("too much is being looked up: ask again later"))?;
        // The turn ends with the work: a request that is given up goes on reading.
        let done = tokio::task::spawn_blocking(move || {
            let _turn = turn;
            work()
        });
        done.await.map_err(|_| ApiError::unavailable("it cannot be read"))
    }

    async fn show<T>(
        &self,
        session: &Session,
        look: Look,
        answer: oneshot::Receiver<Result<T, Refusal>>,
    ) -> Answer<T> {
        let _turn = self.turns.acquire().await;
        let (user, role) = (session.user.clone(), session.role);
        self.send(Input::Look { user, role, look }).await?;
        match tokio::time::timeout(PATIENCE, answer).await {
            Ok(Ok(seen)) => Ok(seen?),
            Ok(Err(_)) => Err(ApiError::unavailable("the head ended the conversation")),
            Err(_) => Err(ApiError::unavailable("the head has not answered in time")),
        }
    }

    async fn send(&self, input: Input) -> Answer<()> {
        if !self.is_ready() {
            return Err(ApiError::unavailable("the head is still reading its journal: ask again later"));
        }
        match tokio::time::timeout(PATIENCE, self.inputs.send(input)).await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(_)) => Err(ApiError::unavailable("the head is ending")),
            Err(_) => Err(ApiError::unavailable("the head is too busy")),
        }
    }
}
