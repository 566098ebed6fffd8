//! The types of the ports as messages, and back; total in the first direction, checked in the second.
//!
//! What a worker says may come from a program in any language, so its JSON is checked before it goes on to
//! clients. JSON between Shoal's own processes was checked by the first of them.

pub(crate) mod call;
pub(crate) mod catalog;
pub(crate) mod event;
pub(crate) mod gateway;
pub(crate) mod node;
pub(crate) mod outcome;
pub(crate) mod post;
#[cfg(test)]
mod tests;
pub(crate) mod trace;

use std::time::Duration;

use bytes::Bytes;
use shoal_protocol::RawJson;

use crate::error::Malformed;

/// The longest time that is told apart from forever, so that adding it to a clock cannot overflow.
const LONGEST: Duration = Duration::from_secs(366 * 24 * 60 * 60);

/// Whole milliseconds, rounded up: a time that is over only in the next one is not over.
fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos().div_ceil(1_000_000)).unwrap_or(u64::MAX)
}

/// A time that came as milliseconds.
fn duration(millis: u64) -> Duration {
    Duration::from_millis(millis).min(LONGEST)
}

/// JSON of a peer that is trusted to have checked it.
fn trusted(text: Bytes) -> RawJson {
    RawJson::from_valid(text)
}

/// JSON of whoever.
fn checked(text: Bytes, what: &'static str) -> Result<RawJson, Malformed> {
    RawJson::parse_text(text).map_err(|_| Malformed(what))
}

/// 16 bytes.
fn sixteen(bytes: &[u8], what: &'static str) -> Result<[u8; 16], Malformed> {
    bytes.try_into().map_err(|_| Malformed(what))
}

fn count(number: u64) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}
