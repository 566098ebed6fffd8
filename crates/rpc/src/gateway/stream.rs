use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use futures::Stream;
use shoal_ports::{EventStream, LazyReceiver, StreamItem, StreamItems};
use shoal_protocol::EventId;

use super::link::{GatewayLink, Passed};
use crate::convert::gateway::{item_cost, item_in};
use crate::link::credit::UngrantedCredit;
use crate::proto::node::v1::edge_frame::Frame;
use crate::proto::types::v1::Credit;

/// Grants the peer credit for yielded items. Ends with [`StreamItem::Moved`] if the link breaks. Detaches the flight
/// on drop.
struct Arriving {
    link: Arc<GatewayLink>,
    flight: u64,
    items: LazyReceiver<Passed>,
    taken: UngrantedCredit,
    over: bool,
}

pub(super) fn arriving(
    link: Arc<GatewayLink>,
    flight: u64,
    cursor: EventId,
    items: LazyReceiver<Passed>,
) -> EventStream {
    let arriving = Arriving {
        link,
        flight,
        items,
        taken: UngrantedCredit::default(),
        over: false,
    };
    EventStream {
        items: StreamItems::polled(arriving),
        cursor,
    }
}

impl Arriving {
    fn grant(&mut self, cost: u64) {
        if let Some(bytes) = self.taken.add(cost, self.link.config.credit) {
            let flight = self.flight;
            (self.link.outbox).push_now(Frame::Credit(Credit { flight, bytes }));
        }
    }

    fn broke(&mut self) -> Option<StreamItem> {
        self.over = true;
        Some(StreamItem::Moved)
    }
}

impl Stream for Arriving {
    type Item = StreamItem;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<StreamItem>> {
        while !self.over {
            let item = match ready!(self.items.poll_recv(cx)) {
                Some(Passed::Item(item)) => item,
                Some(Passed::End) => {
                    self.over = true;
                    break;
                }
                None => return Poll::Ready(self.broke()),
            };
            self.grant(item_cost(&item));
            match item_in(item) {
                Ok(Some(item)) => return Poll::Ready(Some(item)),
                Ok(None) => {}
                Err(malformed) => {
                    // Stops, because later items would leave a gap. The listener resumes after its last id.
                    tracing::warn!(%malformed, "a stream of another node cannot be read");
                    self.link.detach(self.flight);
                    return Poll::Ready(self.broke());
                }
            }
        }
        Poll::Ready(None)
    }
}

impl Drop for Arriving {
    fn drop(&mut self) {
        if !self.over {
            self.link.detach(self.flight);
        }
    }
}
