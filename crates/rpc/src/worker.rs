//! The node's side of worker links: workers of other processes behind the `Worker` trait.
//!
//! | | |
//! |---|---|
//! | `service` | a worker says hello |
//! | `links` | the workers that there are, and the set that is told of them |
//! | `drive` | what arrives on one link |
//! | `peer` | what is kept of one worker, whatever becomes of its links |
//! | `link` | one link, and the flights that end with it |
//! | `linked_call` | one reader of one call |
//! | `reader` | a running call in the hands of whoever asked for it |

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
