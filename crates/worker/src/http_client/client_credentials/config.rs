//! The settings of Shoal's own token for a server.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use shoal_ports::{Secret, settings};

use super::super::check_url;
use super::WHAT;

pub(super) const GRANT: &str = "client_credentials";
pub(super) const CLIENT_ASSERTION: &str = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer";
/// The word for an issuer in messages.
const ISSUER: &str = "an authorization server";

settings! {
    /// Shoal's own token for the server, by OAuth client credentials. Shoal requests it, and replaces it before it expires
    /// ([more](server-credentials.md#a-token-of-shoals-own)). Requests for it use the certificates and proxies of the server's `tls`.
    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
    #[serde(default, deny_unknown_fields, expecting = "a table with client_id")]
    #[schemars(rename = "ClientCredentials")]
    pub struct ClientCredentialsConfig {
        /// Shoal's name at the authorization server. Without one, Shoal requests no token.
        #[serde(skip_serializing_if = "String::is_empty")]
        pub client_id: String = String::new(),
        /// The secret of that client. `config show` does not print it.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub client_secret: Option<Secret> = None,
        /// A file with the secret, instead. Shoal reads it for each token.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub client_secret_file: Option<PathBuf> = None,
        /// A file with a private key in PEM, instead of a secret: Shoal signs a JWT with it (`private_key_jwt`). A key on P-256 signs with ES256,
        /// on P-384 with ES384, Ed25519 with EdDSA, RSA with RS256. Shoal reads it for each token.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub private_key_file: Option<PathBuf> = None,
        /// The key's name (`kid`), where the authorization server asks for one.
        #[serde(skip_serializing_if = "String::is_empty")]
        pub key_id: String = String::new(),
        /// How the secret is sent: `"basic"` (`client_secret_basic`) or `"post"` (`client_secret_post`). `"auto"` takes what the authorization
        /// server says that it supports, and `"basic"` if it does not say.
        pub authentication: ClientAuthentication = ClientAuthentication::Auto,
        /// The URL of the token endpoint. If unset, Shoal finds it.
        #[serde(skip_serializing_if = "String::is_empty")]
        pub token_endpoint: String = String::new(),
        /// The authorization server's issuer identifier. If this and `token_endpoint` are unset, the server's answer 401 names it.
        #[serde(skip_serializing_if = "String::is_empty")]
        pub issuer: String = String::new(),
        /// Which server the token is for (RFC 8707). If unset, what the server says, or its URL.
        #[serde(skip_serializing_if = "String::is_empty")]
        pub resource: String = String::new(),
        /// The parameter that Auth0 and others require instead of `resource`.
        #[serde(skip_serializing_if = "String::is_empty")]
        pub audience: String = String::new(),
        /// The scopes to request, separated by spaces. If unset, Shoal requests those that the server names.
        #[serde(skip_serializing_if = "String::is_empty")]
        pub scope: String = String::new(),
    }
}

/// How a client's secret is sent to a token endpoint.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ClientAuthentication {
    /// As the authorization server supports it.
    #[default]
    Auto,
    /// As `Authorization: Basic`.
    Basic,
    /// In the form.
    Post,
}

impl ClientCredentialsConfig {
    /// Whether Shoal requests a token.
    pub(in super::super) fn is_set(&self) -> bool {
        !self.client_id.is_empty()
    }

    /// Whether the operator says where tokens are requested.
    pub(super) fn is_fixed(&self) -> bool {
        !self.token_endpoint.is_empty()
    }

    /// Whether only the server tells who grants tokens for it.
    pub(super) fn is_discovered(&self) -> bool {
        !self.is_fixed() && self.issuer.is_empty()
    }

    /// The URLs that the operator has named.
    pub(in super::super) fn named(&self) -> impl Iterator<Item = reqwest::Url> {
        let named = [&self.token_endpoint, &self.issuer];
        named.into_iter().filter_map(|url| url.parse().ok())
    }

    /// Checks what can be checked without a server.
    ///
    /// # Errors
    /// The reason why the settings cannot be used.
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
