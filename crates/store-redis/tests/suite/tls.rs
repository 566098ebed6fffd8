use std::path::PathBuf;

use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DistinguishedName, DnType, IsCa, KeyPair,
};
use shoal_store_redis::{ConnectError, RedisStore, RedisTls};

use crate::fixture::{config_with, connect, keeps_the_contract};
use crate::server::{Directory, Server, knows_tls};

pub(crate) struct Authority(CertifiedIssuer<'static, KeyPair>);

impl Authority {
    pub(crate) fn new() -> Self {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.distinguished_name = name("an authority");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        Self(CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap())
    }

    pub(crate) fn pem(&self) -> String {
        self.0.pem()
    }

    pub(crate) fn issue(&self) -> (String, String) {
        let key = KeyPair::generate().unwrap();
        let names = vec!["localhost".to_owned(), "127.0.0.1".to_owned()];
        let mut params = CertificateParams::new(names).unwrap();
        params.distinguished_name = name("somebody");
        let certificate = params.signed_by(&key, &self.0).unwrap();
        (certificate.pem(), key.serialize_pem())
    }
}

fn name(name: &str) -> DistinguishedName {
    let mut names = DistinguishedName::new();
    names.push(DnType::CommonName, name);
    names
}

#[tokio::test]
async fn serves_over_tls_with_certificates_on_both_sides() {
    if !knows_tls() {
        println!("skipped: this redis-server was built without TLS");
        return;
    }
    let (ours, other) = (Authority::new(), Authority::new());
    let (server_cert, server_key) = ours.issue();
    let (server, port) = Server::on_port(|port, directory| {
        let write = |name: &str, text: &str| write(directory, name, text).display().to_string();
        vec![
            "--port".to_owned(),
            "0".to_owned(),
            "--tls-port".to_owned(),
            port.to_string(),
            "--tls-cert-file".to_owned(),
            write("cert.pem", &server_cert),
            "--tls-key-file".to_owned(),
            write("key.pem", &server_key),
            "--tls-ca-cert-file".to_owned(),
            write("ca.pem", &ours.pem()),
        ]
    })
    .await;
    let url = format!("rediss://localhost:{port}");
    let (certificate, key) = ours.issue();
    let file = |name: &str, text: &str| Some(write(&server.directory, name, text));
    let tls = RedisTls {
        authority: file("trusted.pem", &ours.pem()),
        certificate: file("own.pem", &certificate),
        key: file("own-key.pem", &key),
    };
    let with = |tls: RedisTls| config_with(&url, |redis| redis.tls = tls);
    let trusting = || with(tls.clone());
    connect(trusting()).await;
    keeps_the_contract(trusting).await;

    let nobody = with(RedisTls {
        certificate: None,
        key: None,
        ..tls.clone()
    });
    let suspicious = with(RedisTls {
        authority: file("others.pem", &other.pem()),
        ..tls.clone()
    });
    for refused in [nobody, suspicious] {
        let refused = RedisStore::connect(refused).await;
        assert!(matches!(refused, Err(ConnectError::Unreachable(_))));
    }
    let nonsense = RedisTls {
        certificate: file("nonsense.pem", "no PEM"),
        ..tls.clone()
    };
    let missing = RedisTls {
        authority: Some("/does/not/exist".into()),
        ..tls.clone()
    };
    let half = RedisTls {
        key: None,
        ..tls.clone()
    };
    for wrong in [nonsense, missing, half] {
        let wrong = RedisStore::connect(with(wrong)).await;
        assert!(matches!(wrong, Err(ConnectError::Config(_))));
    }
}

pub(crate) fn write(directory: &Directory, name: &str, text: &str) -> PathBuf {
    let path = directory.path(name);
    std::fs::write(&path, text).unwrap();
    path
}
