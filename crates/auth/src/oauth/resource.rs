//! The resource's metadata (RFC 9728), and challenges (RFC 6750, RFC 9449).

use bytes::Bytes;
use serde_json::json;
use shoal_ports::{AuthError, ResourceMetadata};
use url::Url;

use super::dpop::ALGORITHMS;
use crate::config::{Auth, Dpop};

const WELL_KNOWN: &str = "/.well-known/oauth-protected-resource";

pub(crate) struct ProtectedResource {
    metadata: ResourceMetadata,
    metadata_url: String,
    required: String,
    dpop: Dpop,
}

impl ProtectedResource {
    pub(crate) fn new(auth: &Auth, issuers: &[&str], resource: &Url, path: &str) -> Self {
        let public = resource.path().trim_end_matches('/');
        let mut paths = vec![
            WELL_KNOWN.to_owned(),
            format!("{WELL_KNOWN}{public}"),
            format!("{WELL_KNOWN}{path}"),
        ];
        paths.sort_unstable();
        paths.dedup();
        let mut url = resource.clone();
        url.set_path(&format!("{WELL_KNOWN}{public}"));
        let supported = match auth.scopes_supported.is_empty() {
            true => &auth.required_scopes,
            false => &auth.scopes_supported,
        };
        let mut document = json!({
            "resource": auth.resource,
            "authorization_servers": issuers,
            "bearer_methods_supported": ["header"],
        });
        if !supported.is_empty() {
            document["scopes_supported"] = json!(supported);
        }
        if auth.dpop != Dpop::Off {
            document["dpop_signing_alg_values_supported"] = json!(ALGORITHMS);
            document["dpop_bound_access_tokens_required"] = json!(auth.dpop == Dpop::Required);
        }
        Self {
            metadata: ResourceMetadata {
                paths,
                document: Bytes::from(document.to_string()),
            },
            metadata_url: url.into(),
            required: auth.required_scopes.join(" "),
            dpop: auth.dpop,
        }
    }

    pub(crate) fn metadata(&self) -> ResourceMetadata {
        self.metadata.clone()
    }

    /// Challenges contain no text from the request.
    pub(crate) fn challenges(&self, why: &AuthError) -> Vec<String> {
        let (error, scope) = match why {
            AuthError::Unavailable { .. } | AuthError::TooManyProofs { .. } => return Vec::new(),
            AuthError::Missing => (None, self.required.clone()),
            AuthError::Scope(needed) => (Some("insufficient_scope"), needed.join(" ")),
            AuthError::Proof(_) => (Some("invalid_dpop_proof"), self.required.clone()),
            AuthError::Invalid | AuthError::Token(_) => {
                (Some("invalid_token"), self.required.clone())
            }
        };
        let mut parameters = vec![("resource_metadata", self.metadata_url.clone())];
        if !scope.is_empty() {
            parameters.push(("scope", scope));
        }
        if let Some(error) = error {
            parameters.push(("error", error.to_owned()));
            parameters.push(("error_description", why.to_string()));
        }
        let written = parameters.iter();
        let written = written.map(|(name, value)| format!("{name}=\"{value}\""));
        let written = written.collect::<Vec<_>>().join(", ");
        let bearer = format!("Bearer {written}");
        let algorithms = ALGORITHMS.map(|algorithm| algorithm.name()).join(" ");
        let dpop = format!("DPoP {written}, algs=\"{algorithms}\"");
        match (self.dpop, why) {
            (Dpop::Off, _) => vec![bearer],
            (Dpop::Required, _) | (_, AuthError::Proof(_)) => vec![dpop],
            (Dpop::Accepted, _) => vec![bearer, dpop],
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};
    use shoal_ports::{AuthError, TokenFault};

    use super::ProtectedResource;
    use crate::config::{Auth, Dpop};

    fn resource(dpop: Dpop) -> ProtectedResource {
        let auth = Auth {
            resource: "https://mcp.example.com/tools/mcp".to_owned(),
            required_scopes: vec!["mcp".to_owned()],
            dpop,
            ..Auth::default()
        };
        let url = auth.resource.parse().unwrap();
        ProtectedResource::new(&auth, &["https://id.example.com"], &url, "/mcp")
    }

    #[test]
    fn the_document_is_at_the_root_and_at_the_paths_of_the_resource() {
        let metadata = resource(Dpop::Off).metadata();
        let due = [
            "/.well-known/oauth-protected-resource",
            "/.well-known/oauth-protected-resource/mcp",
            "/.well-known/oauth-protected-resource/tools/mcp",
        ];
        assert_eq!(metadata.paths, due);
        let document: Value = serde_json::from_slice(&metadata.document).unwrap();
        let due = json!({
            "resource": "https://mcp.example.com/tools/mcp",
            "authorization_servers": ["https://id.example.com"],
            "bearer_methods_supported": ["header"],
            "scopes_supported": ["mcp"],
        });
        assert_eq!(document, due);
    }

    #[test]
    fn a_challenge_says_where_to_go_and_what_to_ask_for() {
        let url = "https://mcp.example.com/.well-known/oauth-protected-resource/tools/mcp";
        let bearer = resource(Dpop::Off);
        let due = format!("Bearer resource_metadata=\"{url}\", scope=\"mcp\"");
        assert_eq!(bearer.challenges(&AuthError::Missing), [due]);
        let more = AuthError::Scope(["mcp".to_owned(), "write".to_owned()].into());
        let told = bearer.challenges(&more).remove(0);
        assert!(
            told.contains("scope=\"mcp write\", error=\"insufficient_scope\""),
            "{told}"
        );
        let expired = AuthError::Token(TokenFault::Expired);
        let told = bearer.challenges(&expired).remove(0);
        assert!(told.contains("error=\"invalid_token\""), "{told}");
        assert!(told.contains("it has expired"), "{told}");

        let both = resource(Dpop::Accepted).challenges(&expired);
        assert!(
            both[0].starts_with("Bearer ") && both[1].starts_with("DPoP "),
            "{both:?}"
        );
        assert!(
            both[1].contains("algs=\"ES256 EdDSA RS256 PS256\""),
            "{both:?}"
        );
        let bound = resource(Dpop::Required).challenges(&expired);
        assert!(
            bound.len() == 1 && bound[0].starts_with("DPoP "),
            "{bound:?}"
        );
    }
}
