use std::convert::Infallible;
use std::fmt;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use bytes::{Buf as _, Bytes, BytesMut};
use futures::{StreamExt as _, stream};
use http::{HeaderMap, Request};
use http_body_util::{BodyExt as _, StreamBody};
use hyper::body::Frame;
use hyper::client::conn::http2;
use hyper_util::rt::{TokioExecutor, TokioIo};
use prost::Message as _;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use shoal_rpc::proto::worker::v1::{NodeFrame, node_frame};
use shoal_testkit::cluster::Issued;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tonic::Code;

use crate::methods::Method;

const PATIENCE: Duration = Duration::from_secs(60);

#[derive(Debug)]
pub(crate) enum Shown {
    Plaintext,
    Nothing { authority: PathBuf },
    Certificate(Issued),
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Ended {
    Broken(String),
    Status(Code, String),
    Closed(String),
    Answered,
}

impl fmt::Display for Ended {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            // Hides the error, which depends on how far the peer came. The node's log has the
            // reason.
            Self::Broken(_) => out.write_str("no connection"),
            Self::Status(Code::Unimplemented, _) => out.write_str("not served here"),
            Self::Status(code, why) => write!(out, "{code:?}: {why}"),
            Self::Closed(why) => write!(out, "link ended: {why}"),
            Self::Answered => out.write_str("answered"),
        }
    }
}

#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) ended: Ended,
    told: Vec<String>,
}

impl Answer {
    pub(crate) fn is_not_served(&self) -> bool {
        matches!(self.ended, Ended::Status(Code::Unimplemented, _))
    }

    pub(crate) fn told_anything(&self) -> bool {
        self.ended == Ended::Answered || !self.told.is_empty()
    }
}

pub(crate) async fn ask(
    address: SocketAddr,
    shown: &Shown,
    method: &Method,
    messages: Vec<Vec<u8>>,
) -> Answer {
    let asked = async {
        let stream = TcpStream::connect(address).await.unwrap();
        let config = match shown {
            Shown::Plaintext => return over(stream, method, messages).await,
            Shown::Nothing { authority } => trusting(authority).with_no_client_auth(),
            Shown::Certificate(issued) => {
                let chain = CertificateDer::pem_file_iter(&issued.certificate).unwrap();
                let key = PrivateKeyDer::from_pem_file(&issued.key).unwrap();
                let chain = chain.map(Result::unwrap).collect();
                let config = trusting(&issued.authority);
                config.with_client_auth_cert(chain, key).unwrap()
            }
        };
        let mut config = config;
        config.alpn_protocols = vec![b"h2".to_vec()];
        let name = ServerName::try_from("shoal").unwrap();
        let connector = TlsConnector::from(Arc::new(config));
        match connector.connect(name, stream).await {
            Ok(stream) => over(stream, method, messages).await,
            Err(error) => broken(&error),
        }
    };
    let asked = timeout(PATIENCE, asked).await;
    asked.unwrap_or_else(|_| panic!("{method} neither answers nor refuses {shown:?}"))
}

fn trusting(
    authority: &Path,
) -> rustls::ConfigBuilder<ClientConfig, rustls::client::WantsClientCert> {
    let mut roots = RootCertStore::empty();
    roots
        .add(CertificateDer::from_pem_file(authority).unwrap())
        .unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&rustls::version::TLS13])
        .unwrap()
        .with_root_certificates(roots)
}

async fn over<S>(stream: S, method: &Method, messages: Vec<Vec<u8>>) -> Answer
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let opened = http2::handshake(TokioExecutor::new(), TokioIo::new(stream)).await;
    let (mut sender, connection) = match opened {
        Ok(opened) => opened,
        Err(error) => return broken(&error),
    };
    let connection = tokio::spawn(connection);
    let is_link = method.path().ends_with("/Link");
    let frames = stream::iter(messages.into_iter().map(|message| framed(&message)));
    let frames = frames.map(|bytes| Ok::<_, Infallible>(Frame::data(bytes)));
    let body = match is_link {
        true => frames.chain(stream::pending()).boxed(),
        false => frames.boxed(),
    };
    let request = Request::post(format!("https://shoal{}", method.path()))
        .header("content-type", "application/grpc")
        .header("te", "trailers")
        .body(StreamBody::new(body))
        .unwrap();
    let answered = sender.send_request(request);
    // If the connection ends at this moment, the request stays in a queue, and fails only when the
    // last sender is dropped.
    drop(sender);
    let answer = match answered.await {
        Ok(response) => read(method, response).await,
        Err(error) => broken(&error),
    };
    connection.abort();
    answer
}

async fn read(method: &Method, response: http::Response<hyper::body::Incoming>) -> Answer {
    let mut told = Vec::new();
    if let Some(ended) = status(response.headers()) {
        return Answer { ended, told };
    }
    let (mut body, mut unread) = (response.into_body(), BytesMut::new());
    let ended = loop {
        while let Some(message) = next(&mut unread) {
            match method.is_for_workers() {
                true => {
                    if let Some(ended) = heard(NodeFrame::decode(message).unwrap(), &mut told) {
                        return Answer { ended, told };
                    }
                }
                false => {
                    let ended = Ended::Answered;
                    return Answer { ended, told };
                }
            }
        }
        match body.frame().await {
            Some(Ok(frame)) => match frame.into_data() {
                Ok(data) => unread.extend_from_slice(&data),
                Err(trailers) => {
                    let trailers = trailers.into_trailers().unwrap_or_default();
                    break status(&trailers).expect("trailers have a status");
                }
            },
            Some(Err(error)) => break broken(&error).ended,
            None => break Ended::Broken("the answer ended".to_owned()),
        }
    };
    Answer { ended, told }
}

fn heard(frame: NodeFrame, told: &mut Vec<String>) -> Option<Ended> {
    use node_frame::Frame as Said;
    match frame.frame? {
        // These are no answers: the node sends them to every worker of the cluster, see
        // docs/tls.md.
        Said::Welcome(_) | Said::Nodes(_) | Said::Pong(_) => None,
        // A ping means that the node has accepted the announcement.
        Said::Ping(_) => Some(Ended::Answered),
        Said::Close(close) => Some(Ended::Closed(close.reason)),
        Said::Batch(batch) => batch.frames.into_iter().find_map(|one| heard(one, told)),
        other => {
            told.push(format!("{other:?}"));
            None
        }
    }
}

fn status(headers: &HeaderMap) -> Option<Ended> {
    let status = tonic::Status::from_header_map(headers)?;
    Some(Ended::Status(status.code(), status.message().to_owned()))
}

fn framed(message: &[u8]) -> Bytes {
    let length = u32::try_from(message.len()).unwrap();
    [&[0], &length.to_be_bytes()[..], message].concat().into()
}

fn next(unread: &mut BytesMut) -> Option<Bytes> {
    let head = unread.get(..5)?;
    let length = u32::from_be_bytes(head[1..].try_into().unwrap());
    let length = usize::try_from(length).unwrap();
    if unread.len() < 5 + length {
        return None;
    }
    unread.advance(5);
    Some(unread.split_to(length).freeze())
}

fn broken(error: &(dyn std::error::Error + 'static)) -> Answer {
    let mut why = error.to_string();
    let mut cause = error.source();
    while let Some(inner) = cause {
        why = inner.to_string();
        cause = inner.source();
    }
    Answer {
        ended: Ended::Broken(why),
        told: Vec::new(),
    }
}
