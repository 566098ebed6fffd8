//! A stream in the hands of whoever listens.

use std::sync::Arc;

use shoal_ports::{EventStream, QuietReceiver, StreamItem, quiet_channel};
use shoal_protocol::EventId;

use super::link::{Link, Passed};
use crate::convert::gateway::{item_cost, item_in};
use crate::link::credit::Taken;
use crate::proto::node::v1::edge_frame::Frame;
use crate::proto::types::v1::Credit;

/// Items that may wait for the listener beside those that the credit allows.
const WAITING: usize = 16;

/// Passes on what arrives, and grants credit as it is read. A stream that breaks off ends with
/// [`StreamItem::Moved`].
pub(super) fn forward(
    link: Arc<Link>,
    flight: u64,
    cursor: EventId,
    mut arriving: QuietReceiver<Passed>,
) -> EventStream {
    let (sender, items) = quiet_channel(WAITING);
    tokio::spawn(async move {
        let mut taken = Taken::default();
        loop {
            let passed = tokio::select! {
                passed = arriving.recv() => passed,
                () = sender.closed() => return link.detach(flight),
            };
            let item = match passed {
                Some(Passed::Item(item)) => item,
                Some(Passed::End) => return,
                None => {
                    let _ = sender.send(StreamItem::Moved).await;
                    return;
                }
            };
            let cost = item_cost(&item);
            match item_in(item) {
                Ok(Some(item)) => {
                    if sender.send(item).await.is_err() {
                        return link.detach(flight);
                    }
                }
                Ok(None) => {}
                Err(malformed) => {
                    // What follows might leave a gap: the listener begins again after its last id.
                    tracing::warn!(%malformed, "a stream of another node cannot be read");
                    link.detach(flight);
                    let _ = sender.send(StreamItem::Moved).await;
                    return;
                }
            }
            if let Some(bytes) = taken.add(cost, link.config.credit) {
                link.outbox
                    .push_now(Frame::Credit(Credit { flight, bytes }));
            }
        }
    });
    EventStream { items, cursor }
}
