//! A person's connection to the head: one request, its answers.

use std::path::PathBuf;

use anyhow::{Context as _, Result, anyhow, bail};
use clap::Args;
use rota_core::time::Time;
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
    /// Print JSON instead of text
    #[arg(long, global = true)]
    pub json: bool,
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
        Ok(Client { runtime, connector, head, peer: None })
    }

    /// Sends a request and hands each answer to `take` as it arrives.
    pub(crate) fn ask(
        &mut self,
        request: &FromUser,
        mut take: impl FnMut(ToUser) -> Result<()>,
    ) -> Result<()> {
        let Client { runtime, connector, head, peer } = self;
        runtime.block_on(async {
            if peer.is_none() {
                *peer = Some(connector.connect(head).await?);
            }
            let opened = match peer.as_ref() {
                Some(peer) => peer.open().await.ok(),
                None => None,
            };
            let mut channel = match opened {
                Some(channel) => channel,
                // The head may have been restarted since the last request.
                None => peer.insert(connector.connect(head).await?).open().await?,
            };
            channel.receiver.trust();
            channel.sender.send(request).await?;
            channel.sender.finish();
            loop {
                match channel.receiver.receive::<ToUser>().await? {
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

impl Drop for Client {
    fn drop(&mut self) {
        if let Some(peer) = self.peer.take() {
            peer.close("done");
            self.runtime.block_on(self.connector.leave());
        }
    }
}
