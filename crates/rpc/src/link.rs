//! The common part of worker links and node links: one bidirectional stream with many numbered
//! flights. A flight is a call or a request on a link.
//!
//! | | |
//! |---|---|
//! | `frame` | the parts of a contract's frames that the link must know |
//! | `outbox` | frames to send: fair among flights, batched, bounded |
//! | `lanes` | long frames, sent in fragments that take turns |
//! | `inbox` | received frames: opens batches, joins fragments, answers pings |
//! | `credit` | how much of a flight may be sent, and how much was read |
//! | `pulse` | whether the peer is alive |
//! | `clocks` | the difference to the peer's clock, for operators |
//! | `ready` | many flights polled by one task |
//! | `handshake` | the hello, the welcome, and their agreement |
//! | `events` | events other than frames |
//! | `versions` | the version that a link speaks |
//! | `meter` | metrics of links |
//! | `dial` | connections to other processes, and the pauses between attempts |

use std::collections::HashMap;

use foldhash::fast::RandomState;

pub(crate) mod clocks;
pub(crate) mod credit;
pub(crate) mod dial;
pub(crate) mod events;
pub(crate) mod frame;
pub(crate) mod handshake;
pub(crate) mod inbox;
mod lanes;
pub(crate) mod meter;
pub(crate) mod outbox;
pub(crate) mod pulse;
pub(crate) mod ready;
#[cfg(test)]
mod tests;
pub(crate) mod versions;

/// Maximum bytes of a frame that is sent whole. Longer frames are sent in fragments.
pub(crate) const LONGEST_WHOLE: usize = 64 * 1024;
pub(crate) const FRAGMENT: usize = 32 * 1024;
/// Maximum number of frames in each direction that are in fragments at once.
pub(crate) const LANES: usize = 8;
pub(crate) const BATCH_BYTES: usize = 32 * 1024;
pub(crate) const BATCH_FRAMES: usize = 128;
/// Maximum bytes of a message: a whole frame, a batch or a fragment, with its envelope.
pub(crate) const LONGEST_MESSAGE: usize = 128 * 1024;

/// Hashes fast, because every frame looks up its flight.
pub(crate) type ByFlight<T> = HashMap<u64, T, RandomState>;
