//! When clients come back, so that a crowd whose connections broke together does not come back together.

use std::time::Duration;

use shoal_ports::SessionId;
use shoal_protocol::StreamId;

/// When the client of a session comes back after a stream broke: after `retry` and its share of a time, by the session's
/// id, so that no client is told now this, now that.
///
/// Many sessions listen, and none of them waits for an answer: they have all of `spread`. Who has a call under way does
/// wait, and there are fewer of those: they come within twice `retry`.
pub(super) fn retry_of(
    session: &SessionId,
    stream: StreamId,
    retry: Duration,
    spread: Duration,
) -> Duration {
    let spread = match stream {
        StreamId::STANDALONE => spread,
        _ => spread.min(retry),
    };
    let share = session.as_str().bytes().fold(0u32, |sum, byte| {
        sum.wrapping_mul(31).wrapping_add(u32::from(byte))
    }) % 1000;
    retry + spread * share / 1000
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use shoal_ports::SessionId;
    use shoal_protocol::StreamId;

    use super::retry_of;

    const RETRY: Duration = Duration::from_secs(1);
    const SPREAD: Duration = Duration::from_secs(4);

    fn of(session: &SessionId, stream: StreamId) -> Duration {
        retry_of(session, stream, RETRY, SPREAD)
    }

    #[test]
    fn clients_come_back_evenly_over_the_time_that_their_stream_has() {
        for (stream, spread) in [(StreamId::STANDALONE, SPREAD), (StreamId(1), RETRY)] {
            let mut tenths = [0; 10];
            for _ in 0..10_000 {
                let after = of(&SessionId::random(), stream) - RETRY;
                let tenth = after.as_millis() * 10 / spread.as_millis();
                tenths[usize::try_from(tenth).unwrap()] += 1;
            }
            let even = |count: &u32| (800..1200).contains(count);
            assert!(tenths.iter().all(even), "{stream}: {tenths:?}");
        }
    }

    #[test]
    fn a_session_is_always_told_the_same() {
        let session = SessionId::random();
        let told = of(&session, StreamId::STANDALONE);
        assert_eq!(told, of(&session, StreamId::STANDALONE));
    }
}
