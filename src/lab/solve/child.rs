//! A solver in another process: HiGHS can overrun its time limit, and a process can be killed.
//!
//! The child runs [`serve`]: it reads one request from its input, solves, and writes the answer. The parent keeps the
//! child's input open; when it is closed, even because the parent was killed, the child ends too.

use std::io::{BufRead, Read, Write};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

use rota_solvers::exchange::{answer_request, read_answer, write_request};
use rota_solvers::{Highs, Limits, Model, Solution, SolveStatus, Solver, Start, check};

/// The last line of a request: a model in MPS ends with it.
const LAST_LINE: &str = "ENDATA";

/// Solves in a child process of a program that answers `solve-child`.
#[derive(Clone, Debug)]
pub struct ChildSolver {
    program: PathBuf,
    fate: Fate,
}

/// How the last child ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Fate {
    /// There was none yet.
    #[default]
    None,
    /// It ended by itself.
    Ended {
        /// Its process id.
        pid: u32,
    },
    /// It overran its time and was killed.
    Killed {
        /// Its process id.
        pid: u32,
    },
}

impl ChildSolver {
    /// Children of a program: this one, usually.
    pub fn new(program: PathBuf) -> Self {
        ChildSolver { program, fate: Fate::None }
    }

    /// Children of the program that runs.
    pub fn of_this_program() -> std::io::Result<Self> {
        std::env::current_exe().map(Self::new)
    }

    /// How the last child ended.
    pub fn fate(&self) -> Fate {
        self.fate
    }

    fn ask(&mut self, request: String, patience: Duration) -> std::io::Result<Reply> {
        let mut child = Command::new(&self.program)
            .arg("solve-child")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let pid = child.id();
        let reply = converse(&mut child, request, patience);
        self.fate =
            if matches!(reply, Ok(Reply::Overran)) { Fate::Killed { pid } } else { Fate::Ended { pid } };
        reply
    }
}

/// What came back from a child.
enum Reply {
    Text(String),
    Overran,
}

/// Writes the request, waits for the answer, and leaves no process behind.
fn converse(child: &mut Child, request: String, patience: Duration) -> std::io::Result<Reply> {
    let missing = || std::io::Error::other("the child has no pipes");
    let mut input = child.stdin.take().ok_or_else(missing)?;
    let mut output = child.stdout.take().ok_or_else(missing)?;
    // The input is handed back and closed last, because the child ends when it is closed.
    let writer = thread::spawn(move || {
        let _ = input.write_all(request.as_bytes()).and_then(|()| input.flush());
        input
    });
    let (send, receive) = channel();
    let reader = thread::spawn(move || {
        let mut text = String::new();
        let read = output.read_to_string(&mut text).map(|_| text);
        let _ = send.send(read);
    });
    let reply = match receive.recv_timeout(patience) {
        Ok(Ok(text)) => Ok(Reply::Text(text)),
        Ok(Err(error)) => Err(error),
        Err(RecvTimeoutError::Timeout) => Ok(Reply::Overran),
        Err(RecvTimeoutError::Disconnected) => Err(std::io::Error::other("the child's answer was not read")),
    };
    if !matches!(reply, Ok(Reply::Text(_))) {
        child.kill()?;
    }
    child.wait()?;
    // Both pipes are broken now, so neither thread can wait for anything.
    let _ = (writer.join(), reader.join());
    reply
}

impl Solver for ChildSolver {
    fn solve(&mut self, model: &Model, limits: &Limits, start: Start<'_>) -> Solution {
        let began = Instant::now();
        let reply = self.ask(write_request(model, limits, start), patience(limits.wall));
        let wall = began.elapsed();
        match reply {
            Ok(Reply::Text(text)) => match read_answer(model, &text) {
                Ok(solution) => Solution { wall, ..solution },
                Err(_) if text.is_empty() => {
                    Solution::failed("the solver's process ended without an answer", wall)
                }
                Err(error) => Solution::failed(format!("the answer of the solver's process: {error}"), wall),
            },
            Ok(Reply::Overran) => overran(model, start, wall),
            Err(error) => Solution::failed(format!("the solver's process: {error}"), wall),
        }
    }
}

/// How long a child may take: a little longer than its own limit, so that it can return what it has found by then; not much
/// longer, because a round waits for it.
fn patience(wall: Duration) -> Duration {
    wall.saturating_add(wall / 10).saturating_add(Duration::from_millis(100))
}

/// The answer of a solve that had to be killed: the start, if that is feasible.
fn overran(model: &Model, start: Start<'_>, wall: Duration) -> Solution {
    if let Start::Values(values) = start
        && let Ok(objective) = check(model, values)
    {
        let status = SolveStatus::LimitWithIncumbent;
        let (objective, values) = (Some(objective), values.to_vec());
        return Solution { objective, values, ..Solution::without_values(status, wall) };
    }
    Solution::without_values(SolveStatus::LimitWithout, wall)
}

/// What the child does: reads one request, writes one answer.
pub fn serve() -> std::io::Result<()> {
    let mut request = String::new();
    let mut input = std::io::stdin().lock();
    loop {
        let before = request.len();
        if input.read_line(&mut request)? == 0 || request[before..].trim_end() == LAST_LINE {
            break;
        }
    }
    drop(input);
    thread::spawn(|| {
        let _ = std::io::copy(&mut std::io::stdin().lock(), &mut std::io::sink());
        // A normal exit would wait for a solver that cannot be interrupted.
        std::process::abort();
    });
    let answer = answer_request(&request, &mut Highs);
    let mut output = std::io::stdout().lock();
    output.write_all(answer.as_bytes())?;
    output.flush()
}
