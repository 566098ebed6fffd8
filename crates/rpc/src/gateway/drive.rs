use std::sync::Arc;

use futures::{StreamExt as _, stream};
use shoal_telemetry::metrics::LinkKind;
use tonic::Streaming;

use super::link::{GatewayLink, GatewayReply, Passed};
use crate::convert::gateway::{error_from_wire, event_id_in, opened_in};
use crate::convert::task::{task_in, tasks_in};
use crate::error::{LinkError, Malformed};
use crate::link::events::LinkEvents;
use crate::link::inbox::Inbox;
use crate::link::meter::Up;
use crate::proto::node::v1::session_frame::Frame;
use crate::proto::node::v1::{EdgeFrame, SessionFrame};

type SessionInbox = Inbox<Streaming<SessionFrame>, SessionFrame, EdgeFrame>;

pub(super) async fn drive(link: Arc<GatewayLink>, mut inbox: SessionInbox, address: String) {
    let up = Up::new(LinkKind::Gateway);
    let closing = stream::once(link.closing.clone().cancelled_owned());
    let mut events = LinkEvents::new()
        .or(inbox.pulse(&link.config))
        .or(closing.map(|()| Err(LinkError::Left("the link is no longer needed"))));
    let ended = loop {
        // Receiving frames spends none of Tokio's task budget. Spend it here, so that a busy link lets other tasks run.
        tokio::task::consume_budget().await;
        let goes_on = tokio::select! {
            biased;
            frame = inbox.next() => frame.and_then(|frame| handle(&link, frame)),
            goes_on = events.next() => goes_on,
        };
        if let Err(error) = goes_on {
            break error;
        }
    };
    tracing::info!(node = %address, reason = %ended, "the link to a session node ended");
    up.ended(&ended);
    link.over(&ended.to_string());
}

fn handle(link: &Arc<GatewayLink>, frame: SessionFrame) -> Result<(), LinkError> {
    let Some(frame) = frame.frame else {
        return Ok(());
    };
    match frame {
        Frame::Json(said) => link.reply(said.flight, GatewayReply::Json(said.text)),
        Frame::Accepted(said) => link.reply(said.flight, GatewayReply::Accepted),
        Frame::Opened(said) => {
            let flight = said.flight;
            link.reply(flight, GatewayReply::Opened(opened_in(said)?));
        }
        Frame::Closed(said) => link.reply(said.flight, GatewayReply::Closed),
        Frame::Failed(said) => {
            link.reply(
                said.flight,
                GatewayReply::Failed(error_from_wire(said.error)),
            );
        }
        Frame::Task(said) => link.reply(said.flight, GatewayReply::Task(task_in(said))),
        Frame::SessionTasks(said) => {
            link.reply(said.flight, GatewayReply::SessionTasks(tasks_in(said)));
        }
        Frame::StreamBegan(said) => {
            let cursor = said.cursor.ok_or(Malformed("stream: it has no cursor"))?;
            link.began(said.flight, event_id_in(cursor));
        }
        Frame::Item(item) => link.pass(item.flight, Passed::Item(item)),
        Frame::End(said) => link.pass(said.flight, Passed::End),
        Frame::Welcome(_) => return Err(LinkError::protocol("a second welcome")),
        // The inbox has already handled these frames.
        Frame::Batch(_)
        | Frame::Fragment(_)
        | Frame::Ping(_)
        | Frame::Pong(_)
        | Frame::Close(_) => {}
    }
    Ok(())
}
