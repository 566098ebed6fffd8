//! Whether what a caller showed is still good, for as long as a stream of that caller stays open.

use std::fmt;
use std::future::pending;
use std::sync::Arc;

use futures::StreamExt as _;
use futures::stream::{self, BoxStream, Stream};
use tokio::time::{Instant, sleep_until};

use crate::{AuthError, Grant, TokenFault};

/// What becomes of a grant while a stream is open.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GrantNews {
    /// The token is good, and this is granted from now on.
    Renewed(Arc<Grant>),
    /// The token lets nobody in any more. Nothing follows.
    Over(AuthError),
}

/// Watches the grant of an open stream. Dropping it ends the watching.
pub struct GrantWatch(BoxStream<'static, GrantNews>);

impl GrantWatch {
    /// Tells this news. Where it ends without [`GrantNews::Over`], the grant stays.
    pub fn new(news: impl Stream<Item = GrantNews> + Send + 'static) -> Self {
        Self(news.boxed())
    }

    /// Of a grant that nothing ends.
    pub fn never() -> Self {
        Self::new(stream::pending())
    }

    /// Of a grant that ends at this time, if at all.
    pub fn until(end: Option<Instant>) -> Self {
        match end {
            None => Self::never(),
            Some(end) => Self::new(stream::once(async move {
                sleep_until(end).await;
                GrantNews::Over(AuthError::Token(TokenFault::Expired))
            })),
        }
    }

    /// The next news. Cancellation safe.
    pub async fn next(&mut self) -> GrantNews {
        match self.0.next().await {
            Some(news) => news,
            None => pending().await,
        }
    }

    /// Ready when the token is good no more, with the reason.
    pub async fn over(mut self) -> AuthError {
        loop {
            if let GrantNews::Over(why) = self.next().await {
                return why;
            }
        }
    }

    /// Ready when the token was taken back. The end of a token's own time is no reason.
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
