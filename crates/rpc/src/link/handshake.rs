use std::sync::Arc;

use futures::Stream;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tonic::transport::Channel;
use tonic::{Response, Status, Streaming};

use super::dial;
use super::frame::Frame;
use super::inbox::Inbox;
use super::outbox::{OutStream, Outbox};
use super::versions::{self, PeerHello};
use crate::LinkConfig;
use crate::error::LinkError;
use crate::proto::types::v1::{Limits, Versions};

pub(crate) struct Welcomed<F, O, W> {
    pub(crate) welcome: W,
    pub(crate) peer: PeerHello,
    pub(crate) inbox: Inbox<Streaming<F>, F, O>,
    pub(crate) outbox: Arc<Outbox<O>>,
}

/// `read` extracts the welcome from the first frame.
pub(crate) async fn dial<F, O, W, L>(
    address: &str,
    config: &LinkConfig,
    hello: impl Into<O>,
    link: impl FnOnce(Channel, OutStream<O>) -> L,
    read: impl FnOnce(F) -> Option<(u32, Option<Limits>, W)>,
) -> Result<Welcomed<F, O, W>, LinkError>
where
    F: Frame,
    O: Frame,
    L: Future<Output = Result<Response<Streaming<F>>, Status>>,
{
    let dialled = async {
        let channel = dial::connect(address, config).await?;
        let (outbox, stream) = Outbox::new(config.max_queued);
        outbox.push_now(hello);
        let response = link(channel, stream).await;
        let response = response.map_err(|status| LinkError::of_status(&status))?;
        let mut inbox = Inbox::new(response.into_inner(), Arc::clone(&outbox), config.max_frame);
        let Some((version, limits, welcome)) = read(inbox.next().await?) else {
            return Err(LinkError::protocol("the first frame is no welcome"));
        };
        if !versions::is_offered(config, version) {
            return Err(LinkError::protocol("a version that was not offered"));
        }
        let peer = open(version, limits, &mut inbox, &outbox);
        Ok(Welcomed {
            welcome,
            peer,
            inbox,
            outbox,
        })
    };
    timeout(config.handshake_timeout, dialled)
        .await
        .unwrap_or(Err(LinkError::Silent))
}

/// The error is meant for the dialer.
pub(crate) async fn hello<H>(
    hello: impl Future<Output = Result<H, LinkError>>,
    config: &LinkConfig,
    closing: &CancellationToken,
) -> Result<H, Status> {
    let hello = timeout(config.handshake_timeout, hello)
        .await
        .map_err(|_| Status::deadline_exceeded("no hello arrived"))?
        .map_err(|error| Status::invalid_argument(error.to_string()))?;
    if closing.is_cancelled() {
        return Err(Status::unavailable("the node is leaving"));
    }
    Ok(hello)
}

/// The error is meant for the dialer.
pub(crate) fn accept<S, F, O>(
    config: &LinkConfig,
    offered: Option<Versions>,
    limits: Option<Limits>,
    inbox: &mut Inbox<S, F, O>,
    outbox: &Outbox<O>,
) -> Result<PeerHello, Status>
where
    S: Stream<Item = Result<F, Status>> + Unpin,
    F: Frame,
    O: Frame,
{
    let version = versions::negotiate(config, offered).map_err(Status::failed_precondition)?;
    Ok(open(version, limits, inbox, outbox))
}

fn open<S, F, O>(
    version: u32,
    limits: Option<Limits>,
    inbox: &mut Inbox<S, F, O>,
    outbox: &Outbox<O>,
) -> PeerHello
where
    S: Stream<Item = Result<F, Status>> + Unpin,
    F: Frame,
    O: Frame,
{
    let peer = PeerHello::new(version, limits);
    outbox.open(&peer);
    inbox.open(version);
    peer
}
