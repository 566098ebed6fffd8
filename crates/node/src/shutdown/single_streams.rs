//! Ends the streams that cannot be resumed: HTTP+SSE streams, and WebSocket streams without event ids.

use std::time::Duration;

use futures::StreamExt as _;
use futures::stream;
use shoal_cluster::{Fleet, Located};
use shoal_ports::SessionId;
use shoal_protocol::EventId;
use tokio::time::{Instant, sleep, timeout_at};

use crate::node::Node;

const ASK_AGAIN: Duration = Duration::from_millis(100);
const ASKED_AT_ONCE: usize = 16;

/// Ends each stream when its client has received everything, because the stream's end ends the session. Asks the
/// session's owner for the last event, because messages may arrive at any edge.
pub(super) async fn end_single_streams(node: &Node, limit: Duration) {
    let streams = node.watch.load.single_streams();
    let deadline = Instant::now() + limit;
    while streams.count() > 0 {
        let looks = stream::iter(streams.open())
            .map(|(session, passed)| async move {
                if is_quiet(&node.fleet, &session, passed).await {
                    streams.end(&session);
                }
            })
            .buffer_unordered(ASKED_AT_ONCE)
            .collect::<()>();
        let looked = timeout_at(deadline, async {
            looks.await;
            sleep(ASK_AGAIN).await;
        });
        if looked.await.is_err() {
            let left = streams.open();
            tracing::warn!(
                streams = left.len(),
                "ending streams that cannot be resumed, whose calls did not finish"
            );
            left.iter().for_each(|(session, _)| streams.end(session));
            return;
        }
    }
}

/// Whether no call runs and the client has received the session's last event.
async fn is_quiet(fleet: &Fleet, session: &SessionId, passed: EventId) -> bool {
    let Some(Located { item: detail, .. }) = fleet.session(session).await else {
        return false;
    };
    let mut streams = detail.streams.iter();
    let last = streams.find(|stream| stream.standalone).map(|it| &it.last);
    let has_all = last.is_none_or(|last| *last == passed.to_string());
    detail.session.live && detail.session.in_flight == 0 && has_all
}
