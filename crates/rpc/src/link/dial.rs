use std::error::Error;
use std::io;

use tonic::transport::{Channel, Endpoint};

use crate::error::LinkError;
use crate::tls::{self, UnreachedPeer};
use crate::{LinkConfig, Tls};

pub(crate) async fn connect(address: &str, config: &LinkConfig) -> Result<Channel, LinkError> {
    let endpoint = Endpoint::from_shared(format!("http://{address}"))
        .map_err(|_| LinkError::Transport(format!("{address:?} is not an address")))?
        .connect_timeout(config.handshake_timeout)
        .tcp_nodelay(true)
        .http2_keep_alive_interval(config.ping_after())
        .keep_alive_timeout(config.ping_after())
        .keep_alive_while_idle(true);
    let connected = match &config.tls {
        Some(tls) => secured(endpoint, address, tls).await,
        None => endpoint.connect().await,
    };
    connected.map_err(|error| {
        let unreached = cause::<UnreachedPeer>(&error).map(ToString::to_string);
        let why = unreached.or_else(|| error.source().map(ToString::to_string));
        let why = why.unwrap_or_else(|| error.to_string());
        let said = cause::<io::Error>(&error).map(io::Error::kind);
        match said {
            Some(io::ErrorKind::ConnectionRefused) => LinkError::NobodyListens(why),
            _ => LinkError::Transport(why),
        }
    })
}

async fn secured(
    endpoint: Endpoint,
    address: &str,
    tls: &Tls,
) -> Result<Channel, tonic::transport::Error> {
    let (address, tls) = (address.to_owned(), tls.clone());
    let connector = tower::service_fn(move |_| {
        let (address, tls) = (address.clone(), tls.clone());
        async move { tls::dial(&address, &tls).await }
    });
    endpoint.connect_with_connector(connector).await
}

fn cause<'a, E: Error + 'static>(error: &'a (dyn Error + 'static)) -> Option<&'a E> {
    let mut cause = Some(error);
    while let Some(error) = cause {
        if let Some(found) = error.downcast_ref() {
            return Some(found);
        }
        cause = error.source();
    }
    None
}
