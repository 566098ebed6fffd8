use std::io;
use std::sync::Arc;

use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_util::either::Either;

use super::Tls;
use super::error::{cause, refusal};
use super::proving::Proving;

pub(crate) type DialledStream = TokioIo<Either<Box<Proving>, TcpStream>>;

#[derive(Debug, thiserror::Error)]
pub(crate) enum UnreachedPeer {
    #[error("{0}")]
    Connection(#[from] io::Error),
    /// Another peer answered, or one side refused the other's certificate.
    #[error("{0}")]
    Peer(String),
}

pub(crate) async fn dial(address: &str, tls: &Tls) -> Result<DialledStream, UnreachedPeer> {
    let connector = TlsConnector::from(Arc::clone(&tls.material().client));
    let trust = tls.trust();
    let stream = match reach(address).await {
        Ok(stream) => stream,
        Err(error) => {
            trust.unknown(address);
            return Err(error.into());
        }
    };
    let handshake = connector.connect(tls.shared.source.name.clone(), stream);
    match handshake.await {
        Ok(stream) => {
            let proving = Proving::new(stream, address, Arc::clone(trust));
            Ok(TokioIo::new(Either::Left(Box::new(proving))))
        }
        Err(error) if tls.files().allow_plaintext && !knows_tls(&error) => {
            trust.unknown(address);
            Ok(TokioIo::new(Either::Right(reach(address).await?)))
        }
        Err(error) => {
            let why = refusal(&error);
            match cause(&error) {
                Some(_) => trust.refused(address, &why),
                None => trust.unknown(address),
            }
            Err(UnreachedPeer::Peer(format!("no TLS with {address}: {why}")))
        }
    }
}

async fn reach(address: &str) -> io::Result<TcpStream> {
    let stream = TcpStream::connect(address).await?;
    stream.set_nodelay(true)?;
    Ok(stream)
}

fn knows_tls(error: &io::Error) -> bool {
    !matches!(cause(error), None | Some(rustls::Error::InvalidMessage(_)))
}
