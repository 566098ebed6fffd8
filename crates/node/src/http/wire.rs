use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::{Buf as _, Bytes};
use shoal_ports::ClientCertificate;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_rustls::server::TlsStream;

use super::socket::HttpSocket;

/// TLS wraps the socket and not the reverse, so that the socket sees the client's progress.
#[derive(Debug)]
pub(super) enum HttpWire {
    Plain(HttpSocket),
    Secured(Box<Secured>),
}

/// `read` holds the bytes that revealed the protocol.
#[derive(Debug)]
pub(super) struct Secured {
    pub(super) stream: TlsStream<HttpSocket>,
    pub(super) read: Bytes,
}

impl HttpWire {
    pub(super) fn is_broken(&self) -> bool {
        match self {
            Self::Plain(socket) => socket.is_broken(),
            Self::Secured(secured) => secured.stream.get_ref().0.is_broken(),
        }
    }

    pub(super) fn certificate(&self) -> Option<ClientCertificate> {
        let Self::Secured(secured) = self else {
            return None;
        };
        let (_, tls) = secured.stream.get_ref();
        let own = tls.peer_certificates()?.first()?;
        Some(ClientCertificate::of(own))
    }
}

impl AsyncRead for HttpWire {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let secured = match self.get_mut() {
            Self::Plain(socket) => return Pin::new(socket).poll_read(cx, into),
            Self::Secured(secured) => secured,
        };
        if secured.read.is_empty() {
            return Pin::new(&mut secured.stream).poll_read(cx, into);
        }
        let length = secured.read.len().min(into.remaining());
        into.put_slice(&secured.read[..length]);
        secured.read.advance(length);
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for HttpWire {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Plain(socket) => Pin::new(socket).poll_write(cx, bytes),
            Self::Secured(secured) => Pin::new(&mut secured.stream).poll_write(cx, bytes),
        }
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        pieces: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Plain(socket) => Pin::new(socket).poll_write_vectored(cx, pieces),
            Self::Secured(secured) => Pin::new(&mut secured.stream).poll_write_vectored(cx, pieces),
        }
    }

    fn is_write_vectored(&self) -> bool {
        match self {
            Self::Plain(socket) => socket.is_write_vectored(),
            Self::Secured(secured) => secured.stream.is_write_vectored(),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(socket) => Pin::new(socket).poll_flush(cx),
            Self::Secured(secured) => Pin::new(&mut secured.stream).poll_flush(cx),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(socket) => Pin::new(socket).poll_shutdown(cx),
            Self::Secured(secured) => Pin::new(&mut secured.stream).poll_shutdown(cx),
        }
    }
}
