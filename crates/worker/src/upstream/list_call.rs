use std::sync::Arc;
use std::sync::atomic::AtomicUsize;

use shoal_ports::{Call, CallFailure, CallOutcome};
use shoal_protocol::{RawJson, RawObject, RpcError};

use super::error::{NeverWritten, RequestError};
use super::link::ServerLink;
use super::lists::{List, MAX_BYTES, Pages, pages};
use crate::CallContext;

/// Answers with all pages of the caller's own list.
///
/// # Errors
/// The server has forgotten the connection; another connection may answer.
pub(super) async fn answer(
    link: &Arc<ServerLink>,
    list: List,
    call: &Call,
    context: &CallContext,
) -> Result<CallOutcome, NeverWritten> {
    let room = AtomicUsize::new(MAX_BYTES);
    let read = tokio::select! {
        biased;
        read = pages(link, list, &room, Some(call)) => read,
        () = context.cancelled().cancelled() => return Ok(CallOutcome::Failed(CallFailure::Cancelled)),
    };
    Ok(match read {
        Ok(mut pages) => {
            if let Some(remark) = &pages.remark {
                tracing::warn!(target: "shoal::upstream", server = link.name(), "{remark}");
            }
            takes_in(link, list, &mut pages.items);
            CallOutcome::Result(pages.to_json(list))
        }
        Err(RequestError::Ended(reason)) if link.lost().is_some() => {
            return Err(NeverWritten::new(reason));
        }
        Err(RequestError::Ended(reason)) => {
            CallOutcome::Failed(CallFailure::outcome_unknown(&*reason))
        }
        Err(RequestError::Rpc(error)) => CallOutcome::Error(error),
        Err(error) => {
            let told = format!("{} could not be read: {error}", list.method());
            CallOutcome::Error(RpcError::internal(told))
        }
    })
}

pub(super) async fn read_own(
    link: &Arc<ServerLink>,
    list: List,
) -> Result<Vec<RawJson>, RequestError> {
    let room = AtomicUsize::new(MAX_BYTES);
    let mut items = pages(link, list, &room, None).await?.items;
    takes_in(link, list, &mut items);
    Ok(items)
}

fn takes_in(link: &ServerLink, list: List, items: &mut [RawJson]) {
    if list == List::Tools {
        link.learn_own_task_tools(items);
    }
}

impl Pages {
    fn to_json(&self, list: List) -> RawJson {
        let mut result = RawObject::default();
        result.set(list.member(), RawJson::of(&self.items));
        if let Some(ttl) = self.ttl {
            result.set("ttlMs", RawJson::of(&ttl));
        }
        result.to_json()
    }
}
