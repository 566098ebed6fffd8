use shoal_rpc::{ListenerTls, Tls, TlsFiles};
use shoal_telemetry::metrics::{CertificateValidity, Registration, TlsPort, metrics};

use crate::config::{PortTls, Role, Settings, cluster_tls};
use crate::http::HttpTls;

pub(crate) struct Certificates {
    pub(crate) links: Option<Tls>,
    clients: Option<ListenerTls>,
    operators: Option<ListenerTls>,
}

impl Certificates {
    /// Opens the settings' certificates.
    ///
    /// # Errors
    /// Names a file that cannot be used, and why.
    pub(crate) fn open(settings: &Settings) -> Result<Self, String> {
        let server = &settings.server;
        let clients = match settings.node.is(Role::Edge) {
            true => port("server.tls", &server.tls)?,
            false => None,
        };
        Ok(Self {
            links: links(settings)?,
            clients,
            operators: port("server.admin_tls", &server.admin_tls)?,
        })
    }

    pub(crate) fn renew(&self, settings: &Settings) {
        let server = &settings.server;
        if let Some(links) = &self.links {
            if settings.cluster.tls.allow_plaintext {
                tracing::warn!(
                    "cluster.tls.allow_plaintext = true: whoever reaches cluster.listen needs no certificate; end it \
                     with the rollout that it is for"
                );
            }
            links.renew(settings.cluster.tls.reread.get());
        }
        if let Some(clients) = &self.clients {
            clients.renew(server.tls.reread.get());
        }
        if let Some(operators) = &self.operators {
            operators.renew(server.admin_tls.reread.get());
        }
    }

    pub(crate) fn clients(&self, settings: &Settings) -> Option<HttpTls> {
        let tls = self.clients.clone()?;
        Some(http(tls, TlsPort::Clients, &settings.server.tls))
    }

    pub(crate) fn operators(&self, settings: &Settings) -> Option<HttpTls> {
        let tls = self.operators.clone()?;
        Some(http(tls, TlsPort::Operators, &settings.server.admin_tls))
    }

    pub(crate) fn observe_ports(&self) -> Vec<Registration> {
        let ports = [
            (TlsPort::Clients, &self.clients),
            (TlsPort::Operators, &self.operators),
        ];
        let ports = ports
            .into_iter()
            .filter_map(|(port, tls)| Some((port, tls.clone()?)));
        ports
            .flat_map(|(port, tls)| {
                metrics().tls.observe_certificate(port, move || {
                    let validity = tls.validity();
                    CertificateValidity {
                        not_before: validity.not_before,
                        not_after: validity.not_after,
                    }
                })
            })
            .collect()
    }
}

/// Opens the TLS of the cluster's links, if it is configured.
///
/// # Errors
/// Names a file that cannot be used, and why.
pub(crate) fn links(settings: &Settings) -> Result<Option<Tls>, String> {
    let files = cluster_tls::files(&settings.cluster.tls);
    let files = files.map_err(|(setting, reason)| format!("{setting}: {reason}"))?;
    let files = files.map(|files| TlsFiles {
        for_node: settings.node.is(Role::Edge) || settings.node.is(Role::Session),
        ..files
    });
    let opened = files.map(Tls::open).transpose();
    opened.map_err(|error| format!("cluster.tls: {error}"))
}

fn port(table: &'static str, tls: &PortTls) -> Result<Option<ListenerTls>, String> {
    let files = tls.files(table);
    let files = files.map_err(|(setting, reason)| format!("{table}.{setting}: {reason}"))?;
    let opened = files.map(ListenerTls::open).transpose();
    opened.map_err(|error| format!("{table}: {error}"))
}

fn http(tls: ListenerTls, port: TlsPort, settings: &PortTls) -> HttpTls {
    HttpTls::new(
        tls,
        port,
        settings.handshakes,
        settings.handshake_timeout.get(),
    )
}

/// Whether this machine has all configured certificate files, which `shoal config check` does not need.
pub(crate) fn are_there(settings: &Settings) -> bool {
    let (server, links) = (&settings.server, &settings.cluster.tls);
    let files = [
        &links.certificate,
        &links.key,
        &links.authority,
        &server.tls.certificate,
        &server.tls.key,
        &server.tls.client_authority,
        &server.admin_tls.certificate,
        &server.admin_tls.key,
        &server.admin_tls.client_authority,
    ];
    files.into_iter().flatten().all(|file| file.exists())
}
