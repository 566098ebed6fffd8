use std::sync::Arc;

use futures::FutureExt as _;
use futures::future::BoxFuture;
use http::{HeaderMap, header};
use parking_lot::Mutex;
use tokio::io::{AsyncRead, AsyncWrite};

pub(crate) fn asks_for_websocket(headers: &HeaderMap) -> bool {
    let upgrade = headers.get(header::UPGRADE);
    upgrade.is_some_and(|protocol| protocol.as_bytes().eq_ignore_ascii_case(b"websocket"))
}

/// A readable and writable connection.
pub trait Duplex: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Duplex for T {}

type Then = Box<dyn FnOnce(Box<dyn Duplex>) -> BoxFuture<'static, ()> + Send>;

/// An extension of a 101 answer that takes over the connection.
///
/// The HTTP server writes the answer and [runs](Self::run) the extension in the connection's own
/// task. So the connection stays counted and can be given up like any other
/// ([`Writing`](crate::Writing)).
#[derive(Clone)]
pub struct Upgrade(Arc<Mutex<Option<Then>>>);

impl Upgrade {
    pub(crate) fn to<F>(then: impl FnOnce(Box<dyn Duplex>) -> F + Send + 'static) -> Self
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let then = |connection| then(connection).boxed();
        Self(Arc::new(Mutex::new(Some(Box::new(then)))))
    }

    /// Serves the connection to its end. `connection` begins with the bytes after the request.
    pub async fn run(self, connection: impl Duplex + 'static) {
        let then = self.0.lock().take();
        if let Some(then) = then {
            then(Box::new(connection)).await;
        }
    }
}
