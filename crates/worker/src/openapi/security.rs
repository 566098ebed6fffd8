use std::collections::BTreeMap;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;

use super::config::{CredentialConfig, OpenApiConfig};
use super::document::{Document, ParameterLocation, Requirement, SecurityScheme};
use crate::http_client::read_secret;

#[derive(Clone, Debug)]
pub(super) struct RequestCredential {
    place: CredentialLocation,
    config: CredentialConfig,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum CredentialLocation {
    Header(String),
    Query(String),
    Cookie(String),
    Bearer,
    Basic,
}

pub(super) struct Schemes {
    known: BTreeMap<String, SecurityScheme>,
    usual: Vec<Requirement>,
}

impl Schemes {
    /// Fails if the configuration names an unknown scheme, or gives it the wrong kind of credential.
    pub(super) fn of(document: &Document, config: &OpenApiConfig) -> Result<Self, String> {
        let written = document
            .member("components")
            .and_then(|all| all.get("securitySchemes"));
        let written = written
            .and_then(|schemes| schemes.as_object())
            .into_iter()
            .flatten();
        // Shoal cannot satisfy a scheme that it cannot parse.
        let known =
            written.filter_map(|(name, scheme)| Some((name.clone(), document.read(scheme).ok()?)));
        let known: BTreeMap<String, SecurityScheme> = known.collect();
        for (name, credential) in &config.security {
            let Some(scheme) = known.get(name) else {
                let names: Vec<&str> = known.keys().map(String::as_str).collect();
                return Err(format!(
                    "security.{name}: the document has no such security scheme; it has: {}",
                    names.join(", ")
                ));
            };
            let place = place(scheme).ok_or_else(|| {
                format!(
                    "security.{name}: a scheme of this kind is not supported; set headers instead"
                )
            })?;
            if (place == CredentialLocation::Basic) == credential.username.is_empty() {
                return Err(format!(
                    "security.{name}: a username goes with HTTP Basic, and only with that"
                ));
            }
        }
        let usual = document.member("security");
        let usual = usual.map(|usual| document.read(usual)).transpose()?;
        Ok(Self {
            known,
            usual: usual.unwrap_or_default(),
        })
    }

    /// Returns the credentials of the first completely configured alternative. They are empty if
    /// the operation needs none. If no alternative is configured, returns `None`, and Shoal calls
    /// without credentials.
    ///
    /// # Errors
    /// Each configured alternative puts two credentials into one place.
    pub(super) fn choose(
        &self,
        own: Option<&[Requirement]>,
        config: &OpenApiConfig,
    ) -> Result<Option<Vec<RequestCredential>>, String> {
        let alternatives = own.unwrap_or(&self.usual);
        if alternatives.is_empty() {
            return Ok(Some(Vec::new()));
        }
        // An empty alternative allows calls without credentials; configured ones are preferred.
        let (empty, full): (Vec<_>, Vec<_>) =
            alternatives.iter().partition(|needed| needed.is_empty());
        let mut wrong = None;
        for needed in full {
            let Some(credentials) = self.satisfy(needed, config) else {
                continue;
            };
            match conflict(needed, &credentials) {
                None => return Ok(Some(credentials)),
                Some(why) => wrong = wrong.or(Some(why)),
            }
        }
        match wrong {
            _ if !empty.is_empty() => Ok(Some(Vec::new())),
            Some(why) => Err(why),
            None => Ok(None),
        }
    }

    /// Parameters that carry keys. Tools omit them, so that models are not asked for secrets.
    pub(super) fn keys(&self, own: Option<&[Requirement]>) -> Vec<(ParameterLocation, &str)> {
        let alternatives = own.unwrap_or(&self.usual);
        let named = alternatives.iter().flat_map(Requirement::keys);
        let keys = named.filter_map(|name| match self.known.get(name)? {
            SecurityScheme::ApiKey { name, location } if *location != ParameterLocation::Path => {
                Some((*location, name.as_str()))
            }
            _ => None,
        });
        keys.collect()
    }

    fn satisfy(
        &self,
        needed: &Requirement,
        config: &OpenApiConfig,
    ) -> Option<Vec<RequestCredential>> {
        let mut credentials = Vec::new();
        for name in needed.keys() {
            let scheme = self.known.get(name)?;
            if matches!(scheme, SecurityScheme::MutualTLS {}) && config.tls.certificate.is_some() {
                continue;
            }
            credentials.push(RequestCredential {
                place: place(scheme)?,
                config: config.security.get(name)?.clone(),
            });
        }
        Some(credentials)
    }
}

impl RequestCredential {
    pub(super) fn place(&self) -> &CredentialLocation {
        &self.place
    }

    /// The error names the secret's file, but quotes nothing of it.
    pub(super) async fn value(&self) -> Result<String, String> {
        let secret = match (&self.config.secret, &self.config.secret_file) {
            (Some(secret), _) => secret.expose().to_owned(),
            (None, Some(file)) => read_secret(file).await?.trim().to_owned(),
            (None, None) => return Err("a credential has no secret".to_owned()),
        };
        Ok(match self.place {
            CredentialLocation::Bearer => format!("Bearer {secret}"),
            CredentialLocation::Basic => {
                let pair = format!("{}:{secret}", self.config.username);
                format!("Basic {}", BASE64_STANDARD.encode(pair))
            }
            _ => secret,
        })
    }
}

fn conflict(needed: &Requirement, credentials: &[RequestCredential]) -> Option<String> {
    for (at, credential) in credentials.iter().enumerate() {
        let place = credential.place.written();
        let taken = |other: &RequestCredential| other.place.written() == place;
        if credentials[..at].iter().any(taken) {
            let names: Vec<&str> = needed.keys().map(String::as_str).collect();
            return Some(format!(
                "its security asks for {} at once, and two of them go to the same {place}",
                names.join(" and ")
            ));
        }
    }
    None
}

impl CredentialLocation {
    /// Returns the place in the request, because two locations may be one place.
    fn written(&self) -> String {
        match self {
            Self::Header(name) => format!("header {}", name.to_ascii_lowercase()),
            Self::Bearer | Self::Basic => "header authorization".to_owned(),
            Self::Query(name) => format!("query parameter {name}"),
            Self::Cookie(name) => format!("cookie {name}"),
        }
    }
}

fn place(scheme: &SecurityScheme) -> Option<CredentialLocation> {
    match scheme {
        SecurityScheme::ApiKey { name, location } => match location {
            ParameterLocation::Header => Some(CredentialLocation::Header(name.clone())),
            ParameterLocation::Query => Some(CredentialLocation::Query(name.clone())),
            ParameterLocation::Cookie => Some(CredentialLocation::Cookie(name.clone())),
            ParameterLocation::Path | ParameterLocation::QueryString | ParameterLocation::Bound => {
                None
            }
        },
        SecurityScheme::Http { scheme } if scheme.eq_ignore_ascii_case("basic") => {
            Some(CredentialLocation::Basic)
        }
        SecurityScheme::Http { scheme } if scheme.eq_ignore_ascii_case("bearer") => {
            Some(CredentialLocation::Bearer)
        }
        SecurityScheme::Oauth2 {} | SecurityScheme::OpenIdConnect {} => {
            Some(CredentialLocation::Bearer)
        }
        SecurityScheme::Http { .. } | SecurityScheme::MutualTLS {} => None,
    }
}
