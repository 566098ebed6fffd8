//! The defaults of each `issuer_kind`.

use url::Url;

use super::entra;
use super::issuer::{AskedTokens, Issuer, IssuerKind, Protocol};
use super::resolved::ResolvedIssuer;

/// Claims that name a token's client: in RFC 9068, OpenID Connect, Okta, and Entra's version 1.0.
pub(crate) const CLIENT_CLAIMS: [&str; 4] = ["client_id", "azp", "cid", "appid"];

pub(super) struct Defaults {
    pub(super) issuer: &'static str,
    pub(super) audience_claims: &'static [&'static str],
    pub(super) principal_claims: &'static [&'static str],
    pub(super) scope_claims: &'static [&'static str],
    pub(super) required_claims: &'static [(&'static str, &'static [&'static str])],
    pub(super) aliases: &'static [&'static str],
    pub(super) asked: Option<DefaultAsked>,
}

#[derive(Clone, Copy)]
pub(super) struct DefaultAsked {
    pub(super) endpoint: &'static str,
    pub(super) protocol: Protocol,
    pub(super) tokens: AskedTokens,
}

const OTHER: Defaults = Defaults {
    issuer: "",
    audience_claims: &["aud"],
    principal_claims: &["sub"],
    scope_claims: &["scope", "scp"],
    required_claims: &[],
    aliases: &[],
    asked: None,
};

impl Defaults {
    pub(super) fn of(kind: Option<IssuerKind>) -> Self {
        match kind {
            // A user's token has `scp`, an application's `roles`.
            Some(IssuerKind::Entra) => Self {
                scope_claims: &["scp", "roles"],
                ..OTHER
            },
            Some(IssuerKind::Okta) => Self {
                scope_claims: &["scp"],
                ..OTHER
            },
            Some(IssuerKind::Auth0) => Self {
                scope_claims: &["scope", "permissions"],
                ..OTHER
            },
            // A service account's lightweight token has no `sub`. An ID token has the same signing key, but
            // is no access token.
            Some(IssuerKind::Keycloak) => Self {
                principal_claims: &["sub", "client_id", "azp"],
                scope_claims: &["scope", "realm_access.roles"],
                required_claims: &[("typ", &["Bearer", "DPoP"])],
                ..OTHER
            },
            Some(IssuerKind::Cognito) => Self {
                audience_claims: &["aud", "client_id"],
                scope_claims: &["scope"],
                required_claims: &[("token_use", &["access"])],
                ..OTHER
            },
            Some(IssuerKind::Google) => Self {
                issuer: "https://accounts.google.com",
                scope_claims: &["scope"],
                aliases: &["accounts.google.com"],
                asked: Some(DefaultAsked {
                    endpoint: "https://oauth2.googleapis.com/tokeninfo",
                    protocol: Protocol::TokenInfo,
                    tokens: AskedTokens::Opaque,
                }),
                ..OTHER
            },
            None => OTHER,
        }
    }
}

/// Refuses settings under which Shoal would accept none of the issuer's tokens, or nearly all.
pub(super) fn expect_usable(issuer: &Issuer, resolved: &ResolvedIssuer) -> Result<(), String> {
    let url = Url::parse(&resolved.server).map_err(|error| error.to_string())?;
    let path = url.path().trim_end_matches('/');
    let everybodys = |fits: &dyn Fn(&String) -> bool| {
        issuer.clients.is_empty() && resolved.audience.iter().any(fits)
    };
    match issuer.issuer_kind {
        Some(IssuerKind::Entra) if issuer.audience.is_empty() => Err(
            "set audience to the Application (client) ID of the API that you registered: tokens of version 2.0 do not name a URL"
                .to_owned(),
        ),
        Some(IssuerKind::Google) if issuer.audience.is_empty() => Err(
            "set audience to the client ID that you registered, such as NUMBER-TEXT.apps.googleusercontent.com: Google's tokens \
             name no other audience"
                .to_owned(),
        ),
        Some(IssuerKind::Okta) if !path.starts_with("/oauth2/") && resolved.asked.is_none() => Err(
            "only Okta can verify access tokens of its org authorization server: use a custom one, such as https://ORG.okta.com/oauth2/default, or introspection"
                .to_owned(),
        ),
        Some(IssuerKind::Auth0) if !path.is_empty() => {
            Err("an issuer of Auth0 is https://TENANT.auth0.com/ or your own domain, without a path".to_owned())
        }
        Some(IssuerKind::Auth0) if everybodys(&|aud| aud.ends_with("/userinfo")) => Err(
            "audience names /userinfo, which is in the tokens for every API of the tenant: use the identifier of your API, or name \
             clients"
                .to_owned(),
        ),
        Some(IssuerKind::Keycloak) if !path.contains("/realms/") => {
            Err("an issuer of Keycloak is https://HOST/realms/REALM".to_owned())
        }
        Some(IssuerKind::Keycloak) if everybodys(&|aud| aud == "account") => Err(
            "audience names \"account\", which is in nearly every token of the realm: use an audience mapper, or name clients"
                .to_owned(),
        ),
        Some(IssuerKind::Cognito) if host_ends(&url, ".amazoncognito.com") => Err(
            "that is the domain of the login pages: the issuer is https://cognito-idp.REGION.amazonaws.com/POOL".to_owned(),
        ),
        None if entra::names_several_tenants(&resolved.server) => Err(
            "no token names such an issuer, since each names its own tenant: set issuer_kind = \"entra\", and tenants to the ids \
             of yours"
                .to_owned(),
        ),
        _ => Ok(()),
    }
}

fn host_ends(url: &Url, with: &str) -> bool {
    url.host_str().is_some_and(|host| host.ends_with(with))
}

/// Refuses a client claim as the audience unless `clients` is set: otherwise any client's token would be accepted.
pub(super) fn expect_bound(issuer: &Issuer, resolved: &ResolvedIssuer) -> Result<(), String> {
    let mut claims = resolved.audience_claims.iter();
    let of_client = claims.find(|claim| CLIENT_CLAIMS.contains(&claim.as_str()));
    match of_client {
        Some(claim) if issuer.clients.is_empty() => Err(format!(
            "audience_claims has {claim:?}, which names the client that got a token and not its audience: list the ids of your clients in clients, or set audience_claims = [\"aud\"] if the issuer's tokens have that claim"
        )),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use crate::config::{AskedTokens, Introspection, Issuer, IssuerKind, Protocol};

    const RESOURCE: &str = "https://mcp.example.com/mcp";
    const TENANT: &str = "72f988bf-86f1-41af-91ab-2d7cd011db47";

    type Kind = Option<IssuerKind>;
    type Set = fn(&mut Issuer);

    fn of(kind: Kind, issuer: &str, set: Set) -> Result<(), String> {
        let mut issuer = Issuer {
            issuer_kind: kind,
            issuer: issuer.to_owned(),
            ..Issuer::default()
        };
        set(&mut issuer);
        issuer.resolved(RESOURCE).map(drop)
    }

    fn list(name: &str) -> Vec<String> {
        vec![name.to_owned()]
    }

    #[test]
    fn what_could_take_no_token_or_any_is_refused_with_what_to_write() {
        use IssuerKind::{Auth0, Cognito, Entra, Google, Keycloak, Okta};
        let entra = format!("https://login.microsoftonline.com/{TENANT}/v2.0");
        let refused: [(Kind, &str, Set, &str); 19] = [
            (None, "", |_| {}, "an issuer needs `issuer`"),
            (
                None,
                "https://login.microsoftonline.com/common/v2.0",
                |_| {},
                "issuer_kind = \"entra\"",
            ),
            (
                None,
                "https://id.example.com/{tenantid}",
                |_| {},
                "issuer_kind = \"entra\"",
            ),
            (
                None,
                "https://id.example.com",
                |issuer| issuer.tenants = list(TENANT),
                "one by one",
            ),
            (
                None,
                "https://id.example.com",
                |issuer| issuer.audience_claims = list("azp"),
                "clients",
            ),
            (
                None,
                "https://id.example.com",
                |issuer| issuer.scope_claims = list(""),
                "scope_claims has an empty",
            ),
            (
                None,
                "https://id.example.com",
                |issuer| issuer.required_claims = [("hd".to_owned(), Vec::new())].into(),
                "allowed text for \"hd\"",
            ),
            (
                None,
                "https://id.example.com",
                |issuer| issuer.introspection = Some(Introspection::default()),
                "client_id and client_secret_file",
            ),
            (
                None,
                "https://id.example.com",
                |issuer| {
                    issuer.introspection = Some(Introspection {
                        protocol: Some(Protocol::TokenInfo),
                        ..Introspection::default()
                    });
                },
                "needs endpoint",
            ),
            (Some(Entra), &entra, |_| {}, "Application (client) ID"),
            (
                Some(Entra),
                "https://login.microsoftonline.com/common/v2.0",
                |issuer| issuer.audience = list("a"),
                "list in tenants",
            ),
            (
                Some(Okta),
                "https://example.okta.com",
                |_| {},
                "/oauth2/default",
            ),
            (
                Some(Auth0),
                "https://a.auth0.com/oauth",
                |_| {},
                "without a path",
            ),
            (
                Some(Auth0),
                "https://a.auth0.com",
                |issuer| issuer.audience = list("https://a.auth0.com/userinfo"),
                "every API",
            ),
            (
                Some(Keycloak),
                "https://id.example.com",
                |_| {},
                "/realms/REALM",
            ),
            (
                Some(Keycloak),
                "https://id.example.com/realms/a",
                |issuer| issuer.audience = list("account"),
                "audience mapper",
            ),
            (
                Some(Cognito),
                "https://cognito-idp.us-west-2.amazonaws.com/us-west-2_EXAMPLE",
                |_| {},
                "audience_claims = [\"aud\"]",
            ),
            (
                Some(Cognito),
                "https://a.auth.us-west-2.amazoncognito.com",
                |issuer| issuer.clients = list("a"),
                "the login pages",
            ),
            (Some(Google), "", |_| {}, "apps.googleusercontent.com"),
        ];
        for (kind, issuer, set, due) in refused {
            let why = of(kind, issuer, set).unwrap_err();
            assert!(why.contains(due), "{kind:?} {issuer}: {why}");
            assert!(why.contains(issuer), "{kind:?} {issuer}: {why}");
        }
        let taken: [(Kind, &str, Set); 7] = [
            (Some(Entra), &entra, |issuer| issuer.audience = list("a")),
            (
                Some(Okta),
                "https://example.okta.com/oauth2/default",
                |_| {},
            ),
            (Some(Auth0), "https://a.auth0.com", |_| {}),
            (
                Some(Keycloak),
                "https://id.example.com/auth/realms/a",
                |_| {},
            ),
            (
                Some(Keycloak),
                "https://id.example.com/realms/a",
                |issuer| (issuer.audience, issuer.clients) = (list("account"), list("claude")),
            ),
            (
                Some(Cognito),
                "https://cognito-idp.us-west-2.amazonaws.com/us-west-2_EXAMPLE",
                |issuer| issuer.audience_claims = list("aud"),
            ),
            (Some(Google), "", |issuer| issuer.audience = list("a")),
        ];
        for (kind, issuer, set) in taken {
            assert_eq!(of(kind, issuer, set), Ok(()), "{kind:?} {issuer}");
        }
    }

    #[test]
    fn what_is_set_counts_before_what_a_kind_sets() {
        let mut issuer = Issuer {
            issuer_kind: Some(IssuerKind::Google),
            audience: list("a"),
            ..Issuer::default()
        };
        let google = issuer.resolved(RESOURCE).unwrap();
        assert_eq!(google.server, "https://accounts.google.com");
        let asked = google.asked.unwrap();
        assert_eq!(
            asked.endpoint.as_deref(),
            Some("https://oauth2.googleapis.com/tokeninfo")
        );
        assert_eq!(
            (asked.protocol, asked.tokens),
            (Protocol::TokenInfo, AskedTokens::Opaque)
        );

        issuer.scope_claims = list("groups");
        issuer.aliases = list("other");
        issuer.introspection = Some(Introspection {
            tokens: Some(AskedTokens::Jwt),
            ..Introspection::default()
        });
        let changed = issuer.resolved(RESOURCE).unwrap();
        assert_eq!(
            (&changed.scope_claims, &changed.tenants[0].aliases),
            (&list("groups"), &list("other"))
        );
        let asked = changed.asked.unwrap();
        assert_eq!(
            (asked.protocol, asked.tokens),
            (Protocol::TokenInfo, AskedTokens::Jwt)
        );
    }
}
