use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use shoal_ports::settings;
use shoal_rpc::TlsFiles;

use super::Period;

settings! {
    /// The certificates that the processes of a cluster show one another ([TLS](tls.md)).
    #[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
    #[serde(default, deny_unknown_fields, expecting = "a table")]
    pub struct ClusterTls {
        /// PEM file: certificate (server auth and client auth), then intermediates.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub certificate: Option<PathBuf> = None,
        /// PEM file: unencrypted private key.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub key: Option<PathBuf> = None,
        /// PEM file: authorities of the cluster's certificates.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub authority: Option<PathBuf> = None,
        /// DNS name that only this cluster's certificates carry. It need not resolve.
        pub name: String = "shoal".to_owned(),
        /// How often Shoal rereads the TLS files. Shoal ignores unusable changes.
        pub reread: Period = Period::seconds(30),
        /// Also accepts and dials plaintext, while you turn TLS on or off.
        pub allow_plaintext: bool = false,
    }
}

impl ClusterTls {
    /// `None` if TLS is off.
    ///
    /// # Errors
    ///
    /// The setting that is missing or needs another, and what to do.
    pub(crate) fn files(&self) -> Result<Option<TlsFiles>, (&'static str, String)> {
        let files = [
            ("cluster.tls.certificate", &self.certificate),
            ("cluster.tls.key", &self.key),
            ("cluster.tls.authority", &self.authority),
        ];
        let (Some(certificate), Some(key), Some(authority)) =
            (&self.certificate, &self.key, &self.authority)
        else {
            let given = files.iter().any(|(_, file)| file.is_some());
            let missing = files.iter().find(|(_, file)| file.is_none());
            return match missing {
                Some((setting, _)) if given => Err((
                    setting,
                    "is not set: TLS between processes needs certificate, key and authority"
                        .to_owned(),
                )),
                _ if self.allow_plaintext => Err((
                    "cluster.tls.allow_plaintext",
                    "without certificate, key and authority there is nothing but plaintext"
                        .to_owned(),
                )),
                _ => Ok(None),
            };
        };
        let empty = files.iter().find(|(_, file)| {
            file.as_ref()
                .is_some_and(|path| path.as_os_str().is_empty())
        });
        if let Some((setting, _)) = empty {
            return Err((setting, "must name a file".to_owned()));
        }
        shoal_rpc::check_name(&self.name)
            .map_err(|error| ("cluster.tls.name", error.to_string()))?;
        Ok(Some(TlsFiles {
            certificate: certificate.clone(),
            key: key.clone(),
            authority: authority.clone(),
            name: self.name.clone(),
            allow_plaintext: self.allow_plaintext,
            for_node: false,
        }))
    }
}
