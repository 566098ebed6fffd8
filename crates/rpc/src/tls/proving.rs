//! In TLS 1.3 the dialer's handshake ends before the listener has verified the dialer. The
//! listener's first bytes show the verdict: an alert means refusal, anything else acceptance.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio_rustls::client::TlsStream;

use super::error::{cause, refusal};
use super::trust::{OpenConnection, Trust};

pub(crate) struct Proving {
    stream: TlsStream<TcpStream>,
    address: String,
    trust: Arc<Trust>,
    open: Option<OpenConnection>,
}

impl Proving {
    pub(super) fn new(stream: TlsStream<TcpStream>, address: &str, trust: Arc<Trust>) -> Self {
        Self {
            stream,
            address: address.to_owned(),
            trust,
            open: None,
        }
    }

    fn judge(&mut self, read: &io::Result<()>, any: bool) {
        match read {
            Ok(()) if any => {
                self.trust.agreed(&self.address);
                self.open = Some(self.trust.opened());
            }
            Err(error) if cause(error).is_some() => {
                self.trust.refused(&self.address, &refusal(error));
            }
            _ => {}
        }
    }
}

impl AsyncRead for Proving {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let read = Pin::new(&mut self.stream).poll_read(cx, buffer);
        let Poll::Ready(read) = read else {
            return Poll::Pending;
        };
        if self.open.is_none() {
            self.judge(&read, buffer.filled().len() > before);
        }
        Poll::Ready(read)
    }
}

impl AsyncWrite for Proving {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(cx, slices)
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
