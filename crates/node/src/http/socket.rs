//! A socket that fails when its client stops reading.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use shoal_edge::Writing;
use shoal_telemetry::metrics::{GivenUp, metrics};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::{Sleep, sleep};

/// Maximum unsent bytes in the operating system. If megabytes were unsent there, a slow client would seem to have
/// stalled.
#[cfg(target_os = "linux")]
const UNSENT: u32 = 128 << 10;

#[derive(Debug)]
pub(super) struct HttpSocket {
    stream: TcpStream,
    writing: Writing,
    patience: Duration,
    still: Option<Pin<Box<Sleep>>>,
}

impl HttpSocket {
    pub(super) fn new(stream: TcpStream, writing: Writing, patience: Duration) -> Self {
        #[cfg(target_os = "linux")]
        if let Err(error) = socket2::SockRef::from(&stream).set_tcp_notsent_lowat(UNSENT) {
            tracing::debug!(%error, "could not bound what the operating system takes");
        }
        Self {
            stream,
            writing,
            patience,
            still: None,
        }
    }

    pub(super) fn is_broken(&self) -> bool {
        !matches!(self.stream.take_error(), Ok(None))
    }

    fn written(
        &mut self,
        cx: &mut Context<'_>,
        written: Poll<io::Result<usize>>,
    ) -> Poll<io::Result<usize>> {
        if written.is_ready() {
            self.still = None;
            self.writing.progressed();
            return written;
        }
        let patience = self.patience;
        let still = self.still.get_or_insert_with(|| Box::pin(sleep(patience)));
        if still.as_mut().poll(cx).is_pending() {
            return Poll::Pending;
        }
        metrics().http.given_up(GivenUp::Stalled);
        let what = "the client takes nothing of what waits for it";
        Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, what)))
    }
}

impl AsyncRead for HttpSocket {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buffer)
    }
}

impl AsyncWrite for HttpSocket {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(cx, bytes);
        self.written(cx, written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        pieces: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(cx, pieces);
        self.written(cx, written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
