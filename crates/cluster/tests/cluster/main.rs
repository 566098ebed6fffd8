//! Several nodes in one process: real memberships and routing over a shared store, with scripted
//! sessions.
#![allow(clippy::unwrap_used, reason = "in tests, a failed step is the report")]

mod adopt;
mod deliver;
mod evidence;
mod hand_over;
mod hint;
mod membership;
mod open;
mod pools;
mod relay;
mod store_away;
mod streams;
mod test_cluster;
