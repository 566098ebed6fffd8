//! `server.admin_token`: what the operators' console asks for.

use std::fs;
use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Secret;

/// Shorter ones could be guessed.
const LEAST_BYTES: usize = 16;

/// Where the console's token is.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum AdminToken {
    /// In a file; white space around it is ignored.
    File(PathBuf),
    /// Here.
    Value(Secret),
}

impl AdminToken {
    /// Reads the token.
    ///
    /// # Errors
    /// One sentence, when the file cannot be read, or its text cannot be a token.
    pub fn read(&self) -> Result<Secret, String> {
        let (text, place) = match self {
            Self::File(path) => {
                let place = path.display().to_string();
                let text = fs::read_to_string(path);
                let text = text.map_err(|error| format!("cannot read {place}: {error}"))?;
                (text.trim().to_owned(), place)
            }
            Self::Value(secret) => (secret.expose().to_owned(), "the value".to_owned()),
        };
        if text.len() < LEAST_BYTES {
            return Err(format!(
                "the token in {place} has {} bytes, and needs at least {LEAST_BYTES} random ones",
                text.len()
            ));
        }
        if !text.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(format!(
                "the token in {place} must be visible ASCII characters without spaces, as an \
                 Authorization header takes them"
            ));
        }
        Ok(Secret::new(text))
    }
}
