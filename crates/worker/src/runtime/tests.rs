//! The runtime's promises, seen through the `Worker` trait.

mod attaching;
mod ending;
mod overload;
pub(super) mod script;
mod shutting_down;
mod talking;
