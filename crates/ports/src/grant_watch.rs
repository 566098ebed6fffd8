use std::fmt;
use std::future::pending;
use std::sync::Arc;

use futures::StreamExt as _;
use futures::stream::{self, BoxStream, Stream};
use tokio::time::{Instant, sleep_until};

use crate::{AuthError, Grant, TokenFault};

/// A change to a grant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GrantNews {
    /// The token is still valid, now with this grant.
    Renewed(Arc<Grant>),
    /// The token is invalid. No news follow.
    Over(AuthError),
}

/// Reports changes to the grant of an open stream's caller.
pub struct GrantWatch(BoxStream<'static, GrantNews>);

impl GrantWatch {
    /// Wraps a stream of news. If the stream ends without [`GrantNews::Over`], the grant stays valid.
    pub fn new(news: impl Stream<Item = GrantNews> + Send + 'static) -> Self {
        Self(news.boxed())
    }

    /// Watches an endless grant.
    pub fn never() -> Self {
        Self::new(stream::pending())
    }

    /// Watches a grant with a fixed end.
    pub fn until(end: Option<Instant>) -> Self {
        match end {
            None => Self::never(),
            Some(end) => Self::new(stream::once(async move {
                sleep_until(end).await;
                GrantNews::Over(AuthError::Token(TokenFault::Expired))
            })),
        }
    }

    /// Returns the next news. Cancellation safe.
    pub async fn next(&mut self) -> GrantNews {
        match self.0.next().await {
            Some(news) => news,
            None => pending().await,
        }
    }

    /// Waits until the token is invalid, and returns why.
    pub async fn over(mut self) -> AuthError {
        loop {
            if let GrantNews::Over(why) = self.next().await {
                return why;
            }
        }
    }

    /// Waits for the token's revocation, not its expiry.
    pub async fn revoked(self) -> AuthError {
        match self.over().await {
            AuthError::Token(TokenFault::Expired) => pending().await,
            why => why,
        }
    }
}

impl fmt::Debug for GrantWatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GrantWatch").finish_non_exhaustive()
    }
}
