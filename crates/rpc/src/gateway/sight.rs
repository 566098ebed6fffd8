use std::time::Duration;

use shoal_ports::NodeId;
use tokio::time::sleep;

use super::connect::greet;
use crate::LinkConfig;
use crate::error::LinkError;

/// How many times to dial an address that breaks connections, because an exiting process may still accept some.
const DIALS: u32 = 3;
const PAUSE: Duration = Duration::from_millis(10);

/// The result of a probe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sight {
    /// The machine refuses connections, or another node answers there.
    Gone,
    /// The node answers.
    There,
    /// The node may be alive: it is slow or partitioned, resets connections, or gives no id.
    Unknown,
}

/// Probes whether a node's process is alive, for about the handshake timeout. `from` names this node in logs.
/// Cancellation safe.
pub async fn look_for(from: &NodeId, node: &NodeId, address: &str, config: &LinkConfig) -> Sight {
    for dialled in 0..DIALS {
        if dialled > 0 {
            sleep(PAUSE).await;
        }
        match greet(from, None, address, config).await {
            Ok(there) => {
                // Without a goodbye, the other side would treat the link as broken.
                there.outbox.close(Some(
                    "the link served only to check whether the node is reachable",
                ));
                return match there.welcome.node.as_str() {
                    found if found == node.as_str() => Sight::There,
                    // A node that gives no id may be the right one.
                    "" => Sight::Unknown,
                    _ => Sight::Gone,
                };
            }
            Err(LinkError::NobodyListens(_)) => return Sight::Gone,
            Err(LinkError::Transport(_) | LinkError::Closed(_) | LinkError::Ended) => {}
            Err(_) => return Sight::Unknown,
        }
    }
    Sight::Unknown
}
