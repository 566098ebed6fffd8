use std::fmt;
use std::sync::Arc;

use shoal_protocol::RawJson;
use tokio::time::Instant;

use crate::Memo;

/// The rights that an authorization server granted with a token.
#[derive(PartialEq, Eq)]
pub struct Grant {
    /// The granted scopes, including the scopes that these imply.
    pub scopes: Box<[Arc<str>]>,
    /// The token's claims, a JSON object of limited length.
    pub claims: RawJson,
    /// The grant's end, by this machine's monotonic clock.
    pub until: Option<Instant>,
    /// The parsed claims, for policy rules.
    pub read: Memo,
}

impl Grant {
    /// Whether the grant includes the scope.
    pub fn has(&self, scope: &str) -> bool {
        self.scopes.iter().any(|granted| **granted == *scope)
    }
}

// Omits the claims, which are personal data.
impl fmt::Debug for Grant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (f.debug_struct("Grant"))
            .field("scopes", &self.scopes)
            .field("until", &self.until)
            .finish_non_exhaustive()
    }
}
