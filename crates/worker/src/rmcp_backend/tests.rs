//! Tests of real handlers, called through a worker.

mod asking;
mod catalog;
mod client;
mod context;
mod keeping;
mod peers;
mod probe;
mod running;
