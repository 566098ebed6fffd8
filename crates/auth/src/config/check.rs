use std::collections::HashSet;

use url::{Host, Url};

use super::{Auth, AuthMode, Dpop, canonical};

/// A setting with an unusable value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadSetting {
    /// The setting, below `auth`.
    pub setting: &'static str,
    /// Why the value is wrong.
    pub reason: String,
}

fn bad<T>(setting: &'static str, reason: impl Into<String>) -> Result<T, BadSetting> {
    let reason = reason.into();
    Err(BadSetting { setting, reason })
}

impl Auth {
    /// Checks the settings without contacting servers or reading files.
    ///
    /// # Errors
    /// The first unusable setting.
    pub fn check(&self) -> Result<(), BadSetting> {
        if self.mode != AuthMode::OAuth {
            return self.has_nothing_of_oauth();
        }
        if !self.tokens.is_empty() || self.tokens_file.is_some() {
            return bad(
                "tokens",
                "static tokens are for auth.mode = \"tokens\": a token and an issuer's subject could name the same principal",
            );
        }
        if let Err(reason) = public_url(&self.resource) {
            return bad("resource", reason);
        }
        if self.issuers.is_empty() {
            return bad(
                "issuers",
                "auth.mode = \"oauth\" needs at least one authorization server, as [[auth.issuers]] with issuer",
            );
        }
        self.expect_issuers()
            .or_else(|reason| bad("issuers", reason))?;
        for (setting, scopes) in [
            ("required_scopes", &self.required_scopes),
            ("scopes_supported", &self.scopes_supported),
        ] {
            expect_scopes(setting, scopes)?;
        }
        for (setting, table) in [
            ("tool_scopes", &self.tool_scopes),
            ("implied_scopes", &self.implied_scopes),
        ] {
            for scopes in table.values() {
                expect_scopes(setting, scopes)?;
            }
        }
        for (setting, size) in [
            ("cached_bytes", self.cached_bytes),
            ("dpop_bytes", self.dpop_bytes),
            ("token_bytes", self.token_bytes),
        ] {
            if size == 0 {
                return bad(setting, "must be at least 1");
            }
        }
        for (setting, period) in [
            ("keys_refresh", self.keys_refresh),
            ("keys_interval", self.keys_interval),
            ("keys_stale", self.keys_stale),
            ("request_timeout", self.request_timeout),
        ] {
            if period.get().is_zero() {
                return bad(setting, "must be longer than 0");
            }
        }
        Ok(())
    }

    fn expect_issuers(&self) -> Result<(), String> {
        let issuers = self.issuers.iter();
        let issuers = issuers.map(|issuer| issuer.resolved(&self.resource));
        let issuers = issuers.collect::<Result<Vec<_>, _>>()?;
        let mut known = HashSet::new();
        let mut names = issuers.iter().flat_map(|issuer| issuer.names());
        if let Some(twice) = names.find(|name| !known.insert(canonical(name))) {
            return Err(format!("{twice:?} is listed twice"));
        }
        let asked = issuers.iter().filter_map(|issuer| issuer.asked.as_ref());
        match asked.filter(|asked| asked.takes_opaque()).count() {
            0 | 1 => Ok(()),
            _ => Err(
                "two issuers introspect tokens that are not JWTs: such a token does not name its issuer, and Shoal must not send it to both; set introspection.tokens = \"jwt\" for one of them"
                    .to_owned(),
            ),
        }
    }

    fn has_nothing_of_oauth(&self) -> Result<(), BadSetting> {
        let set = [
            ("resource", !self.resource.is_empty()),
            ("issuers", !self.issuers.is_empty()),
            ("required_scopes", !self.required_scopes.is_empty()),
            ("tool_scopes", !self.tool_scopes.is_empty()),
            ("dpop", self.dpop != Dpop::Off),
        ];
        match set.into_iter().find(|(_, is_set)| *is_set) {
            Some((setting, _)) => bad(setting, "works only with auth.mode = \"oauth\""),
            None => Ok(()),
        }
    }
}

/// Scopes must fit into headers (RFC 6749, 3.3).
fn expect_scopes(setting: &'static str, scopes: &[String]) -> Result<(), BadSetting> {
    let fits = |b: u8| b.is_ascii_graphic() && b != b'"' && b != b'\\';
    let unfit = scopes.iter().find(|s| s.is_empty() || !s.bytes().all(fits));
    match unfit {
        Some(scope) => bad(
            setting,
            format!("{scope:?} is no scope: one has no spaces, quotes and backslashes"),
        ),
        None => Ok(()),
    }
}

pub(crate) fn public_url(text: &str) -> Result<Url, String> {
    if text.is_empty() {
        return Err(
            "auth.mode = \"oauth\" needs the URL that clients use, such as https://mcp.example.com/mcp: tokens are issued \
             for it"
                .to_owned(),
        );
    }
    let url = Url::parse(text).map_err(|error| format!("{text:?} is not a URL: {error}"))?;
    let fits = matches!(url.scheme(), "http" | "https")
        && url.has_host()
        && url.fragment().is_none()
        && url.query().is_none()
        && url.username().is_empty()
        && url.password().is_none();
    match fits {
        true => Ok(url),
        false => Err(format!(
            "{text:?}: use https://HOST/PATH, without query, fragment and password"
        )),
    }
}

pub(crate) fn asked_url(text: &str, allow_http: bool) -> Result<Url, String> {
    let url = Url::parse(text).map_err(|error| format!("{text:?} is not a URL: {error}"))?;
    if !url.username().is_empty() || url.password().is_some() {
        return Err("a URL must not hold a password: it is printed and logged".to_owned());
    }
    match url.scheme() {
        "https" if url.has_host() => Ok(url),
        "http" if allow_http || is_loopback(&url) => Ok(url),
        "http" => Err(format!(
            "{text:?}: anyone can forge keys that are fetched over plain HTTP; use https, or allow_http = true"
        )),
        _ => Err(format!("{text:?}: use https://HOST/PATH")),
    }
}

pub(crate) fn is_loopback(url: &Url) -> bool {
    match url.host() {
        Some(Host::Ipv4(ip)) => ip.is_loopback(),
        Some(Host::Ipv6(ip)) => ip.is_loopback(),
        Some(Host::Domain(name)) => name == "localhost",
        None => false,
    }
}

#[cfg(test)]
mod tests {
    use super::{Auth, AuthMode};
    use crate::config::{AskedTokens, Introspection, Issuer, IssuerKind};

    fn sound() -> Auth {
        Auth {
            mode: AuthMode::OAuth,
            resource: "https://mcp.example.com/mcp".to_owned(),
            issuers: vec![issuer("https://id.example.com")],
            ..Auth::default()
        }
    }

    fn issuer(name: &str) -> Issuer {
        Issuer {
            issuer: name.to_owned(),
            ..Issuer::default()
        }
    }

    fn asked(name: &str) -> Issuer {
        let introspection = Some(Introspection {
            client_id: "shoal".to_owned(),
            client_secret_file: Some("secret".into()),
            ..Introspection::default()
        });
        Issuer {
            introspection,
            ..issuer(name)
        }
    }

    #[test]
    fn what_cannot_be_is_named() {
        assert_eq!(sound().check(), Ok(()));
        type Change = fn(&mut Auth);
        let changes: [(&str, Change); 13] = [
            ("resource", |auth| auth.resource.clear()),
            ("resource", |auth| auth.resource.push_str("#part")),
            ("issuers", |auth| auth.issuers.clear()),
            ("issuers", |auth| {
                auth.issuers.push(issuer("https://id.example.com"))
            }),
            ("issuers", |auth| {
                auth.issuers.push(issuer("https://ID.example.com:443/"))
            }),
            ("issuers", |auth| {
                auth.issuers = vec![issuer("http://id.example.com")]
            }),
            ("issuers", |auth| auth.issuers[0].algorithms.clear()),
            ("issuers", |auth| {
                auth.issuers = vec![asked("https://a.example"), asked("https://b.example")];
            }),
            ("issuers", |auth| {
                auth.issuers[0].aliases = vec!["https://ID.example.com/".to_owned()];
            }),
            ("required_scopes", |auth| {
                auth.required_scopes = vec!["two words".to_owned()];
            }),
            ("tokens", |auth| {
                auth.tokens_file = Some("tokens.toml".into())
            }),
            ("resource", |auth| auth.mode = AuthMode::Tokens),
            ("cached_bytes", |auth| auth.cached_bytes = 0),
        ];
        for (setting, change) in changes {
            let mut auth = sound();
            change(&mut auth);
            assert_eq!(auth.check().unwrap_err().setting, setting);
        }
    }

    #[test]
    fn one_issuer_at_most_is_shown_tokens_that_do_not_say_whose_they_are() {
        let mut auth = sound();
        auth.issuers = vec![asked("https://a.example"), asked("https://b.example")];
        let of_jwts = Some(AskedTokens::Jwt);
        if let Some(asked) = &mut auth.issuers[0].introspection {
            asked.tokens = of_jwts;
        }
        assert_eq!(auth.check(), Ok(()));
        auth.issuers[0] = Issuer {
            issuer_kind: Some(IssuerKind::Google),
            audience: vec!["a".to_owned()],
            ..Issuer::default()
        };
        let why = auth.check().unwrap_err().reason;
        assert!(why.contains("introspection.tokens = \"jwt\""), "{why}");
    }

    #[test]
    fn plain_http_is_for_this_machine_or_has_a_loud_word() {
        for (url, allow, fits) in [
            ("http://127.0.0.1:80", false, true),
            ("http://localhost:80", false, true),
            ("http://[::1]", false, true),
            ("http://127.0.0.1.example.com", false, false),
            ("http://id.example.com", false, false),
            ("http://id.example.com", true, true),
            ("ftp://id.example.com", true, false),
        ] {
            assert_eq!(super::asked_url(url, allow).is_ok(), fits, "{url}");
        }
    }
}
