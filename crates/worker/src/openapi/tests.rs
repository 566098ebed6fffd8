//! The backend against a real service, `tests/fixtures/petstore.py`, which needs `python3` and no packages.

use crate::upstream::harness;

mod answers;
mod calls;
mod credentials;
mod odd;
mod presence;
mod service;
