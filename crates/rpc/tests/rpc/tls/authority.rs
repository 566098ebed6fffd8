use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};

use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, ExtendedKeyUsagePurpose, IsCa,
    KeyPair, date_time_ymd,
};
use shoal_rpc::{LinkConfig, Tls, TlsFiles};

use crate::setting::config;

pub(super) const NAME: &str = "shoal";

pub(super) struct Authority(CertifiedIssuer<'static, KeyPair>);

pub(super) struct Issued {
    pub(super) certificate: String,
    pub(super) key: String,
}

impl Authority {
    pub(super) fn new() -> Self {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let name = format!("authority {}", COUNT.fetch_add(1, Ordering::Relaxed));
        params.distinguished_name.push(DnType::CommonName, name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        Self(CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap())
    }

    pub(super) fn pem(&self) -> String {
        self.0.pem()
    }

    /// Issues a certificate that is valid from 2020 to the beginning of 2040.
    pub(super) fn issue(&self) -> Issued {
        self.issue_with(|_| {})
    }

    pub(super) fn issue_with(&self, change: impl FnOnce(&mut CertificateParams)) -> Issued {
        let mut params = CertificateParams::new(vec![NAME.to_owned()]).unwrap();
        params.not_before = date_time_ymd(2020, 1, 1);
        params.not_after = date_time_ymd(2040, 1, 1);
        params.extended_key_usages = vec![
            ExtendedKeyUsagePurpose::ServerAuth,
            ExtendedKeyUsagePurpose::ClientAuth,
        ];
        change(&mut params);
        let key = KeyPair::generate().unwrap();
        let certificate = params.signed_by(&key, &self.0).unwrap();
        Issued {
            certificate: certificate.pem(),
            key: key.serialize_pem(),
        }
    }
}

pub(super) struct Files {
    directory: PathBuf,
}

impl Files {
    pub(super) fn of(authority: &Authority) -> Self {
        Self::with(&authority.issue(), &authority.pem())
    }

    pub(super) fn with(issued: &Issued, authority: &str) -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("shoal-rpc-tls-{}-{count}", std::process::id());
        let directory = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&directory).unwrap();
        let files = Self { directory };
        files.write(issued, authority);
        files
    }

    pub(super) fn write(&self, issued: &Issued, authority: &str) {
        self.write_one("ca.crt", authority);
        self.write_one("tls.crt", &issued.certificate);
        self.write_one("tls.key", &issued.key);
    }

    pub(super) fn write_one(&self, name: &str, text: &str) {
        std::fs::write(self.directory.join(name), text).unwrap();
    }

    pub(super) fn put_pipe(&self, name: &str) {
        let made = std::process::Command::new("mkfifo")
            .arg(self.directory.join(name))
            .status();
        assert!(made.unwrap().success());
    }

    pub(super) fn remove(&self, name: &str) {
        std::fs::remove_file(self.directory.join(name)).unwrap();
    }

    pub(super) fn settings(&self) -> TlsFiles {
        TlsFiles {
            certificate: self.directory.join("tls.crt"),
            key: self.directory.join("tls.key"),
            authority: self.directory.join("ca.crt"),
            name: NAME.to_owned(),
            allow_plaintext: false,
            for_node: false,
        }
    }

    pub(super) fn open(&self) -> Tls {
        Tls::open(self.settings()).unwrap()
    }

    pub(super) fn open_for_both(&self) -> Tls {
        let settings = TlsFiles {
            allow_plaintext: true,
            ..self.settings()
        };
        Tls::open(settings).unwrap()
    }
}

impl Drop for Files {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.directory);
    }
}

pub(super) fn over(tls: &Tls) -> LinkConfig {
    LinkConfig {
        tls: Some(tls.clone()),
        ..config()
    }
}
