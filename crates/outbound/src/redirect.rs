//! Follows redirects only if they keep the request and its origin, so that a server cannot redirect Shoal's
//! credentials.

use http::StatusCode;
use reqwest::redirect::{Action, Attempt, Policy};

/// Maximum consecutive redirects.
pub const MOST_REDIRECTS: usize = 3;

/// A client's handling of redirects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Redirects {
    /// Returns redirects as responses.
    None,
    /// Follows redirects that keep the request and its origin.
    WithinOrigin,
}

impl Redirects {
    pub(crate) fn policy(self) -> Policy {
        match self {
            Self::None => Policy::none(),
            Self::WithinOrigin => Policy::custom(followed),
        }
    }
}

fn followed(attempt: Attempt<'_>) -> Action {
    let keeps = matches!(
        attempt.status(),
        StatusCode::TEMPORARY_REDIRECT | StatusCode::PERMANENT_REDIRECT
    );
    let first = attempt.previous().first();
    let same = first.is_some_and(|first| first.origin() == attempt.url().origin());
    if keeps && same && attempt.previous().len() <= MOST_REDIRECTS {
        attempt.follow()
    } else {
        attempt.stop()
    }
}
