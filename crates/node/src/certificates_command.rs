//! `shoal certificates`: makes an authority, and certificates for the processes of a cluster.
//!
//! Whatever is there and right stays. So the command can run at every deployment.

mod authority;
mod directory;
mod secrets;

use std::collections::BTreeMap;

use anyhow::Context as _;

use self::authority::Authority;
use self::directory::Directory;
use self::secrets::Secrets;
use crate::cli;
use crate::exit::Failure;
use crate::print::print;

/// The files of one certificate by name.
type Files = BTreeMap<String, Vec<u8>>;

/// What the authority is called among the certificates.
const AUTHORITY: &str = "authority";
/// What the certificate of edges and session nodes is called.
const NODES: &str = "nodes";

/// What the certificate of workers is called that serve any pool.
const ANY_POOL: &str = "any-pool";

/// Where the certificates are kept.
enum Place {
    Directory(Directory),
    Secrets(Secrets),
}

/// Files as they were read, and the version by which writing notices another writer.
#[derive(Default)]
struct Found {
    files: Files,
    version: Option<String>,
}

/// Makes what is missing, and prints what became of each certificate.
///
/// # Errors
/// When a pool has a name that no pool can have, or the place cannot be read or written.
pub async fn run(command: &cli::Certificates) -> Result<(), Failure> {
    let wanted = wanted(command)?;
    let place = match (&command.to, &command.secrets) {
        (Some(to), _) => Place::Directory(Directory::new(to)),
        (None, Some(prefix)) => Place::Secrets(Secrets::of_pod(prefix, command)?),
        (None, None) => return Err(Failure::usage("name a directory, or --secrets PREFIX")),
    };
    let authority = place.authority().await?;
    for (certificate, names) in wanted {
        let found = place.read(&certificate).await?;
        if authority.issued(&found.files, &names) {
            print(&format!("kept {}\n", place.describe(&certificate)))?;
            continue;
        }
        let made = authority.issue(&names)?;
        place.write(&certificate, &found, made).await?;
        print(&format!("made {}\n", place.describe(&certificate)))?;
    }
    Ok(())
}

/// The certificates by name, and the DNS names of each.
fn wanted(command: &cli::Certificates) -> Result<BTreeMap<String, Vec<String>>, Failure> {
    let member = &command.name;
    let mut wanted = BTreeMap::from([(NODES.to_owned(), vec![member.clone()])]);
    if command.any_pool {
        let names = vec![member.clone(), format!("*.pool.{member}")];
        wanted.insert(ANY_POOL.to_owned(), names);
    }
    for pool in &command.pools {
        let letter = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-' || b == b'_';
        if pool.is_empty() || !pool.bytes().all(letter) {
            let reason = "a pool's name is made of a-z, 0-9, - and _";
            return Err(Failure::usage(format!("--pool {pool}: {reason}")));
        }
        // No name of a Secret has an underscore.
        let certificate = format!("pool-{}", pool.replace('_', "-"));
        let names = vec![member.clone(), format!("{pool}.pool.{member}")];
        if wanted.insert(certificate, names).is_some() {
            let reason = "another pool has this name; - and _ count as the same";
            return Err(Failure::usage(format!("--pool {pool}: {reason}")));
        }
    }
    Ok(wanted)
}

impl Place {
    /// The authority that is there, or a new one.
    async fn authority(&self) -> anyhow::Result<Authority> {
        let found = self.read(AUTHORITY).await?;
        if let Some(authority) = Authority::open(&found.files) {
            let place = self.describe(AUTHORITY);
            let authority = authority.with_context(|| format!("{place}: cannot use its key"))?;
            print(&format!("kept {place}\n"))?;
            return Ok(authority);
        }
        let (authority, files) = Authority::create()?;
        self.write(AUTHORITY, &found, files).await?;
        print(&format!("made {}\n", self.describe(AUTHORITY)))?;
        Ok(authority)
    }

    async fn read(&self, certificate: &str) -> anyhow::Result<Found> {
        match self {
            Self::Directory(directory) => directory.read(certificate),
            Self::Secrets(secrets) => secrets.read(certificate).await,
        }
    }

    async fn write(&self, certificate: &str, before: &Found, files: Files) -> anyhow::Result<()> {
        match self {
            Self::Directory(directory) => directory.write(certificate, &files),
            Self::Secrets(secrets) => secrets.write(certificate, before, &files).await,
        }
    }

    fn describe(&self, certificate: &str) -> String {
        match self {
            Self::Directory(directory) => directory.path(certificate).display().to_string(),
            Self::Secrets(secrets) => format!("secret/{}", secrets.name(certificate)),
        }
    }
}
