//! An authority of one cluster, and what it issues.

use std::time::{Duration, SystemTime};

use anyhow::Context as _;
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose,
};

use super::Files;

/// Nobody renews them: an operator who wants short lives has cert-manager or an authority of his own.
const VALID_FOR: Duration = Duration::from_secs(3650 * 24 * 3600);
/// How far the clocks of other machines may be behind.
const CLOCK_SKEW: Duration = Duration::from_secs(3600);
/// The subject of every authority; issued certificates repeat it.
const SUBJECT: &str = "Shoal cluster authority";

/// The subject of what it issues; only the DNS names count.
const PROCESS: &str = "Shoal process";

const CERTIFICATE: &str = "tls.crt";
const KEY: &str = "tls.key";
const ISSUED_BY: &str = "ca.crt";
/// The DNS names of a certificate, beside it.
const NAMES: &str = "names";

pub(super) struct Authority {
    issuer: Issuer<'static, KeyPair>,
    certificate: Vec<u8>,
}

impl Authority {
    /// A new authority, and its files.
    pub(super) fn create() -> anyhow::Result<(Self, Files)> {
        let key = KeyPair::generate().context("cannot make a key")?;
        let made = params().self_signed(&key);
        let certificate = made.context("cannot make an authority")?.pem().into_bytes();
        let files = [
            (CERTIFICATE, certificate.clone()),
            (KEY, key.serialize_pem().into_bytes()),
        ];
        let files = files.map(|(name, content)| (name.to_owned(), content));
        let issuer = Issuer::new(params(), key);
        Ok((
            Self {
                issuer,
                certificate,
            },
            Files::from(files),
        ))
    }

    /// The authority of these files, if they are one.
    pub(super) fn open(files: &Files) -> Option<anyhow::Result<Self>> {
        let (certificate, key) = (files.get(CERTIFICATE)?, files.get(KEY)?);
        let key = str::from_utf8(key).map_err(anyhow::Error::from);
        let key = key.and_then(|pem| Ok(KeyPair::from_pem(pem)?));
        Some(key.map(|key| Self {
            issuer: Issuer::new(params(), key),
            certificate: certificate.clone(),
        }))
    }

    /// Whether the files are a certificate of this authority with these names.
    pub(super) fn issued(&self, files: &Files, names: &[String]) -> bool {
        files.get(ISSUED_BY) == Some(&self.certificate)
            && files.get(NAMES).map(Vec::as_slice) == Some(names.join(" ").as_bytes())
            && [CERTIFICATE, KEY]
                .iter()
                .all(|name| files.contains_key(*name))
    }

    /// A certificate with a new key.
    pub(super) fn issue(&self, names: &[String]) -> anyhow::Result<Files> {
        let mut params = CertificateParams::new(names).context("cannot put into a certificate")?;
        params.distinguished_name.push(DnType::CommonName, PROCESS);
        params.extended_key_usages = vec![
            ExtendedKeyUsagePurpose::ServerAuth,
            ExtendedKeyUsagePurpose::ClientAuth,
        ];
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.use_authority_key_identifier_extension = true;
        valid(&mut params);
        let key = KeyPair::generate().context("cannot make a key")?;
        let made = params.signed_by(&key, &self.issuer);
        let files = [
            (CERTIFICATE, made.context("cannot sign")?.pem().into_bytes()),
            (KEY, key.serialize_pem().into_bytes()),
            (ISSUED_BY, self.certificate.clone()),
            (NAMES, names.join(" ").into_bytes()),
        ];
        Ok(Files::from(
            files.map(|(name, content)| (name.to_owned(), content)),
        ))
    }
}

fn params() -> CertificateParams {
    let mut params = CertificateParams::default();
    params.distinguished_name.push(DnType::CommonName, SUBJECT);
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign];
    valid(&mut params);
    params
}

fn valid(params: &mut CertificateParams) {
    let now = SystemTime::now();
    params.not_before = (now - CLOCK_SKEW).into();
    params.not_after = (now + VALID_FOR).into();
}
