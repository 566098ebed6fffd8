use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio_rustls::server::TlsStream;
use tokio_util::either::Either;
use tonic::Request;
use tonic::transport::server::Connected;

use super::Standing;
use super::trust::OpenConnection;

pub(crate) struct Accepted {
    stream: Either<Box<TlsStream<TcpStream>>, TcpStream>,
    info: ConnectInfo,
    _open: Option<OpenConnection>,
}

#[derive(Clone)]
pub(crate) struct ConnectInfo {
    standing: Standing,
    address: SocketAddr,
}

impl Standing {
    pub(crate) fn of_request<T>(request: &Request<T>) -> Self {
        let info = request.extensions().get::<ConnectInfo>();
        info.map(|info| info.standing.clone()).unwrap_or_default()
    }
}

pub(crate) fn peer_address<T>(request: &Request<T>) -> Option<SocketAddr> {
    let accepted = request.extensions().get::<ConnectInfo>();
    accepted.map_or_else(|| request.remote_addr(), |info| Some(info.address))
}

impl Accepted {
    pub(super) fn secured(
        stream: TlsStream<TcpStream>,
        standing: Standing,
        address: SocketAddr,
        open: OpenConnection,
    ) -> Self {
        let stream = Either::Left(Box::new(stream));
        let info = ConnectInfo { standing, address };
        let open = Some(open);
        Self {
            stream,
            info,
            _open: open,
        }
    }

    pub(super) fn plain(stream: TcpStream, address: SocketAddr) -> Self {
        let stream = Either::Right(stream);
        let standing = Standing::Full;
        let info = ConnectInfo { standing, address };
        Self {
            stream,
            info,
            _open: None,
        }
    }
}

impl Connected for Accepted {
    type ConnectInfo = ConnectInfo;

    fn connect_info(&self) -> ConnectInfo {
        self.info.clone()
    }
}

impl AsyncRead for Accepted {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buffer)
    }
}

impl AsyncWrite for Accepted {
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
