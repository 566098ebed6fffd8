pub(crate) mod answer;
pub(crate) mod client;
pub(crate) mod job;
pub(crate) mod listener;
pub(crate) mod request;
pub(crate) mod tools;

use http::HeaderValue;
use serde::Serialize;
use sha2::{Digest as _, Sha256};

/// The era that a client speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Mode {
    /// Revision 2025-11-25: `initialize`, and a session if the server offers one.
    Legacy,
    /// Revision 2026-07-28: self-contained requests.
    Modern,
}

impl Mode {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Legacy => "legacy",
            Self::Modern => "modern",
        }
    }
}

/// Returns the value of the header `Authorization`.
pub(crate) fn bearer(token: &str) -> HeaderValue {
    let value = HeaderValue::from_str(&format!("Bearer {token}"));
    let mut value = value.expect("a token's characters may stand in a header");
    value.set_sensitive(true);
    value
}

/// Returns an entry of Shoal's setting `auth.tokens`.
pub(crate) fn token_entry(name: &str, token: &str) -> String {
    let hash = Sha256::digest(token);
    format!(r#"{{name="{name}",sha256="{hash:x}"}}"#)
}
