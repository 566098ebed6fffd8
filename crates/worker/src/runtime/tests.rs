//! The runtime's guarantees, tested through the `Worker` trait.

mod asking;
mod attaching;
mod changing;
mod ending;
mod first_turn;
mod overload;
pub(super) mod script;
mod sharing;
mod shutting_down;
mod talking;
