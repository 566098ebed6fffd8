use std::sync::Arc;

use rustls::client::danger::ServerCertVerifier;
use rustls::client::{Resumption, WebPkiServerVerifier};
use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::server::danger::ClientCertVerifier;
use rustls::server::{NoServerSessionStorage, WebPkiClientVerifier};
use rustls::{ClientConfig, ServerConfig};

use super::TlsFiles;
use super::contents::{Contents, pair, roots};
use super::error::{AUTHORITY, CERTIFICATE, TlsError, fault};
use super::named::NamedVerifier;
use super::standing::{Nodes, Standing};
use super::validity::Validity;

const H2: &[u8] = b"h2";

pub(super) struct Material {
    pub(super) server: Arc<ServerConfig>,
    pub(super) client: Arc<ClientConfig>,
    pub(super) validity: Validity,
}

impl Material {
    pub(super) fn of(
        contents: &Contents,
        files: &TlsFiles,
        name: &ServerName<'static>,
    ) -> Result<Self, TlsError> {
        let provider = Arc::new(ring::default_provider());
        let (chain, key) = pair(contents, &files.certificate, &files.key, &provider)?;
        let authority = contents.authority.as_deref().unwrap_or_default();
        let roots = roots(authority, AUTHORITY, &files.authority)?;
        let of_authority = |error: rustls::server::VerifierBuilderError| {
            TlsError::file(AUTHORITY, &files.authority, error.to_string())
        };
        let servers =
            WebPkiServerVerifier::builder_with_provider(roots.clone(), provider.clone()).build();
        let servers = servers.map_err(of_authority)?;
        let clients = WebPkiClientVerifier::builder_with_provider(roots, provider.clone()).build();
        let clients: Arc<dyn ClientCertVerifier> = Arc::new(NamedVerifier::new(
            clients.map_err(of_authority)?,
            name.clone(),
        ));
        let validity = check(&chain, name, &*servers, &*clients)
            .map_err(|problem| TlsError::file(CERTIFICATE, &files.certificate, problem))?;
        let of_certificate = |error: rustls::Error| {
            TlsError::file(CERTIFICATE, &files.certificate, error.to_string())
        };
        if let (true, Some(own)) = (files.for_node, chain.first())
            && let Some(why) = (Standing::of(own, name).map_err(of_certificate)?).no_node()
        {
            let problem = format!(
                "{why}: a process with the role edge or session needs a certificate that does not name pools"
            );
            return Err(TlsError::file(CERTIFICATE, &files.certificate, problem));
        }
        Ok(Self {
            server: server(&provider, clients, chain.clone(), key.clone_key())
                .map_err(of_certificate)?,
            client: client(&provider, servers, chain, key).map_err(of_certificate)?,
            validity,
        })
    }
}

/// A resumed connection could outlive a certificate's validity.
fn server(
    provider: &Arc<CryptoProvider>,
    clients: Arc<dyn ClientCertVerifier>,
    chain: Vec<CertificateDer<'static>>,
    key: PrivateKeyDer<'static>,
) -> Result<Arc<ServerConfig>, rustls::Error> {
    let mut config = ServerConfig::builder_with_provider(provider.clone())
        .with_protocol_versions(&[&rustls::version::TLS13])?
        .with_client_cert_verifier(clients)
        .with_single_cert(chain, key)?;
    config.alpn_protocols = vec![H2.to_vec()];
    config.session_storage = Arc::new(NoServerSessionStorage {});
    config.send_tls13_tickets = 0;
    Ok(Arc::new(config))
}

fn client(
    provider: &Arc<CryptoProvider>,
    servers: Arc<dyn ServerCertVerifier>,
    chain: Vec<CertificateDer<'static>>,
    key: PrivateKeyDer<'static>,
) -> Result<Arc<ClientConfig>, rustls::Error> {
    let mut config = ClientConfig::builder_with_provider(provider.clone())
        .with_protocol_versions(&[&rustls::version::TLS13])?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(Nodes::new(servers)))
        .with_client_auth_cert(chain, key)?;
    config.alpn_protocols = vec![H2.to_vec()];
    config.resumption = Resumption::disabled();
    Ok(Arc::new(config))
}

fn check(
    chain: &[CertificateDer<'static>],
    name: &ServerName<'static>,
    servers: &dyn ServerCertVerifier,
    clients: &dyn ClientCertVerifier,
) -> Result<Validity, String> {
    let (own, between) = chain.split_first().ok_or("holds no certificate")?;
    let in_words = |error: rustls::Error| match error {
        rustls::Error::InvalidCertificate(error) => fault(&error),
        other => format!("cannot be used: {other}"),
    };
    let now = UnixTime::now();
    let at = |time: UnixTime| servers.verify_server_cert(own, between, name, &[], time);
    at(now).map_err(in_words)?;
    clients
        .verify_client_cert(own, between, now)
        .map_err(in_words)?;
    Validity::found(at)
}
