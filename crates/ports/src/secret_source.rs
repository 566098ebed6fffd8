use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Secret, read_file};

/// Minimum bytes of a secret, against guessing.
const LEAST_BYTES: usize = 16;
const LONGEST: u64 = 64 << 10;

/// Where a secret is.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum SecretSource {
    /// In a file; white space around it is ignored.
    File(PathBuf),
    /// Here.
    Value(Secret),
}

impl SecretSource {
    /// Reads the secret, and describes its location.
    ///
    /// # Errors
    ///
    /// One sentence, if the file cannot be read or the secret is too short.
    pub fn read(&self) -> Result<(Vec<u8>, String), String> {
        let (secret, place) = match self {
            Self::File(path) => {
                let place = path.display().to_string();
                let read = read_file(path, LONGEST);
                let secret = read.map_err(|error| format!("cannot read {place}: {error}"))?;
                (secret.trim_ascii().to_vec(), place)
            }
            Self::Value(secret) => (secret.expose().into(), "the value".to_owned()),
        };
        if secret.len() < LEAST_BYTES {
            return Err(format!(
                "the secret in {place} has {} bytes, and needs at least {LEAST_BYTES} random ones",
                secret.len()
            ));
        }
        Ok((secret, place))
    }

    /// Reads a secret that is a bearer token.
    ///
    /// # Errors
    ///
    /// As for [`read`](Self::read), and if the text cannot be a token.
    pub fn read_token(&self) -> Result<Secret, String> {
        let (token, place) = self.read()?;
        match String::from_utf8(token) {
            Ok(token) if token.bytes().all(|byte| byte.is_ascii_graphic()) => {
                Ok(Secret::new(token))
            }
            _ => Err(format!(
                "the token in {place} must be visible ASCII characters without spaces, as an \
                 Authorization header takes them"
            )),
        }
    }
}
