//! When clients come back, so that a crowd whose connections broke together does not come back together.

use std::time::Duration;

use shoal_ports::SessionId;

/// When the client of a session comes back after its stream broke: between once and twice `retry`, by its id,
/// so that no client is told now this, now that.
pub(super) fn retry_of(session: &SessionId, retry: Duration) -> Duration {
    let share = session.as_str().bytes().fold(0u32, |sum, byte| {
        sum.wrapping_mul(31).wrapping_add(u32::from(byte))
    }) % 1000;
    retry + retry * share / 1000
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use shoal_ports::SessionId;

    use super::retry_of;

    #[test]
    fn clients_come_back_spread_over_the_time_between_once_and_twice_retry() {
        let mut tenths = [0; 10];
        for _ in 0..10_000 {
            let back = retry_of(&SessionId::random(), Duration::from_millis(1000));
            let after = usize::try_from(back.as_millis()).unwrap() - 1000;
            tenths[after / 100] += 1;
        }
        let even = |count: &u32| (800..1200).contains(count);
        assert!(tenths.iter().all(even), "{tenths:?}");
    }

    #[test]
    fn a_session_is_always_told_the_same() {
        let session = SessionId::random();
        let told = retry_of(&session, Duration::from_secs(1));
        assert_eq!(told, retry_of(&session, Duration::from_secs(1)));
    }
}
