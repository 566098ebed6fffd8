//! Which redirects are followed: those that leave a request what it is, within its origin. A server must not send Shoal's
//! credentials, or its requests, to others.

use http::StatusCode;
use reqwest::redirect::{Action, Attempt, Policy};

/// Redirects of each kind that are followed, one after the other.
pub const MOST_REDIRECTS: usize = 3;

/// What becomes of redirects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Redirects {
    /// They are answers.
    None,
    /// Those that keep any request are followed, within the origin.
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
