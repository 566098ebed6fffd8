//! Tests with a real server, `tests/fixtures/streamable.py`, which needs only `python3`.

use crate::upstream::harness;

mod callers;
mod calls;
mod credentials;
mod http_sse;
mod odd;
mod own_lists;
mod server;
mod sessions;
mod streams;
mod trust;
