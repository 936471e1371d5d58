//! `rota web`: a way into the head's page for people, and into its API for programs.

use anyhow::{Context as _, Result, bail};
use clap::Subcommand;
use rota_transport::message::{FromUser, SignIn, SignInBy, ToUser};

use rota_transport::value::{Lines, shown};

use super::client::{Client, HeadArgs};
use super::say_json;

/// What to do with the page.
#[derive(Subcommand)]
pub(crate) enum WebCommand {
    /// Print a link with which you sign in to the head's page
    ///
    /// It works once, within a minute. Your certificate says who you are.
    #[command(
        after_help = "Try:\n  rota web login --open\n  curl -H \"Authorization: Bearer $(rota web login --token)\" http://127.0.0.1:8080/api/v1/status"
    )]
    Login {
        #[command(flatten)]
        head: HeadArgs,
        /// Open the link in the browser
        #[arg(long, conflicts_with = "token")]
        open: bool,
        /// Print a token for programs instead, good for thirty days at most: it lets its holder do what you may do
        #[arg(long)]
        token: bool,
    },
}

/// Runs it.
pub(crate) fn run(command: &WebCommand) -> Result<()> {
    let WebCommand::Login { head, open, token } = command;
    let mut client = Client::new(head)?;
    let by = if *token { SignInBy::Token } else { SignInBy::Link };
    let way = sign_in(&mut client, by)?;
    let address = address(&way, client.head());
    if *token {
        return match head.json {
            true => say_json(
                &serde_json::json!({ "address": address, "token": way.secret, "valid_s": way.valid_s }),
            ),
            false => {
                println!("{}", shown(way.secret.as_str(), Lines::Escaped));
                Ok(())
            }
        };
    }
    let link = format!("{address}{}", way.secret);
    if *open {
        open_in_browser(&link)?;
    }
    match head.json {
        true => say_json(&serde_json::json!({ "link": link, "valid_s": way.valid_s })),
        false => {
            println!("{}", shown(&link, Lines::Escaped));
            eprintln!("the link works once, within {} s", way.valid_s);
            Ok(())
        }
    }
}

/// Asks the head for a way in.
pub(super) fn sign_in(client: &mut Client, by: SignInBy) -> Result<SignIn> {
    let mut way = None;
    client.ask(&FromUser::SignIn { by }, |answer| {
        if let ToUser::SignIn(found) = answer {
            way = Some(found);
        }
        Ok(())
    })?;
    way.context("the head did not say how to sign in")
}

/// Where the page is: at the name that the head's operator gave it, or where the head was reached.
pub(super) fn address(way: &SignIn, head: &str) -> String {
    let scheme = if way.is_tls { "https" } else { "http" };
    let own = way.host.as_str();
    let reached = head.rsplit_once(':').map_or(head, |(host, _)| host);
    // Without TLS it listens on loopback only, wherever the head was reached.
    let host = match (own, way.is_tls) {
        ("", false) => "127.0.0.1",
        ("", true) => reached,
        (own, _) => own,
    };
    format!("{scheme}://{host}:{}", way.port)
}

fn open_in_browser(link: &str) -> Result<()> {
    let opener = if cfg!(target_os = "macos") { "open" } else { "xdg-open" };
    match std::process::Command::new(opener).arg(link).status() {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => bail!("{opener} ended with {status}"),
        Err(error) => bail!("{opener}: {error}; open the link yourself: {link}"),
    }
}
