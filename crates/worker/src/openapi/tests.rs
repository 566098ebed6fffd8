//! Tests with a real service, `tests/fixtures/petstore.py`, which needs only `python3`.

use crate::upstream::harness;

mod answers;
mod calls;
mod credentials;
mod odd;
mod presence;
mod service;
