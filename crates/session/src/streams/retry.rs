use std::time::Duration;

use shoal_ports::SessionId;

/// Returns `retry` plus a part of `spread` that follows from the session's id.
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

    fn of(session: &SessionId) -> Duration {
        retry_of(session, RETRY, SPREAD)
    }

    #[test]
    fn clients_come_back_evenly_over_the_spread() {
        let mut tenths = [0; 10];
        for _ in 0..10_000 {
            let after = of(&SessionId::random()) - RETRY;
            let tenth = after.as_millis() * 10 / SPREAD.as_millis();
            tenths[usize::try_from(tenth).unwrap()] += 1;
        }
        let even = |count: &u32| (800..1200).contains(count);
        assert!(tenths.iter().all(even), "{tenths:?}");
    }

    #[test]
    fn a_session_is_always_told_the_same() {
        let session = SessionId::random();
        let told = of(&session);
        assert_eq!(told, of(&session));
    }
}
