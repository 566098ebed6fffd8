use std::fmt;
use std::path::PathBuf;

use anyhow::Context as _;
use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, ExtendedKeyUsagePurpose, IsCa, KeyPair,
    date_time_ymd,
};

use crate::directory::Directory;

const NAME: &str = "shoal";
const UNTIL: i32 = 2040;

/// A certificate authority, and the files that members read.
pub struct Certificates {
    authority: CertifiedIssuer<'static, KeyPair>,
    directory: Directory,
}

/// Paths of a certificate, its key and the trusted authority.
#[derive(Clone, Debug)]
pub struct Issued {
    /// The certificate.
    pub certificate: PathBuf,
    /// The private key.
    pub key: PathBuf,
    /// The authority that the holder trusts.
    pub authority: PathBuf,
}

impl Issued {
    /// Returns the settings that name the files.
    #[must_use]
    pub fn settings(&self) -> [(String, String); 3] {
        [
            ("certificate", &self.certificate),
            ("key", &self.key),
            ("authority", &self.authority),
        ]
        .map(|(setting, path)| {
            let path = path.display().to_string();
            (format!("cluster.tls.{setting}"), path)
        })
    }
}

impl Certificates {
    /// Creates an authority and a first certificate in `directory`.
    pub fn create(directory: &Directory) -> anyhow::Result<Self> {
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

    /// Replaces the certificate by one that lasts `times` years longer than the first.
    pub fn renew(&self, times: u16) -> anyhow::Result<()> {
        let until = UNTIL + i32::from(times);
        self.issue("tls", &[NAME], until).map(drop)
    }

    /// Writes a certificate, valid until this year begins, to `FILE.crt` and `FILE.key`.
    pub fn issue(&self, file: &str, names: &[&str], until: i32) -> anyhow::Result<Issued> {
        let names: Vec<String> = names.iter().map(|&name| name.to_owned()).collect();
        let mut params = CertificateParams::new(names)?;
        params.extended_key_usages = vec![
            ExtendedKeyUsagePurpose::ServerAuth,
            ExtendedKeyUsagePurpose::ClientAuth,
        ];
        params.not_after = date_time_ymd(until, 1, 1);
        let key = KeyPair::generate()?;
        let certificate = params.signed_by(&key, &self.authority)?;
        let issued = self.named(file);
        self.write(&format!("{file}.crt"), &certificate.pem())?;
        self.write(&format!("{file}.key"), &key.serialize_pem())?;
        Ok(issued)
    }

    /// Returns the files that all members use.
    #[must_use]
    pub fn of_members(&self) -> Issued {
        self.named("tls")
    }

    fn named(&self, file: &str) -> Issued {
        Issued {
            certificate: self.directory.file(&format!("{file}.crt")),
            key: self.directory.file(&format!("{file}.key")),
            authority: self.directory.file("ca.crt"),
        }
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
