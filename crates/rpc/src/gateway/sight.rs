//! Probes whether the process of a node is alive.

use std::time::Duration;

use shoal_ports::NodeId;
use tokio::time::sleep;

use super::connect::greet;
use crate::LinkConfig;
use crate::error::LinkError;

/// Attempts when connections break: an exiting process may still get some.
const DIALS: u32 = 3;
/// Pause between two attempts.
const PAUSE: Duration = Duration::from_millis(10);

/// The result of a probe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sight {
    /// The process is gone: its machine refuses connections, or another node answers there.
    Gone,
    /// The node answers.
    There,
    /// Inconclusive: a node that is slow, partitioned or resets connections may be alive.
    Unknown,
}

/// Dials a node to find out whether its process is alive. `from` names this node in the other's
/// logs.
///
/// Takes at most the handshake timeout, or slightly longer if connections are reset.
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
                // Without a goodbye, the other side would treat the link as broken.
                there.outbox.close(Some("it was only looked for"));
                return match there.welcome.node.as_str() {
                    found if found == node.as_str() => Sight::There,
                    // An empty name proves nothing.
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
