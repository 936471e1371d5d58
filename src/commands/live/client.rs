//! A person's connection to the head: one request, its answers.

use std::path::PathBuf;

use anyhow::{Context as _, Result, anyhow, bail};
use clap::Args;
use rota_core::time::{Span, Time};
use rota_transport::identity::{Credentials, Role};
use rota_transport::message::{FromUser, PROTOCOL_VERSION, Status, ToUser};
use rota_transport::quic::{Connector, Peer};
use rota_transport::value::{Lines, shown};
use serde::{Deserialize, Serialize};

/// Where the head is, and who asks.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct HeadArgs {
    /// Address of the head [default: $ROTA_HEAD, else the head that `rota up` started]
    #[arg(long, value_name = "HOST:PORT", global = true, help_heading = "Live cluster")]
    pub head: Option<String>,
    /// Folder with your certificate and key, as written by `rota pki issue` [default: $ROTA_CREDENTIALS, else the one that
    /// `rota up` wrote]
    #[arg(long, value_name = "DIR", global = true, help_heading = "Live cluster")]
    pub credentials: Option<PathBuf>,
    /// The longest wait for the head: for a connection, and for each piece of an answer [default: 1m]
    #[arg(long, value_name = "TIME", value_parser = parse_timeout, global = true, help_heading = "Live cluster")]
    pub timeout: Option<Span>,
    /// Print JSON instead of text
    #[arg(long, global = true)]
    pub json: bool,
}

/// How long the head may take to answer, where nothing else was said.
const TIMEOUT: Span = Span::from_secs(60);

fn parse_timeout(text: &str) -> Result<Span, String> {
    let span = Span::parse(text).map_err(|error| error.to_string())?;
    if span > Span::ZERO { Ok(span) } else { Err("must be more than 0".into()) }
}

/// What `rota up` writes for the commands that follow.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ClientFile {
    pub(super) head: String,
    pub(super) credentials: PathBuf,
}

/// Where Rota keeps what belongs to a person: `$ROTA_HOME`, else `~/.rota`.
pub(super) fn home() -> Result<PathBuf> {
    if let Some(home) = std::env::var_os("ROTA_HOME") {
        return Ok(home.into());
    }
    let home = std::env::var_os("HOME").context("neither ROTA_HOME nor HOME is set")?;
    Ok(PathBuf::from(home).join(".rota"))
}

/// A connection to the head.
pub(crate) struct Client {
    runtime: tokio::runtime::Runtime,
    connector: Connector,
    head: String,
    timeout: Span,
    peer: Option<Peer>,
}

impl Client {
    /// Finds the head and the credentials. Connects at the first request.
    pub(crate) fn new(args: &HeadArgs) -> Result<Self> {
        let file = || -> Result<Option<ClientFile>> {
            let path = home()?.join("client.toml");
            match std::fs::read_to_string(&path) {
                Ok(text) => Ok(Some(toml::from_str(&text).with_context(|| path.display().to_string())?)),
                Err(_) => Ok(None),
            }
        };
        let file = file()?;
        let head = args.head.clone().or_else(|| std::env::var("ROTA_HEAD").ok());
        let head = head.or_else(|| file.as_ref().map(|file| file.head.clone()));
        let head = head.ok_or_else(|| {
            anyhow!("no head is known: give --head HOST:PORT, set ROTA_HEAD, or start one with `rota up`")
        })?;
        let own =
            args.credentials.clone().or_else(|| std::env::var_os("ROTA_CREDENTIALS").map(PathBuf::from));
        let own = own.or_else(|| file.map(|file| file.credentials));
        let own = own.ok_or_else(|| {
            anyhow!("no credentials are known: give --credentials DIR, the folder that `rota pki issue --user NAME` wrote")
        })?;
        let credentials = Credentials::load_for(&own, Role::User)?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let connector = runtime.block_on(async { Connector::new(&credentials) })?;
        let timeout = args.timeout.unwrap_or(TIMEOUT);
        Ok(Client { runtime, connector, head, timeout, peer: None })
    }

    /// Where the head is, as it was given.
    pub(crate) fn head(&self) -> &str {
        &self.head
    }

    /// Sends a request and hands each answer to `take` as it arrives.
    pub(crate) fn ask(
        &mut self,
        request: &FromUser,
        mut take: impl FnMut(ToUser) -> Result<()>,
    ) -> Result<()> {
        let Client { runtime, connector, head, timeout, peer } = self;
        let limit = Limit { head, timeout: *timeout };
        runtime.block_on(async {
            if peer.is_none() {
                *peer = Some(limit.connect(connector).await?);
            }
            let opened = match peer.as_ref() {
                Some(peer) => limit.answer(peer.open()).await?.ok(),
                None => None,
            };
            let mut channel = match opened {
                Some(channel) => channel,
                // The head may have been restarted since the last request.
                None => {
                    let peer = peer.insert(limit.connect(connector).await?);
                    limit.answer(peer.open()).await??
                }
            };
            channel.receiver.trust();
            limit.answer(channel.sender.send(request)).await??;
            channel.sender.finish();
            loop {
                match limit.answer(channel.receiver.receive::<ToUser>()).await?? {
                    Some(ToUser::End) => return Ok(()),
                    Some(ToUser::Failed(why)) => bail!("{}", shown(why.as_str(), Lines::Kept)),
                    Some(answer) => take(answer)?,
                    None => bail!("the head closed the connection"),
                }
            }
        })
    }

    /// Asks for a text.
    pub(crate) fn text(&mut self, request: &FromUser) -> Result<String> {
        let mut text = String::new();
        self.ask(request, |answer| {
            if let ToUser::Text(more) = answer {
                text.push_str(more.as_str());
            }
            Ok(())
        })?;
        Ok(text)
    }

    /// The state of the cluster.
    pub(crate) fn status(&mut self) -> Result<Status> {
        self.ask_status(&FromUser::Status { protocol: PROTOCOL_VERSION })
    }

    /// Skips time in which nothing happens, and returns the state after it.
    pub(crate) fn fast_forward(&mut self, until: Time, n_iterations: u32) -> Result<Status> {
        self.ask_status(&FromUser::FastForward { until, n_iterations })
    }

    fn ask_status(&mut self, request: &FromUser) -> Result<Status> {
        let mut status = None;
        self.ask(request, |answer| {
            if let ToUser::Status(is) = answer {
                status = Some(is);
            }
            Ok(())
        })?;
        status.context("the head did not answer with its status")
    }
}

/// How long each step of a request may take, and with whom.
struct Limit<'a> {
    head: &'a str,
    timeout: Span,
}

impl Limit<'_> {
    async fn connect(&self, connector: &Connector) -> Result<Peer> {
        match self.wait(connector.connect(self.head)).await {
            Some(peer) => Ok(peer?),
            None => bail!(
                "the head at {} cannot be reached: no connection within {} s (--timeout); is it running, and is UDP let through?",
                self.head,
                self.timeout
            ),
        }
    }

    async fn answer<T>(&self, step: impl Future<Output = T>) -> Result<T> {
        let answered = self.wait(step).await;
        answered.ok_or_else(|| {
            anyhow!(
                "the head at {} has not answered for {} s; --timeout waits longer. What was asked for may still happen",
                self.head,
                self.timeout
            )
        })
    }

    async fn wait<T>(&self, step: impl Future<Output = T>) -> Option<T> {
        let most = std::time::Duration::from_secs_f64(self.timeout.as_secs_f64());
        tokio::time::timeout(most, step).await.ok()
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        if let Some(peer) = self.peer.take() {
            peer.close("done");
            self.runtime.block_on(self.connector.leave());
        }
    }
}
