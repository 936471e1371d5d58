//! `rota pki`: the cluster's own certificate authority.

use std::path::PathBuf;

use anyhow::{Result, bail};
use clap::{Args, Subcommand};
use rota_core::time::Span;
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
        #[command(flatten)]
        certificate: CertificateArgs,
    },
    /// Draw a one-time token with which an agent (`rota-agent --token`) or a user (`rota join`) gets a certificate from a running
    /// head (`rota head --pki`)
    Token {
        #[command(flatten)]
        who: WhoArgs,
        #[command(flatten)]
        certificate: CertificateArgs,
        /// Time in which the token can be used
        #[arg(long, value_name = "TIME", value_parser = Span::parse, default_value = "1h")]
        expires: Span,
    },
    /// Replace certificates while jobs run: that of the head, or the authority itself, in two steps
    Rotate {
        /// Folder of the authority
        #[arg(long, value_name = "DIR", default_value = "pki")]
        pki: PathBuf,
        /// Begin to replace the authority: a new one issues from now on, both are trusted, and agents renew by themselves
        #[arg(long, conflicts_with_all = ["finish", "status"])]
        authority: bool,
        /// Finish it: the head gets a certificate of the new authority, and the old one is no longer trusted
        #[arg(long, conflicts_with = "status")]
        finish: bool,
        /// Finish even if agents or users still have certificates of the old authority only; they are locked out
        #[arg(long, requires = "finish")]
        force: bool,
        /// List who still needs the old authority
        #[arg(long)]
        status: bool,
        /// Days for which what is made is valid
        #[arg(long, value_name = "N", default_value_t = 3650)]
        days: u32,
    },
    /// Issue a certificate for the head's page
    ///
    /// For `rota head --web-credentials`. Browsers that trust ca.pem open the page without a warning.
    Web {
        /// Names and addresses at which people open the page, separated by commas
        #[arg(long = "name", value_name = "HOST", value_delimiter = ',', required = true)]
        names: Vec<String>,
        /// Folder of the authority
        #[arg(long, value_name = "DIR", default_value = "pki")]
        pki: PathBuf,
        /// Days for which the certificate is valid; browsers refuse more than 398
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
    /// Names of agents, separated by commas [default: none]
    #[arg(long = "agent", value_name = "NAME", value_delimiter = ',')]
    agents: Vec<String>,
    /// Names of users, separated by commas [default: none]
    #[arg(long = "user", value_name = "NAME", value_delimiter = ',')]
    users: Vec<String>,
    /// For the head instead
    #[arg(long)]
    head: bool,
}

/// What a certificate says, now or once its token is used.
#[derive(Args, Clone, Debug)]
pub(crate) struct CertificateArgs {
    /// Folder of the authority
    #[arg(long, value_name = "DIR", default_value = "pki")]
    pki: PathBuf,
    /// What the users may do: submit (their own jobs), operate (all jobs, nodes, policy), admin (also end the head)
    #[arg(long, value_name = "ROLE", value_parser = parse_role, default_value = "submit", requires = "users")]
    role: UserRole,
    /// Days for which the certificate is valid
    #[arg(long, value_name = "N", default_value_t = 365)]
    days: u32,
    /// Time for which the certificate is valid, such as 12h, instead of --days [default: that of --days]
    #[arg(long, value_name = "TIME", value_parser = Span::parse, conflicts_with = "days")]
    valid: Option<Span>,
}

impl CertificateArgs {
    fn seconds(&self) -> Result<i64> {
        at_least_one(self.valid.map_or(i64::from(self.days) * 86_400, |time| time.as_secs_f64() as i64))
    }
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

fn at_least_one(seconds: i64) -> Result<i64> {
    match seconds {
        1.. => Ok(seconds),
        _ => bail!("nothing is valid for less than a second"),
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
        PkiCommand::Issue { who, certificate } => {
            let authority = Authority::open(&certificate.pki)?;
            for identity in who.identities()? {
                let validity = Validity::seconds(certificate.seconds()?);
                let issued = authority.issue_as(&identity, certificate.role, validity)?;
                println!(
                    "{identity}: certificate and key are in {}; copy the folder there and nowhere else",
                    issued.folder.display()
                );
            }
        }
        PkiCommand::Token { who, certificate, expires } => {
            let authority = Authority::open(&certificate.pki)?;
            for identity in who.identities()? {
                if identity.role == Role::Head {
                    bail!(
                        "a head gets its certificate from `rota pki init` or `rota pki rotate`, not with a token"
                    );
                }
                let expires_s = at_least_one(expires.as_secs_f64() as i64)?;
                let token =
                    authority.token(&identity, certificate.role, certificate.seconds()?, expires_s)?;
                println!("{token}");
                eprintln!("{identity}: good for one certificate, within {expires} s");
            }
        }
        PkiCommand::Rotate { pki, authority, finish, force, status, days } => {
            let now = Authority::open(pki)?;
            let validity = Validity::days(*days);
            match (authority, finish, status) {
                (true, _, _) => {
                    now.begin_rotation(validity)?;
                    println!(
                        "a new authority issues from now on, and both are trusted; agents renew by themselves"
                    );
                    println!("next: `rota pki rotate --status`, then `rota pki rotate --finish`");
                }
                (_, true, _) => {
                    let left = now.rotation()?.map(|rotation| rotation.left).unwrap_or_default();
                    if !left.is_empty() && !force {
                        bail!(
                            "{}: only the old authority knows them; renew or reissue, or --force",
                            left.join(", ")
                        );
                    }
                    now.finish_rotation(validity)?;
                    println!("the old authority is no longer trusted, and the head has a new certificate");
                }
                (_, _, true) => match now.rotation()? {
                    None => println!("the authority is not being replaced"),
                    Some(rotation) if rotation.left.is_empty() => {
                        println!("nobody needs the old authority any more")
                    }
                    Some(rotation) => rotation.left.iter().for_each(|who| println!("{who}")),
                },
                _ => {
                    let head = Identity { role: Role::Head, name: Name::new("head")? };
                    now.issue(&head, validity)?;
                    println!("the head has a new certificate; a running head takes it within a second");
                }
            }
        }
        PkiCommand::Web { names, pki, days } => {
            if let Some(own) = names.iter().find(|name| name.ends_with(".rota") || name.is_empty()) {
                bail!("--name `{own}`: names that end in .rota are those of the cluster's own certificates");
            }
            let folder = Authority::open(pki)?.issue_web(names, Validity::days(*days))?;
            println!(
                "the page's certificate for {} is in {}; people's browsers have to trust {}",
                names.join(", "),
                folder.display(),
                folder.join("ca.pem").display()
            );
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
