//! Probes whether the process of a node is alive.

use std::time::Duration;

use shoal_ports::NodeId;
use tokio::time::sleep;

use super::connect::greet;
use crate::LinkConfig;
use crate::error::LinkError;

/// How often to dial before the process counts as gone, because an exiting process may still accept some connections.
const DIALS: u32 = 3;
const PAUSE: Duration = Duration::from_millis(10);

/// The result of a probe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sight {
    /// The machine refuses connections, or another node answers at the address.
    Gone,
    /// The node answers.
    There,
    /// The probe was inconclusive: the node may be slow, partitioned or reset connections.
    Unknown,
}

/// Probes whether a node's process is alive, for about the handshake timeout. `from` names this
/// node in logs.
///
/// # Cancel safety
/// Cancellation safe.
pub async fn look_for(from: &NodeId, node: &NodeId, address: &str, config: &LinkConfig) -> Sight {
    for dialled in 0..DIALS {
        if dialled > 0 {
            sleep(PAUSE).await;
        }
        match greet(from, None, address, config).await {
            Ok(there) => {
                // Close with a reason, or the other side would log a broken link.
                there.outbox.close(Some("it was only looked for"));
                return match there.welcome.node.as_str() {
                    found if found == node.as_str() => Sight::There,
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
