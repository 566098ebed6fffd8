use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use shoal_ports::{Secret, settings};

use super::super::check_url;
use super::WHAT;

pub(super) const GRANT: &str = "client_credentials";
pub(super) const CLIENT_ASSERTION: &str = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer";
const ISSUER: &str = "an authorization server";

settings! {
    /// Shoal's own token for a server, by OAuth client credentials. Requests for it use the certificates and proxies of
    /// the server's `tls`.
    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
    #[serde(default, deny_unknown_fields, expecting = "a table with client_id")]
    #[schemars(rename = "ClientCredentials")]
    pub struct ClientCredentialsConfig {
        /// Client id at the authorization server; required.
        #[serde(skip_serializing_if = "String::is_empty")]
        pub client_id: String = String::new(),
        /// Client secret.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub client_secret: Option<Secret> = None,
        /// File with the client secret, read for each token.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub client_secret_file: Option<PathBuf> = None,
        /// PEM file: private key (P-256, P-384, Ed25519 or RSA) to sign a JWT (`private_key_jwt`), instead of a secret.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub private_key_file: Option<PathBuf> = None,
        /// Name of the private key (`kid`), if the authorization server needs it.
        #[serde(skip_serializing_if = "String::is_empty")]
        pub key_id: String = String::new(),
        /// How Shoal sends the client secret.
        pub authentication: ClientAuthentication = ClientAuthentication::Auto,
        /// URL of the token endpoint; by default from the issuer's metadata.
        #[serde(skip_serializing_if = "String::is_empty")]
        pub token_endpoint: String = String::new(),
        /// Authorization server's identifier; by default from the server's 401 answer.
        #[serde(skip_serializing_if = "String::is_empty")]
        pub issuer: String = String::new(),
        /// Server that the token is for (RFC 8707); by default from the server's metadata, or else its URL.
        #[serde(skip_serializing_if = "String::is_empty")]
        pub resource: String = String::new(),
        /// Parameter that Auth0 and others need instead of `resource`.
        #[serde(skip_serializing_if = "String::is_empty")]
        pub audience: String = String::new(),
        /// Scopes, separated by spaces; by default those that the server names.
        #[serde(skip_serializing_if = "String::is_empty")]
        pub scope: String = String::new(),
    }
}

/// How a client's secret is sent to a token endpoint.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ClientAuthentication {
    /// `basic`, unless the authorization server supports only `post`.
    #[default]
    Auto,
    /// `client_secret_basic`.
    Basic,
    /// `client_secret_post`.
    Post,
}

impl ClientCredentialsConfig {
    pub(in super::super) fn is_set(&self) -> bool {
        !self.client_id.is_empty()
    }

    pub(super) fn is_fixed(&self) -> bool {
        !self.token_endpoint.is_empty()
    }

    pub(super) fn is_discovered(&self) -> bool {
        !self.is_fixed() && self.issuer.is_empty()
    }

    pub(in super::super) fn named(&self) -> impl Iterator<Item = reqwest::Url> {
        let named = [&self.token_endpoint, &self.issuer];
        named.into_iter().filter_map(|url| url.parse().ok())
    }

    pub(in super::super) fn check(&self) -> Result<(), String> {
        if !self.is_set() {
            return match *self == Self::default() {
                true => Ok(()),
                false => Err("client_id is missing".to_owned()),
            };
        }
        let secrets = [
            self.client_secret.is_some(),
            self.client_secret_file.is_some(),
            self.private_key_file.is_some(),
        ];
        if secrets.into_iter().filter(|given| *given).count() != 1 {
            let one = "give one of client_secret, client_secret_file and private_key_file";
            return Err(one.to_owned());
        }
        if !self.key_id.is_empty() && self.private_key_file.is_none() {
            return Err("key_id needs a private_key_file".to_owned());
        }
        for (url, what) in [(&self.token_endpoint, WHAT), (&self.issuer, ISSUER)] {
            if !url.is_empty() {
                check_url(url, what)?;
            }
        }
        Ok(())
    }
}
