//! `shoal certificates`: makes an authority, and certificates for a cluster. Sound certificates stay, so the command
//! can run at every deployment.

mod authority;
mod directory;
mod secrets;
mod standing;

use std::collections::BTreeMap;

use anyhow::{Context as _, bail};
use rustls_pki_types::DnsName;

use self::authority::Authority;
use self::directory::Directory;
use self::secrets::Secrets;
use self::standing::CertificateStanding;
use crate::cli;
use crate::config::check_pool_name;
use crate::exit::Failure;
use crate::print::print;

type Files = BTreeMap<String, Vec<u8>>;

const AUTHORITY: &str = "authority";
const NODES: &str = "nodes";

const ANY_POOL: &str = "any-pool";

const CERTIFICATE: &str = "tls.crt";
const KEY: &str = "tls.key";
const ISSUED_BY: &str = "ca.crt";

enum CertificatePlace {
    Directory(Directory),
    Secrets(Secrets),
}

/// The version detects another writer.
#[derive(Default)]
struct FoundCertificate {
    files: Files,
    version: Option<String>,
}

struct Wanted {
    certificate: String,
    names: Vec<String>,
    found: FoundCertificate,
}

/// Makes missing certificates, replaces unusable ones, and prints a line for each.
///
/// # Errors
/// If a name is invalid, the place cannot be read or written, the authority is missing or unusable, or a certificate is
/// for other names. Only a failed write leaves a part of the certificates written.
pub async fn run(command: &cli::Certificates) -> Result<(), Failure> {
    let names = wanted(command)?;
    let place = match (&command.to, &command.secrets) {
        (Some(to), _) => CertificatePlace::Directory(Directory::open(to)?),
        (None, Some(prefix)) => CertificatePlace::Secrets(Secrets::of_pod(prefix, command)?),
        (None, None) => return Err(Failure::usage("name a directory, or --secrets PREFIX")),
    };
    let mut wanted = Vec::new();
    for (certificate, names) in names {
        let found = place.read(&certificate).await?;
        wanted.push(Wanted {
            certificate,
            names,
            found,
        });
    }
    let authority = place.authority(&wanted).await?;
    let mut standings = Vec::new();
    for it in &wanted {
        let standing = authority.standing(&it.found.files, &it.names);
        standings.push(standing.with_context(|| place.describe(&it.certificate))?);
    }
    for (it, standing) in wanted.iter().zip(standings) {
        let described = place.describe(&it.certificate);
        let line = match standing {
            CertificateStanding::Right => format!("kept {described}\n"),
            CertificateStanding::Missing => format!("made {described}\n"),
            CertificateStanding::Unusable(why) => format!("made {described} again: {why}\n"),
        };
        if standing != CertificateStanding::Right {
            let made = authority.issue(&it.names, &it.found.files)?;
            place.write(&it.certificate, &it.found, made).await?;
        }
        print(&line)?;
    }
    Ok(())
}

fn wanted(command: &cli::Certificates) -> Result<BTreeMap<String, Vec<String>>, Failure> {
    let member = &command.name;
    // The certificate contains the name as a DNS name, so an IP address is invalid.
    if DnsName::try_from(member.as_str()).is_err() {
        return Err(Failure::usage(format!(
            "--name {member}: it must be a DNS name, such as shoal or mcp.example.com"
        )));
    }
    let mut wanted = BTreeMap::from([(NODES.to_owned(), vec![member.clone()])]);
    if command.any_pool {
        let names = vec![member.clone(), format!("*.pool.{member}")];
        wanted.insert(ANY_POOL.to_owned(), names);
    }
    for pool in &command.pools {
        check_pool_name(pool)
            .map_err(|reason| Failure::usage(format!("--pool {pool}: {reason}")))?;
        // Names of Secrets cannot contain underscores.
        let certificate = format!("pool-{}", pool.replace('_', "-"));
        let names = vec![member.clone(), format!("{pool}.pool.{member}")];
        if wanted.insert(certificate, names).is_some() {
            let reason = "another pool has this name; - and _ count as the same";
            return Err(Failure::usage(format!("--pool {pool}: {reason}")));
        }
    }
    Ok(wanted)
}

impl CertificatePlace {
    async fn authority(&self, wanted: &[Wanted]) -> anyhow::Result<Authority> {
        let place = self.describe(AUTHORITY);
        let found = self.read(AUTHORITY).await?;
        if found.files.contains_key(CERTIFICATE) {
            let authority = Authority::open(&found.files).with_context(|| {
                format!("cannot use {place}. Put it right, or remove it and all its certificates to begin anew")
            })?;
            print(&format!("kept {place}\n"))?;
            if let Some(ends) = authority.ends_soon() {
                let ends = humantime::format_rfc3339_seconds(ends);
                print(&format!(
                    "warning: {place} ends at {ends}: change the authority before\n"
                ))?;
            }
            return Ok(authority);
        }
        if let Some(issued) = wanted.iter().find(|it| !it.found.files.is_empty()) {
            bail!(
                "{place} is missing, and only it can add to {}. Put it back, or remove all certificates to begin anew",
                self.describe(&issued.certificate)
            );
        }
        let (authority, files) = Authority::create(found.files.get(KEY).map(Vec::as_slice))?;
        self.write(AUTHORITY, &found, files).await?;
        print(&format!("made {place}\n"))?;
        Ok(authority)
    }

    async fn read(&self, certificate: &str) -> anyhow::Result<FoundCertificate> {
        let mut found = match self {
            Self::Directory(directory) => directory.read(certificate)?,
            Self::Secrets(secrets) => secrets.read(certificate).await?,
        };
        // A new Secret of the type `kubernetes.io/tls` has empty files, because Kubernetes requires both.
        found.files.retain(|_, content| !content.is_empty());
        Ok(found)
    }

    async fn write(
        &self,
        certificate: &str,
        before: &FoundCertificate,
        files: Files,
    ) -> anyhow::Result<()> {
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
