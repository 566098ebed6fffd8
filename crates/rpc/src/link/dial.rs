//! Connections to other processes, and the waits between attempts.

use std::error::Error;
use std::time::Duration;

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

/// Growing waits with jitter, so that many who lost one peer do not come back at the same time.
pub(crate) struct Backoff {
    first: Duration,
    max: Duration,
    failures: u32,
}

impl Backoff {
    pub(crate) fn new(config: &LinkConfig) -> Self {
        Self {
            first: config.backoff,
            max: config.backoff_max,
            failures: 0,
        }
    }

    /// Begins anew after a success.
    pub(crate) fn reset(&mut self) {
        self.failures = 0;
    }

    /// How long to wait after one more failure: half of it is chance.
    pub(crate) fn next(&mut self) -> Duration {
        let wait = self.first.saturating_mul(1 << self.failures.min(16));
        self.failures = self.failures.saturating_add(1);
        wait.min(self.max)
            .mul_f64(rand::random_range(0.5..=1.0_f64))
    }
}

#[cfg(test)]
mod tests {
    use super::Backoff;
    use crate::LinkConfig;

    #[test]
    fn waits_grow_up_to_the_limit_and_begin_anew() {
        let config = LinkConfig::default();
        let mut backoff = Backoff::new(&config);
        let waits: Vec<_> = (0..100).map(|_| backoff.next()).collect();
        assert!(waits[0] <= config.backoff && waits[0] >= config.backoff / 2);
        assert!(waits.iter().all(|wait| *wait <= config.backoff_max));
        assert!(waits[50] >= config.backoff_max / 2);
        backoff.reset();
        assert!(backoff.next() <= config.backoff);
    }
}
