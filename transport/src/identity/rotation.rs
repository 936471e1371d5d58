//! Replacing an authority while the cluster runs, in two steps.
//!
//! First a new authority takes its place and both are trusted: the head and running agents get certificates of the new one, by
//! themselves. When nobody needs the old one any more, the second step drops it. Jobs notice neither.

use std::fs;

use super::files::{self, Secrecy};
use super::{Authority, Identity, IdentityError, Role, UserRole, Validity};
use crate::value::Name;

/// How far the replacement is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rotation {
    /// Parties whose only valid certificates are the old authority's, by name; the head is not among them.
    pub left: Vec<String>,
}

impl Authority {
    /// The first step: makes the new authority, which issues from now on, and trusts both.
    pub fn begin_rotation(self, validity: Validity) -> Result<Self, IdentityError> {
        let folder = self.folder().to_owned();
        let old = folder.join("old");
        if old.exists() {
            return Err(self.wrong_step("the authority is being replaced already: finish that first"));
        }
        let n_issued = self.issued()?.len();
        let file = |error| IdentityError::File { path: old.clone(), error };
        // The folder appears with everything in it: a step that was cut short has not begun.
        let staged = folder.join("old.new");
        let _ = fs::remove_dir_all(&staged);
        files::make_folder(&staged)?;
        for name in ["ca.pem", "ca.key", "ca.name"] {
            if folder.join(name).exists() {
                fs::copy(folder.join(name), staged.join(name)).map_err(file)?;
            }
        }
        files::write(&folder.join("rotation"), &n_issued.to_string(), Secrecy::Public)?;
        fs::rename(&staged, &old).map_err(file)?;
        // Lists of revoked certificates are told apart by the names of their authorities.
        let name = format!("Rota cluster authority {}", validity.from.unix_timestamp());
        let new = Authority::make(&folder, &name, validity)?;
        new.write_revoked()?;
        new.write_trusted_for_head()?;
        Ok(new)
    }

    /// Who still needs the old authority; none if it is not being replaced.
    pub fn rotation(&self) -> Result<Option<Rotation>, IdentityError> {
        if !self.folder().join("old").exists() {
            return Ok(None);
        }
        let text = String::from_utf8_lossy(&files::read(&self.folder().join("rotation"))?).into_owned();
        let n_before: usize =
            text.trim().parse().map_err(|_| self.wrong_step("the file `rotation` has no number"))?;
        let lines = self.issued()?;
        let (before, after) = lines.split_at(n_before.min(lines.len()));
        let now_unix_s = time::OffsetDateTime::now_utc().unix_timestamp();
        let mut left: Vec<String> = before
            .iter()
            .filter(|line| !line.is_revoked && line.until_unix_s > now_unix_s)
            .filter(|line| !after.iter().any(|newer| newer.domain == line.domain))
            .filter_map(|line| Identity::of_domain(&line.domain))
            .filter(|identity| identity.role != Role::Head)
            .map(|identity| identity.to_string())
            .collect();
        left.sort_unstable();
        left.dedup();
        Ok(Some(Rotation { left }))
    }

    /// The second step: the head gets a certificate of the new authority, and the old one is trusted no more.
    pub fn finish_rotation(&self, head: Validity) -> Result<(), IdentityError> {
        if self.rotation()?.is_none() {
            return Err(self.wrong_step("the authority is not being replaced"));
        }
        let old = self.folder().join("old");
        fs::remove_dir_all(&old).map_err(|error| IdentityError::File { path: old, error })?;
        self.write_revoked()?;
        let name = Name::new("head")?;
        self.issue_as(&Identity { role: Role::Head, name }, UserRole::default(), head)?;
        let _ = fs::remove_file(self.folder().join("rotation"));
        Ok(())
    }

    fn wrong_step(&self, why: &str) -> IdentityError {
        IdentityError::Rotation { path: self.folder().to_owned(), why: why.to_owned() }
    }
}
