use std::collections::BTreeSet;
use std::time::{Duration, SystemTime};

use anyhow::bail;
use rcgen::{KeyPair, PublicKeyData as _};
use rustls_pki_types::pem::PemObject as _;
use rustls_pki_types::{CertificateDer, UnixTime};
use webpki::{EndEntityCert, KeyUsage};
use x509_parser::certificate::X509Certificate;
use x509_parser::extensions::GeneralName;
use x509_parser::prelude::FromDer as _;

use super::{CERTIFICATE, Files, ISSUED_BY, KEY};

/// Certificates are renewed in the last fifth of their life, as the alert ShoalCertificateNotRenewed expects.
const LEAST_LEFT: u32 = 5;

#[derive(Debug, PartialEq, Eq)]
pub(super) enum CertificateStanding {
    Missing,
    Right,
    Unusable(&'static str),
}

pub(super) struct CertificatePeriod {
    begins: SystemTime,
    pub(super) ends: SystemTime,
}

impl CertificatePeriod {
    pub(super) fn of(certificate: &X509Certificate<'_>) -> Self {
        let at = |seconds: i64| {
            SystemTime::UNIX_EPOCH + Duration::from_secs(u64::try_from(seconds).unwrap_or_default())
        };
        let validity = certificate.validity();
        Self {
            begins: at(validity.not_before.timestamp()),
            ends: at(validity.not_after.timestamp()),
        }
    }

    pub(super) fn is_nearly_over(&self) -> bool {
        let life = self.ends.duration_since(self.begins).unwrap_or_default();
        let left = self
            .ends
            .duration_since(SystemTime::now())
            .unwrap_or_default();
        left < life / LEAST_LEFT
    }
}

/// Decides whether to keep a certificate that `authority` should have issued for `names`.
///
/// # Errors
/// If the files are a sound certificate of this authority for other names.
pub(super) fn of(
    files: &Files,
    names: &[String],
    authority: &CertificateDer<'_>,
) -> anyhow::Result<CertificateStanding> {
    let (pem, key) = match (files.get(CERTIFICATE), files.get(KEY)) {
        (None, None) => return Ok(CertificateStanding::Missing),
        (Some(pem), Some(key)) => (pem, key),
        _ => return Ok(CertificateStanding::Unusable("a file was missing")),
    };
    let Ok(der) = CertificateDer::from_pem_slice(pem) else {
        return Ok(CertificateStanding::Unusable("tls.crt held no certificate"));
    };
    let Ok((_, certificate)) = X509Certificate::from_der(&der) else {
        return Ok(CertificateStanding::Unusable("tls.crt held no certificate"));
    };
    let Some(key) = str::from_utf8(key)
        .ok()
        .and_then(|pem| KeyPair::from_pem(pem).ok())
    else {
        return Ok(CertificateStanding::Unusable("tls.key held no key"));
    };
    if !is_of(&key, &certificate) {
        return Ok(CertificateStanding::Unusable(
            "its key belonged to another certificate",
        ));
    }
    if CertificatePeriod::of(&certificate).is_nearly_over() {
        return Ok(CertificateStanding::Unusable(
            "less than a fifth of its life was left",
        ));
    }
    if !is_issued_by(&der, authority) {
        return Ok(CertificateStanding::Unusable(
            "another authority had issued it",
        ));
    }
    let (has, wants) = (
        names_of(&certificate),
        names.iter().cloned().collect::<BTreeSet<_>>(),
    );
    if has != wants {
        let list = |names: BTreeSet<String>| names.into_iter().collect::<Vec<_>>().join(", ");
        bail!(
            "is a certificate for {}, and not for {}: say the --name that it was made with, or remove it to have another made",
            list(has),
            list(wants)
        );
    }
    let trusted = files
        .get(ISSUED_BY)
        .map(|pem| certificates(pem))
        .unwrap_or_default();
    match trusted.iter().any(|it| it == authority) {
        true => Ok(CertificateStanding::Right),
        false => Ok(CertificateStanding::Unusable(
            "its ca.crt did not hold the authority",
        )),
    }
}

pub(super) fn is_of(key: &KeyPair, certificate: &X509Certificate<'_>) -> bool {
    key.subject_public_key_info() == certificate.public_key().raw
}

pub(super) fn certificates(pem: &[u8]) -> Vec<CertificateDer<'static>> {
    CertificateDer::pem_slice_iter(pem)
        .filter_map(Result::ok)
        .collect()
}

fn is_issued_by(certificate: &CertificateDer<'_>, authority: &CertificateDer<'_>) -> bool {
    let anchors = webpki::anchor_from_trusted_cert(authority).map(|anchor| [anchor]);
    let (Ok(anchors), Ok(certificate)) = (anchors, EndEntityCert::try_from(certificate)) else {
        return false;
    };
    let verified = certificate.verify_for_usage(
        webpki::ALL_VERIFICATION_ALGS,
        &anchors,
        &[],
        UnixTime::now(),
        KeyUsage::client_auth(),
        None,
        None,
    );
    verified.is_ok()
}

fn names_of(certificate: &X509Certificate<'_>) -> BTreeSet<String> {
    let Ok(Some(names)) = certificate.subject_alternative_name() else {
        return BTreeSet::new();
    };
    let dns = names
        .value
        .general_names
        .iter()
        .filter_map(|name| match name {
            GeneralName::DNSName(name) => Some((*name).to_owned()),
            _ => None,
        });
    dns.collect()
}
