//! The node's side of worker links: remote workers behind the `Worker` trait.
//!
//! | | |
//! |---|---|
//! | `service` | a worker says hello |
//! | `links` | the linked workers, and the set that learns of them |
//! | `drive` | the frames that arrive on one link |
//! | `peer` | the state of one worker, which outlives its links |
//! | `link` | one link, and the flights that end with it |
//! | `linked_call` | one reader of one call |
//! | `reader` | a running call, as its caller reads and controls it |

mod acknowledged;
mod drive;
mod gauge;
mod link;
mod linked_call;
mod links;
mod peer;
mod reader;
mod remote;
mod service;

pub use links::{WorkerLinks, serve_workers};
pub use remote::RemoteWorker;
