use std::sync::Arc;

use shoal_ports::{GatewayError, SessionRef};
use shoal_protocol::RequestId;

use super::Node;

impl Node {
    /// If this node loses the session meanwhile, fails so that the edge asks the next owner.
    pub(crate) async fn until_over(
        self: &Arc<Self>,
        to: &SessionRef,
        requests: Option<&[RequestId]>,
    ) -> Result<(), GatewayError> {
        let live = self.find(to).await?;
        for slot in live.calls_of(requests) {
            slot.until_over().await;
        }
        match live.is_lost() {
            true => Err(self.being_moved()),
            false => Ok(()),
        }
    }
}
