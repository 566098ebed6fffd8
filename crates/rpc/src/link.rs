//! What both contracts share: one bidirectional stream that carries many flights, which is what the contracts call the
//! calls and requests on a link, each with its number.
//!
//! | | |
//! |---|---|
//! | `frame` | what the link itself must know of a contract's frames |
//! | `outbox` | what waits to be sent: fair among flights, batched, bounded |
//! | `lanes` | long frames, sent in fragments that take turns |
//! | `inbox` | what arrives: batches opened, fragments put together, pings answered |
//! | `credit` | how much of a flight may be sent, and what was read of it |
//! | `pulse` | whether the peer is alive |
//! | `clocks` | how far its clock is from this one, for operators |
//! | `ready` | many flights polled by one task |
//! | `handshake` | the hello, the welcome, and what is agreed on |
//! | `events` | what is waited for beside frames |
//! | `versions` | which version is spoken |
//! | `meter` | what metrics are told of links |
//! | `dial` | connections to other processes, and the waits between attempts |

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

/// A frame that is longer goes in fragments.
pub(crate) const LONGEST_WHOLE: usize = 64 * 1024;
/// Bytes of a frame in one fragment.
pub(crate) const FRAGMENT: usize = 32 * 1024;
/// Frames of one direction that may be under way in fragments at a time.
pub(crate) const LANES: usize = 8;
/// Bytes of frames that travel in one batch at most.
pub(crate) const BATCH_BYTES: usize = 32 * 1024;
/// Frames in one batch at most.
pub(crate) const BATCH_FRAMES: usize = 128;
/// The longest gRPC message: a whole frame, a batch or a fragment with what is around it.
pub(crate) const LONGEST_MESSAGE: usize = 128 * 1024;

/// What a link keeps of each flight, by its number; a call looks for its own several times.
pub(crate) type ByFlight<T> = HashMap<u64, T, RandomState>;
