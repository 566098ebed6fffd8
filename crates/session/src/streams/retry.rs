//! When clients come back, so that a crowd whose connections broke together does not come back together.

use std::time::Duration;

use shoal_ports::SessionId;

/// When the client of a session comes back after its stream broke: after `retry` and its share of `spread`, by its id,
/// so that no client is told now this, now that.
pub(super) fn retry_of(session: &SessionId, retry: Duration, spread: Duration) -> Duration {
    let share = session.as_str().bytes().fold(0u32, |sum, byte| {
        sum.wrapping_mul(31).wrapping_add(u32::from(byte))
    }) % 1000;
    retry + spread * share / 1000
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use shoal_ports::SessionId;

    use super::retry_of;

    const RETRY: Duration = Duration::from_secs(1);
    const SPREAD: Duration = Duration::from_secs(4);

    #[test]
    fn clients_come_back_evenly_over_the_spread() {
        let mut tenths = [0; 10];
        for _ in 0..10_000 {
            let back = retry_of(&SessionId::random(), RETRY, SPREAD);
            let after = usize::try_from((back - RETRY).as_millis()).unwrap();
            tenths[after / 400] += 1;
        }
        let even = |count: &u32| (800..1200).contains(count);
        assert!(tenths.iter().all(even), "{tenths:?}");
    }

    #[test]
    fn a_session_is_always_told_the_same() {
        let session = SessionId::random();
        let told = retry_of(&session, RETRY, SPREAD);
        assert_eq!(told, retry_of(&session, RETRY, SPREAD));
    }
}
