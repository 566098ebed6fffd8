//! Tests with real processes. They need `python3` on `PATH`; `tests/fixtures/*.py` use no packages.

use crate::upstream::harness;

mod asking;
mod eras;
mod lifecycle;
mod messages;
mod odd;
mod own_lists;
mod packages;
mod waiting;
