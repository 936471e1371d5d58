//! `rota pki`: the cluster's own certificate authority.

use std::path::PathBuf;

use anyhow::{Result, bail};
use clap::{Args, Subcommand};
use rota_transport::identity::{Authority, Identity, Role, UserRole, Validity};
use rota_transport::value::Name;

/// What to do with certificates.
#[derive(Subcommand)]
pub(crate) enum PkiCommand {
    /// Create an authority, and a certificate for the head
    Init {
        /// Folder of the authority
        #[arg(value_name = "DIR", default_value = "pki")]
        folder: PathBuf,
        /// Days for which the authority and the head's certificate are valid
        #[arg(long, value_name = "N", default_value_t = 3650)]
        days: u32,
    },
    /// Issue a key and a certificate for an agent or a user
    Issue {
        #[command(flatten)]
        who: WhoArgs,
        /// Folder of the authority
        #[arg(long, value_name = "DIR", default_value = "pki")]
        pki: PathBuf,
        /// What the users may do: submit (their own jobs), operate (all jobs, nodes, policy), admin (also end the head)
        #[arg(long, value_name = "ROLE", value_parser = parse_role, default_value = "submit", requires = "users")]
        role: UserRole,
        /// Days for which the certificate is valid
        #[arg(long, value_name = "N", default_value_t = 365)]
        days: u32,
    },
    /// Revoke all certificates of an agent or a user; a running head notices within a second
    Revoke {
        #[command(flatten)]
        who: WhoArgs,
        /// Folder of the authority
        #[arg(long, value_name = "DIR", default_value = "pki")]
        pki: PathBuf,
    },
}

/// For whom.
#[derive(Args, Clone, Debug)]
pub(crate) struct WhoArgs {
    /// Names of agents, separated by commas
    #[arg(long = "agent", value_name = "NAME", value_delimiter = ',')]
    agents: Vec<String>,
    /// Names of users, separated by commas
    #[arg(long = "user", value_name = "NAME", value_delimiter = ',')]
    users: Vec<String>,
    /// The head
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
            [] => bail!("for whom? Give --agent NAME, --user NAME or --head"),
            found => Ok(found.to_vec()),
        }
    }
}

fn parse_role(text: &str) -> Result<UserRole, String> {
    UserRole::of_name(text).ok_or_else(|| {
        let names: Vec<_> = UserRole::ALL.iter().map(|(_, name)| *name).collect();
        format!("roles are {}", names.join(", "))
    })
}

/// Runs one of them.
pub(crate) fn run(command: &PkiCommand) -> Result<()> {
    match command {
        PkiCommand::Init { folder, days } => {
            let validity = Validity::days(*days);
            let authority = Authority::create(folder, validity)?;
            let head = Identity { role: Role::Head, name: Name::new("head")? };
            let issued = authority.issue(&head, validity)?;
            println!("the authority is in {}; do not copy ca.key to another machine", folder.display());
            println!("the head's certificate is in {}", issued.folder.display());
        }
        PkiCommand::Issue { who, pki, role, days } => {
            let authority = Authority::open(pki)?;
            for identity in who.identities()? {
                let issued = authority.issue_as(&identity, *role, Validity::days(*days))?;
                println!(
                    "{identity}: certificate and key are in {}; copy the folder there and nowhere else",
                    issued.folder.display()
                );
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
