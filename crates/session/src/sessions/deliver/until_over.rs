//! Answers an edge's request to wait until calls have stopped.

use std::sync::Arc;

use shoal_ports::{Delivered, GatewayError, SessionRef, UNTIL_OVER};
use shoal_protocol::{Method, Request, RequestId};

use super::super::Node;
use crate::state::empty_result;

pub(super) fn is_asked(request: &Request) -> bool {
    matches!(&request.method, Method::Other(name) if **name == *UNTIL_OVER)
}

impl Node {
    /// Waits until the calls have stopped. If this node loses the session meanwhile, the edge asks the session's next
    /// owner.
    pub(super) async fn wait_until_over(
        self: &Arc<Self>,
        to: &SessionRef,
        request: &Request,
    ) -> Result<Delivered, GatewayError> {
        let live = self.find(to).await?;
        let requests = requests_of(request);
        for slot in live.calls_of(requests.as_deref()) {
            slot.until_over().await;
        }
        match live.is_lost() {
            true => Err(self.being_moved()),
            false => Ok(Delivered::Json(empty_result(&request.id))),
        }
    }
}

fn requests_of(request: &Request) -> Option<Vec<RequestId>> {
    request.params.as_ref()?.member("requests")?.read().ok()?
}
