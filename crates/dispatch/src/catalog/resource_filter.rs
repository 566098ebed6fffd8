use shoal_ports::matches_pattern;

use super::resource_uri::{ResourceUri, folded, normal};
use super::rules::ResourceRules;
use super::template::UriTemplate;

/// An allow rule must match every spelling that a server may read, and a deny rule only one.
#[derive(Clone, Debug)]
pub(super) struct ResourceFilter {
    rules: ResourceRules,
    allow: Vec<Allowed>,
    deny: Vec<UriTemplate>,
}

#[derive(Clone, Debug)]
struct Allowed {
    pattern: UriTemplate,
    /// Without a query or fragment, the pattern must also match the URI without them, because a server may read only
    /// that part.
    has_query: bool,
}

impl ResourceFilter {
    pub(super) fn of(rules: &ResourceRules) -> Self {
        let allowed = |said: &String| {
            let pattern = UriTemplate::pattern(&normal(said));
            Allowed {
                has_query: pattern.says(b"?#"),
                pattern,
            }
        };
        let denied = |said: &String| UriTemplate::pattern(&folded(&normal(said)));
        Self {
            allow: rules.allow.iter().map(allowed).collect(),
            deny: rules.deny.iter().map(denied).collect(),
            rules: rules.clone(),
        }
    }

    /// Refuses a client's URI that servers may read in different ways.
    pub(super) fn admits(&self, uri: &str) -> bool {
        self.is_open() || ResourceUri::read(uri).is_some_and(|read| self.admits_read(uri, &read))
    }

    /// A backend's URI that cannot be normalised is compared as written, because the backend chose
    /// it.
    pub(super) fn admits_listed(&self, uri: &str) -> bool {
        match ResourceUri::read(uri) {
            Some(read) => self.admits_read(uri, &read),
            None => self.admits_text(uri),
        }
    }

    /// Templates are compared as written.
    pub(super) fn admits_template(&self, template: &str) -> bool {
        self.admits_text(template)
    }

    fn is_open(&self) -> bool {
        self.allow.is_empty() && self.deny.is_empty()
    }

    fn admits_read(&self, uri: &str, read: &ResourceUri) -> bool {
        let denied = fits(&self.rules.deny, uri)
            || (self.deny.iter()).any(|it| read.loose.iter().any(|text| it.matches(text)));
        let is_allowed = self.allow.is_empty() || self.allow.iter().any(|it| it.fits(read));
        is_allowed && !denied
    }

    fn admits_text(&self, text: &str) -> bool {
        let ResourceRules { allow, deny } = &self.rules;
        (allow.is_empty() || fits(allow, text)) && !fits(deny, text)
    }
}

impl Allowed {
    fn fits(&self, read: &ResourceUri) -> bool {
        let all = |texts: &[String]| texts.iter().all(|text| self.pattern.matches(text));
        all(&read.whole) && (self.has_query || all(&read.bare))
    }
}

fn fits(patterns: &[String], text: &str) -> bool {
    patterns.iter().any(|it| matches_pattern(it, text))
}
