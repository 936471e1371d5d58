//! `rota pki`: the cluster's own certificate authority.

use std::path::PathBuf;

use anyhow::{Result, bail};
use clap::{Args, Subcommand};
use rota_transport::identity::{Authority, Identity, Role, Validity};
use rota_transport::value::Name;

/// What to do with certificates.
#[derive(Subcommand)]
pub(crate) enum PkiCommand {
    /// Make an authority, and a certificate for the head
    Init {
        /// The authority's folder
        #[arg(value_name = "DIR", default_value = "pki")]
        folder: PathBuf,
        /// Days the authority and the head's certificate hold
        #[arg(long, value_name = "N", default_value_t = 3650)]
        days: u32,
    },
    /// Make a key and a certificate for an agent or a user, in a folder to be carried there
    Issue {
        #[command(flatten)]
        who: WhoArgs,
        /// The authority's folder
        #[arg(long, value_name = "DIR", default_value = "pki")]
        pki: PathBuf,
        /// Days the certificate holds
        #[arg(long, value_name = "N", default_value_t = 365)]
        days: u32,
    },
    /// Take back every certificate of an agent or a user; a running head notices within a second
    Revoke {
        #[command(flatten)]
        who: WhoArgs,
        /// The authority's folder
        #[arg(long, value_name = "DIR", default_value = "pki")]
        pki: PathBuf,
    },
}

/// For whom.
#[derive(Args, Clone, Debug)]
pub(crate) struct WhoArgs {
    /// Agents, by the names of their nodes
    #[arg(long = "agent", value_name = "NAME", value_delimiter = ',')]
    agents: Vec<String>,
    /// Users
    #[arg(long = "user", value_name = "NAME", value_delimiter = ',')]
    users: Vec<String>,
    /// The head, again
    #[arg(long)]
    head: bool,
}

impl WhoArgs {
    fn identities(&self) -> Result<Vec<Identity>> {
        let agents = self.agents.iter().map(|name| (Role::Agent, name.as_str()));
        let users = self.users.iter().map(|name| (Role::User, name.as_str()));
        let head = self.head.then_some((Role::Head, "head"));
        let all: Result<Vec<_>> = agents
            .chain(users)
            .chain(head)
            .map(|(role, name)| Ok(Identity { role, name: Name::new(name)? }))
            .collect();
        match all?.as_slice() {
            [] => bail!("for whom? Give --agent NAME or --user NAME"),
            found => Ok(found.to_vec()),
        }
    }
}

/// Runs one of them.
pub(crate) fn run(command: &PkiCommand) -> Result<()> {
    match command {
        PkiCommand::Init { folder, days } => {
            let validity = Validity::days(*days);
            let authority = Authority::create(folder, validity)?;
            let head = Identity { role: Role::Head, name: Name::new("head")? };
            let issued = authority.issue(&head, validity)?;
            println!("authority in {}; keep ca.key there and nowhere else", folder.display());
            println!("the head's certificate is in {}", issued.folder.display());
        }
        PkiCommand::Issue { who, pki, days } => {
            let authority = Authority::open(pki)?;
            for identity in who.identities()? {
                let issued = authority.issue(&identity, Validity::days(*days))?;
                println!("{identity}: carry {} there, and to nobody else", issued.folder.display());
            }
        }
        PkiCommand::Revoke { who, pki } => {
            let authority = Authority::open(pki)?;
            for identity in who.identities()? {
                println!("{identity}: {} certificates revoked", authority.revoke(&identity)?);
            }
        }
    }
    Ok(())
}
