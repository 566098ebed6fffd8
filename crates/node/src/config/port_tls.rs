use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use shoal_ports::settings;
use shoal_rpc::ListenerFiles;

use super::Period;

settings! {
    /// TLS 1.3 and 1.2 ([TLS](tls.md)). With certificate and key, the port serves only TLS.
    #[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
    #[serde(default, deny_unknown_fields, expecting = "a table")]
    pub struct PortTls {
        /// PEM file: certificate, then intermediates.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub certificate: Option<PathBuf> = None,
        /// PEM file: unencrypted private key.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub key: Option<PathBuf> = None,
        /// PEM file: authorities of client certificates. If set, the port requests a certificate.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub client_authority: Option<PathBuf> = None,
        /// Whether clients need a certificate. Shoal always refuses invalid ones.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub client_certificate: Option<ClientCertificate> = None,
        /// How often Shoal rereads the TLS files. Shoal ignores unusable changes.
        pub reread: Period = Period::seconds(30),
        /// Time limit of a TLS handshake, including the wait due to `handshakes`.
        pub handshake_timeout: Period = Period::seconds(10),
        /// Maximum concurrent TLS handshakes. Further connections wait.
        pub handshakes: usize = 256,
    }
}

/// Whether clients must show a certificate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ClientCertificate {
    /// Needed (default).
    Required,
    /// Not needed.
    Optional,
}

impl PortTls {
    /// `None` if TLS is off.
    ///
    /// # Errors
    ///
    /// The setting in this table that is missing or needs another, and what to do.
    pub(crate) fn files(
        &self,
        table: &'static str,
    ) -> Result<Option<ListenerFiles>, (&'static str, String)> {
        let files = [
            ("certificate", &self.certificate),
            ("key", &self.key),
            ("client_authority", &self.client_authority),
        ];
        let is_empty =
            |file: &Option<PathBuf>| file.as_ref().is_some_and(|it| it.as_os_str().is_empty());
        if let Some((setting, _)) = files.iter().find(|(_, file)| is_empty(file)) {
            return Err((setting, "must name a file".to_owned()));
        }
        if self.client_certificate.is_some() && self.client_authority.is_none() {
            let why =
                "has no meaning without client_authority, which names who issues the certificates";
            return Err(("client_certificate", why.to_owned()));
        }
        let missing = |setting| {
            (
                setting,
                "is not set: TLS needs certificate and key".to_owned(),
            )
        };
        let (certificate, key) = match (&self.certificate, &self.key) {
            (Some(certificate), Some(key)) => (certificate.clone(), key.clone()),
            (Some(_), None) => return Err(missing("key")),
            (None, Some(_)) => return Err(missing("certificate")),
            (None, None) if self.client_authority.is_some() => return Err(missing("certificate")),
            (None, None) => return Ok(None),
        };
        Ok(Some(ListenerFiles {
            setting: table,
            certificate,
            key,
            client_authority: self.client_authority.clone(),
            client_certificate_optional: self.client_certificate
                == Some(ClientCertificate::Optional),
        }))
    }
}
