//! Connections to other processes.

use std::error::Error;

use tonic::transport::{Channel, Endpoint};

use crate::error::LinkError;
use crate::tls::{self, Unreached};
use crate::{LinkConfig, Tls};

/// Connects to `address` (`host:port`).
///
/// # Errors
/// When nobody is there within [`LinkConfig::handshake_timeout`], or the address is none.
pub(crate) async fn connect(address: &str, config: &LinkConfig) -> Result<Channel, LinkError> {
    let endpoint = Endpoint::from_shared(format!("http://{address}"))
        .map_err(|_| LinkError::Transport(format!("{address:?} is not an address")))?
        .connect_timeout(config.handshake_timeout)
        .tcp_nodelay(true)
        .http2_keep_alive_interval(config.ping_after)
        .keep_alive_timeout(config.ping_timeout)
        .keep_alive_while_idle(true);
    let connected = match &config.tls {
        Some(tls) => secured(endpoint, address, tls).await,
        None => endpoint.connect().await,
    };
    connected.map_err(|error| {
        let unreached = unreached(&error).map(ToString::to_string);
        let cause = unreached.or_else(|| error.source().map(ToString::to_string));
        LinkError::Transport(cause.unwrap_or_else(|| error.to_string()))
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

fn unreached<'a>(error: &'a (dyn Error + 'static)) -> Option<&'a Unreached> {
    let mut cause = Some(error);
    while let Some(error) = cause {
        if let Some(unreached) = error.downcast_ref() {
            return Some(unreached);
        }
        cause = error.source();
    }
    None
}
