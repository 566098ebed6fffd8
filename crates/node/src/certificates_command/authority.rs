use std::time::{Duration, SystemTime};

use anyhow::{Context as _, anyhow, bail};
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose,
};
use rustls_pki_types::CertificateDer;
use rustls_pki_types::pem::PemObject as _;
use x509_parser::certificate::X509Certificate;
use x509_parser::prelude::FromDer as _;

use super::standing::{self, CertificatePeriod, CertificateStanding};
use super::{CERTIFICATE, Files, ISSUED_BY, KEY};

/// Ten years. Operators who want shorter lives use cert-manager or their own authority.
const VALID_FOR: Duration = Duration::from_secs(3650 * 24 * 3600);
/// How long before its issue a certificate becomes valid, because other machines' clocks may be behind.
const CLOCK_SKEW: Duration = Duration::from_secs(3600);
const SUBJECT: &str = "Shoal cluster authority";
const PROCESS: &str = "Shoal process";

pub(super) struct Authority {
    issuer: Issuer<'static, KeyPair>,
    pem: Vec<u8>,
    der: CertificateDer<'static>,
    validity: CertificatePeriod,
}

impl Authority {
    pub(super) fn create(key: Option<&[u8]>) -> anyhow::Result<(Self, Files)> {
        let key = match key {
            Some(pem) => key_of(pem)?,
            None => KeyPair::generate().context("cannot make a key")?,
        };
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, SUBJECT);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign];
        let now = SystemTime::now();
        params.not_before = (now - CLOCK_SKEW).into();
        params.not_after = (now + VALID_FOR).into();
        let made = params
            .self_signed(&key)
            .context("cannot make an authority")?;
        let files = [(CERTIFICATE, made.pem()), (KEY, key.serialize_pem())];
        let files = Files::from(files.map(|(name, pem)| (name.to_owned(), pem.into_bytes())));
        Ok((Self::open(&files)?, files))
    }

    /// Opens an existing authority.
    ///
    /// # Errors
    /// If a file is missing or unusable, the key belongs to another certificate, or the certificate may not issue or
    /// has expired.
    pub(super) fn open(files: &Files) -> anyhow::Result<Self> {
        let file = |name| {
            files
                .get(name)
                .with_context(|| format!("{name} is missing"))
        };
        let (pem, key) = (file(CERTIFICATE)?, key_of(file(KEY)?)?);
        let der = CertificateDer::from_pem_slice(pem)
            .map_err(|_| anyhow!("{CERTIFICATE} holds no certificate"))?;
        let (_, parsed) = X509Certificate::from_der(&der)
            .map_err(|_| anyhow!("{CERTIFICATE} holds no certificate"))?;
        if !standing::is_of(&key, &parsed) {
            bail!("{KEY} does not belong to {CERTIFICATE}");
        }
        if !parsed.is_ca() {
            bail!("{CERTIFICATE} may not issue certificates: it is no CA");
        }
        let validity = CertificatePeriod::of(&parsed);
        if validity.ends <= SystemTime::now() {
            bail!("{CERTIFICATE} has expired");
        }
        Ok(Self {
            issuer: Issuer::from_ca_cert_der(&der, key).context("cannot issue with it")?,
            pem: pem.clone(),
            der,
            validity,
        })
    }

    pub(super) fn ends_soon(&self) -> Option<SystemTime> {
        self.validity.is_nearly_over().then_some(self.validity.ends)
    }

    /// # Errors
    /// If the files are a sound certificate for other names.
    pub(super) fn standing(
        &self,
        files: &Files,
        names: &[String],
    ) -> anyhow::Result<CertificateStanding> {
        standing::of(files, names, &self.der)
    }

    /// The bundle of authorities keeps those of `before`.
    pub(super) fn issue(&self, names: &[String], before: &Files) -> anyhow::Result<Files> {
        let mut params = CertificateParams::new(names).context("cannot put into a certificate")?;
        params.distinguished_name.push(DnType::CommonName, PROCESS);
        params.extended_key_usages = vec![
            ExtendedKeyUsagePurpose::ServerAuth,
            ExtendedKeyUsagePurpose::ClientAuth,
        ];
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.use_authority_key_identifier_extension = true;
        let now = SystemTime::now();
        params.not_before = (now - CLOCK_SKEW).into();
        params.not_after = (now + VALID_FOR).min(self.validity.ends).into();
        let key = KeyPair::generate().context("cannot make a key")?;
        let made = params
            .signed_by(&key, &self.issuer)
            .context("cannot sign")?;
        let files = [
            (CERTIFICATE, made.pem().into_bytes()),
            (KEY, key.serialize_pem().into_bytes()),
            (ISSUED_BY, self.bundle(before.get(ISSUED_BY))),
        ];
        Ok(Files::from(
            files.map(|(name, content)| (name.to_owned(), content)),
        ))
    }

    fn bundle(&self, before: Option<&Vec<u8>>) -> Vec<u8> {
        let trusted = before.filter(|pem| !standing::certificates(pem).is_empty());
        match trusted {
            Some(trusted) if standing::certificates(trusted).contains(&self.der) => trusted.clone(),
            Some(trusted) => [trusted.trim_ascii_end(), b"\n", &self.pem].concat(),
            None => self.pem.clone(),
        }
    }
}

fn key_of(pem: &[u8]) -> anyhow::Result<KeyPair> {
    let pem = str::from_utf8(pem).map_err(|_| anyhow!("{KEY} holds no key"))?;
    KeyPair::from_pem(pem).map_err(|error| anyhow!("{KEY} holds no key that can be used: {error}"))
}
