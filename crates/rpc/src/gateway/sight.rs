//! Whether the process of a node is gone, by what a dial says.

use std::time::Duration;

use shoal_ports::NodeId;
use tokio::time::sleep;

use super::connect::greet;
use crate::LinkConfig;
use crate::error::LinkError;

/// How often an address is dialled whose connections break: a process that is just going has some made for it still.
const DIALS: u32 = 3;
/// The pause between two of them.
const PAUSE: Duration = Duration::from_millis(10);

/// Dials a node to see whether its process is gone: its machine says that nobody listens at its address, or another
/// node answers there. Everything else says nothing of it: what is slow, cut off or resets connections may be there.
///
/// `from` names this node in the other's logs. Cancellation safe; takes as long as the handshake's time-out at most, or
/// somewhat longer where connections are reset.
pub async fn is_gone(from: &NodeId, node: &NodeId, address: &str, config: &LinkConfig) -> bool {
    for dialled in 0..DIALS {
        if dialled > 0 {
            sleep(PAUSE).await;
        }
        match greet(from, None, address, config).await {
            // A name that is not said is no other's.
            Ok(there) => return !there.node.is_empty() && there.node != node.as_str(),
            Err(LinkError::NobodyListens(_)) => return true,
            Err(LinkError::Transport(_) | LinkError::Closed(_) | LinkError::Ended) => {}
            Err(_) => return false,
        }
    }
    false
}
