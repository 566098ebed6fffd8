//! The certificate that all members of a cluster show one another.

use std::fmt;

use anyhow::Context as _;
use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, ExtendedKeyUsagePurpose, IsCa, KeyPair,
    date_time_ymd,
};

use crate::directory::Directory;

/// The name in the certificate.
const NAME: &str = "shoal";
/// The first certificate lasts until this year begins, and each renewed one a year longer.
const UNTIL: i32 = 2040;

/// An authority, and the files that members read.
pub struct Certificates {
    authority: CertifiedIssuer<'static, KeyPair>,
    directory: Directory,
}

impl Certificates {
    /// Makes an authority and a first certificate, in files of `directory`.
    pub(super) fn create(directory: &Directory) -> anyhow::Result<Self> {
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let certificates = Self {
            authority: CertifiedIssuer::self_signed(params, KeyPair::generate()?)?,
            directory: directory.clone(),
        };
        certificates.write("ca.crt", &certificates.authority.pem())?;
        certificates.renew(0)?;
        Ok(certificates)
    }

    /// Writes a new certificate with a new key, which lasts `times` years longer than the first.
    ///
    /// # Errors
    /// When it cannot be made or written.
    pub fn renew(&self, times: u16) -> anyhow::Result<()> {
        let mut params = CertificateParams::new(vec![NAME.to_owned()])?;
        params.extended_key_usages = vec![
            ExtendedKeyUsagePurpose::ServerAuth,
            ExtendedKeyUsagePurpose::ClientAuth,
        ];
        params.not_after = date_time_ymd(UNTIL + i32::from(times), 1, 1);
        let key = KeyPair::generate()?;
        let certificate = params.signed_by(&key, &self.authority)?;
        self.write("tls.crt", &certificate.pem())?;
        self.write("tls.key", &key.serialize_pem())
    }

    /// The settings that name the files.
    pub(super) fn settings(&self) -> [(String, String); 3] {
        [
            ("certificate", "tls.crt"),
            ("key", "tls.key"),
            ("authority", "ca.crt"),
        ]
        .map(|(setting, file)| {
            let path = self.directory.file(file).display().to_string();
            (format!("cluster.tls.{setting}"), path)
        })
    }

    fn write(&self, name: &str, text: &str) -> anyhow::Result<()> {
        let path = self.directory.file(name);
        std::fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))
    }
}

impl fmt::Debug for Certificates {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Certificates({})", self.directory.path().display())
    }
}
