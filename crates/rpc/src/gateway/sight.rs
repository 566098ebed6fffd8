//! Whether the process of a node is there, by what a dial says.

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

/// What a dial says of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sight {
    /// Its process is gone: its machine says that nobody listens at its address, or another node answers there.
    Gone,
    /// It answers.
    There,
    /// Nothing: what is slow, cut off or resets connections may be there.
    Unknown,
}

/// Dials a node to see whether its process is there.
///
/// `from` names this node in the other's logs. Cancellation safe; takes as long as the handshake's time-out at most, or
/// somewhat longer where connections are reset.
pub async fn look_for(from: &NodeId, node: &NodeId, address: &str, config: &LinkConfig) -> Sight {
    for dialled in 0..DIALS {
        if dialled > 0 {
            sleep(PAUSE).await;
        }
        match greet(from, None, address, config).await {
            Ok(there) => {
                // The other side would wait for more, and take the link for broken.
                there.outbox.close(Some("it was only looked for"));
                return match there.welcome.node.as_str() {
                    found if found == node.as_str() => Sight::There,
                    // A name that is not said is no other's.
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
