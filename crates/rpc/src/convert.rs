//! Workers may be written in any language, so Shoal validates their JSON here.

pub(crate) mod call;
pub(crate) mod catalog;
pub(crate) mod event;
pub(crate) mod gateway;
pub(crate) mod node;
pub(crate) mod outcome;
pub(crate) mod post;
pub(crate) mod task;
#[cfg(test)]
mod tests;
pub(crate) mod trace;
pub(crate) mod until_over;

use std::time::Duration;

use bytes::Bytes;
use shoal_protocol::RawJson;

use crate::error::Malformed;

/// Longer durations are cut, so that adding one to an `Instant` cannot overflow.
const LONGEST: Duration = Duration::from_secs(366 * 24 * 60 * 60);

/// Rounds up, so that a remaining time does not become zero.
fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos().div_ceil(1_000_000)).unwrap_or(u64::MAX)
}

fn duration(millis: u64) -> Duration {
    Duration::from_millis(millis).min(LONGEST)
}

fn trusted(text: Bytes) -> RawJson {
    RawJson::from_valid(text)
}

fn checked(text: Bytes, what: &'static str) -> Result<RawJson, Malformed> {
    RawJson::parse_text(text).map_err(|_| Malformed(what))
}

fn sixteen(bytes: &[u8], what: &'static str) -> Result<[u8; 16], Malformed> {
    bytes.try_into().map_err(|_| Malformed(what))
}

fn count(number: u64) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}
