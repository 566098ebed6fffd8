//! What operators see of a node.

mod lists;
mod node;

pub(crate) use lists::{
    calls_in, calls_out, detail_in, detail_out, errors_in, errors_out, sessions_in, sessions_out,
};
pub(crate) use node::{node_in, node_out};
