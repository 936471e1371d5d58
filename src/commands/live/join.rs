//! `rota join`: a person's certificate, from a running head.

use std::path::PathBuf;

use anyhow::{Context as _, Result, bail};
use clap::Args;
use rota_transport::identity::{Credentials, JoinToken, Role};
use rota_transport::quic;

use super::client::{ClientFile, HeadArgs, home};

/// How to get a certificate.
#[derive(Args, Clone, Debug)]
pub(crate) struct JoinArgs {
    #[command(flatten)]
    head: HeadArgs,
    /// The token, good for one certificate [default: none, with --renew]
    #[arg(value_name = "TOKEN", required_unless_present = "renew")]
    token: Option<String>,
    /// Replace the certificate that you have by a new one of the same length
    #[arg(long, conflicts_with = "token")]
    renew: bool,
}

/// Gets a certificate, and writes down where head and credentials are, so that other commands find them.
pub(crate) fn run(args: &JoinArgs) -> Result<()> {
    let home = home()?;
    let known = home.join("client.toml");
    let file = std::fs::read_to_string(&known).ok().and_then(|text| toml::from_str::<ClientFile>(&text).ok());
    let head = args.head.head.clone().or_else(|| std::env::var("ROTA_HEAD").ok());
    let head = head.or_else(|| file.as_ref().map(|file| file.head.clone()));
    let head = head.context("which head? Give --head HOST:PORT, or set ROTA_HEAD")?;
    let named =
        args.head.credentials.clone().or_else(|| std::env::var_os("ROTA_CREDENTIALS").map(PathBuf::from));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let Some(token) = &args.token else {
        let folder = named.or_else(|| file.map(|file| file.credentials));
        let folder = folder.context("which certificate? Give --credentials DIR, or set ROTA_CREDENTIALS")?;
        let credentials = Credentials::load_for(&folder, Role::User)?;
        runtime.block_on(quic::renew(&head, &credentials))?;
        println!("{}: renewed, in {}", credentials.identity(), folder.display());
        return Ok(());
    };
    let folder = named.unwrap_or_else(|| home.join("credentials"));
    if folder.join("cert.pem").exists() {
        bail!("{} has a certificate already: name another folder with --credentials", folder.display());
    }
    let token = JoinToken::parse(token)?;
    let credentials = runtime.block_on(quic::join(&head, &token, &folder))?;
    println!("{}: certificate and key are in {}", credentials.identity(), folder.display());
    if !known.exists() && args.head.credentials.is_none() {
        let folder = folder.canonicalize().with_context(|| folder.display().to_string())?;
        std::fs::write(&known, toml::to_string(&ClientFile { head, credentials: folder })?)?;
        println!("commands find it by themselves: try `rota nodes`");
    }
    Ok(())
}
