//! Whose calls end the server's processes, and what such calls have to put up with.
//!
//! A process that ends takes along all calls that run in it, and does not say which of them it ended for. If they were one
//! caller's, it was for one of those: the next ones like them wait, twice as long each time. If there were several callers,
//! each is a suspect. Calls that are suspected again and again run apart from other callers' until they have succeeded
//! there. So nobody is refused for what another's call does, and whoever ends processes soon ends none but its own.

use std::collections::VecDeque;
use std::time::Duration;

use shoal_ports::{FailureKey, FailureTable};
use tokio::time::Instant;

use crate::upstream::STABLE;

/// How long after a call a process may end because of it.
const AFTERMATH: Duration = Duration::from_secs(1);
/// Callers and tools that are remembered of a process after their calls, besides those that run.
const RECENT: usize = 64;
/// How often a call that runs beside others' may see its process end before it runs apart. A call that is safe to repeat is
/// tried once more often.
const PATIENCE: u32 = 2;
/// Calls that must succeed apart, at most.
const MOST_OWED: u32 = 1024;

/// What is held against callers and tools.
pub(super) struct Crashes {
    held: FailureTable<Suspicion>,
    first: Duration,
    longest: Duration,
}

#[derive(Debug, Default)]
struct Suspicion {
    /// Processes that ended with its calls and others'.
    together: u32,
    /// Processes that ended with its caller's calls alone.
    alone: u32,
    /// How often it had to show itself.
    trials: u32,
    /// Calls that must succeed apart before it shares processes again.
    owed: u32,
    last: Option<Instant>,
    not_before: Option<Instant>,
}

/// Where a call may run.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Admission {
    /// Wherever there is room.
    Shared,
    /// Apart from other callers' calls; beside them where it is not `certain` whose calls end processes, and there is no room.
    Apart { certain: bool },
    /// Nowhere for this time: its like have ended so many processes.
    Later(Duration, u32),
}

/// Whose calls a process runs, or ran a moment ago.
#[derive(Debug, Default)]
pub(super) struct Occupants {
    running: Vec<FailureKey>,
    recent: VecDeque<(FailureKey, Instant)>,
}

impl Crashes {
    /// Pauses grow from `first` to `longest`.
    pub(super) fn new(first: Duration, longest: Duration) -> Self {
        let longest = longest.max(first);
        Self {
            held: FailureTable::keeping(longest * 2 + STABLE),
            first,
            longest,
        }
    }

    /// Where a call of this key may run now.
    pub(super) fn admit(&mut self, key: &FailureKey) -> Admission {
        let now = Instant::now();
        let Some(held) = self.held.get(key).filter(|held| !held.is_over(now)) else {
            return Admission::Shared;
        };
        let pause = held.not_before.map(|at| at.saturating_duration_since(now));
        match pause.filter(|pause| !pause.is_zero() && !key.is_anybodys()) {
            Some(pause) => Admission::Later(pause, held.alone),
            None if held.owed > 0 => Admission::Apart {
                certain: held.alone > 0 && !key.is_anybodys(),
            },
            None => Admission::Shared,
        }
    }

    /// A process ended by itself.
    pub(super) fn ended(&mut self, occupants: &Occupants) {
        let suspects = occupants.suspects();
        let is_certain = suspects
            .windows(2)
            .all(|two| two[0].is_of_caller_of(&two[1]));
        for key in suspects {
            let now = Instant::now();
            let held = self.held.note(key);
            if held.is_over(now) {
                *held = Suspicion::default();
            }
            held.last = Some(now);
            if is_certain {
                let doubled = 2_u32.saturating_pow(held.alone);
                let pause = self.first.saturating_mul(doubled).min(self.longest);
                held.alone += 1;
                held.not_before = Some(now + pause);
            } else {
                held.together += 1;
            }
            if is_certain || held.together >= PATIENCE || held.trials > 0 {
                held.owed = 2_u32.saturating_pow(held.trials).min(MOST_OWED);
                held.trials += 1;
            }
        }
    }

    /// A call of this key has succeeded apart.
    pub(super) fn succeeded_apart(&mut self, key: &FailureKey) {
        if let Some(held) = self.held.get(key) {
            held.owed = held.owed.saturating_sub(1);
        }
    }
}

impl Suspicion {
    /// Whether it has behaved for long enough.
    fn is_over(&self, now: Instant) -> bool {
        let since = self.not_before.max(self.last);
        since.is_some_and(|since| now >= since + STABLE)
    }
}

impl Occupants {
    /// A call begins.
    pub(super) fn enter(&mut self, key: FailureKey) {
        self.running.push(key);
    }

    /// A call has ended.
    pub(super) fn leave(&mut self, key: &FailureKey) {
        if let Some(at) = self.running.iter().position(|running| running == key) {
            self.running.swap_remove(at);
        }
        let now = Instant::now();
        self.recent
            .retain(|(other, at)| other != key && now < *at + AFTERMATH);
        if self.recent.len() >= RECENT {
            self.recent.pop_front();
        }
        self.recent.push_back((*key, now));
    }

    fn suspects(&self) -> Vec<FailureKey> {
        let now = Instant::now();
        let recent = self.recent.iter();
        let recent = recent.filter(|(_, at)| now < *at + AFTERMATH);
        let mut all = Vec::new();
        for key in self.running.iter().chain(recent.map(|(key, _)| key)) {
            if !all.contains(key) {
                all.push(*key);
            }
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use shoal_ports::{Caller, FailureKey, ForwardedHeaders, Principal, SessionId};
    use shoal_protocol::{Method, RawJson, Revision};
    use tokio::time::advance;

    use super::{Admission, Crashes, Occupants, PATIENCE};
    use crate::upstream::STABLE;

    const FIRST: Duration = Duration::from_millis(100);
    const LONGEST: Duration = Duration::from_secs(30);
    const SUSPECTED: Admission = Admission::Apart { certain: false };

    fn key(principal: Principal, session: Option<&str>) -> FailureKey {
        let caller = Caller {
            principal,
            session: session.map(SessionId::new),
            revision: Revision::LATEST,
            client_info: None,
            capabilities: RawJson::from_static("{}"),
            headers: ForwardedHeaders::default(),
            grant: None,
        };
        FailureKey::of(&caller, &Method::ToolsCall, Some("t"))
    }

    fn named(name: &str) -> FailureKey {
        key(Principal::new(name), None)
    }

    fn crashes() -> Crashes {
        Crashes::new(FIRST, LONGEST)
    }

    fn running(keys: &[FailureKey]) -> Occupants {
        let mut occupants = Occupants::default();
        keys.iter().for_each(|key| occupants.enter(*key));
        occupants
    }

    #[tokio::test(start_paused = true)]
    async fn whoever_was_alone_waits_longer_each_time_and_begins_anew_after_a_calm() {
        let (mut crashes, mallory) = (crashes(), named("mallory"));
        for (ended, pause) in [(1, 100), (2, 200), (3, 400)] {
            crashes.ended(&running(&[mallory, mallory]));
            let pause = Duration::from_millis(pause);
            assert_eq!(crashes.admit(&mallory), Admission::Later(pause, ended));
            assert_eq!(crashes.admit(&named("alice")), Admission::Shared);
            advance(pause).await;
            let certain = true;
            assert_eq!(crashes.admit(&mallory), Admission::Apart { certain });
        }
        for _ in 0..20 {
            crashes.ended(&running(&[mallory]));
        }
        assert_eq!(crashes.admit(&mallory), Admission::Later(LONGEST, 23));
        advance(LONGEST + STABLE).await;
        assert_eq!(crashes.admit(&mallory), Admission::Shared);
        crashes.ended(&running(&[mallory]));
        assert_eq!(crashes.admit(&mallory), Admission::Later(FIRST, 1));
    }

    #[tokio::test(start_paused = true)]
    async fn suspects_are_never_refused_and_show_themselves_apart() {
        let (mut crashes, mallory, alice) = (crashes(), named("mallory"), named("alice"));
        for _ in 0..PATIENCE {
            assert_eq!(crashes.admit(&alice), Admission::Shared);
            crashes.ended(&running(&[mallory, alice]));
        }
        assert_eq!(crashes.admit(&alice), SUSPECTED);
        crashes.succeeded_apart(&alice);
        assert_eq!(crashes.admit(&alice), Admission::Shared);
        assert_eq!(crashes.admit(&mallory), SUSPECTED);
        // A caller that succeeds in between has to succeed more often each time.
        for owed in [2, 4, 8] {
            crashes.succeeded_apart(&mallory);
            while crashes.admit(&mallory) == SUSPECTED {
                crashes.succeeded_apart(&mallory);
            }
            crashes.ended(&running(&[mallory, named("bob")]));
            for _ in 1..owed {
                crashes.succeeded_apart(&mallory);
            }
            assert_eq!(crashes.admit(&mallory), SUSPECTED);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_process_may_end_because_of_a_call_that_is_over() {
        let (mut crashes, mallory, alice) = (crashes(), named("mallory"), named("alice"));
        let mut occupants = running(&[alice, mallory]);
        occupants.leave(&alice);
        advance(Duration::from_millis(900)).await;
        occupants.leave(&mallory);
        advance(Duration::from_millis(200)).await;
        crashes.ended(&occupants);
        assert!(matches!(crashes.admit(&mallory), Admission::Later(..)));
        assert_eq!(crashes.admit(&alice), Admission::Shared);
        // Nobody's fault.
        crashes.ended(&Occupants::default());
    }

    #[tokio::test(start_paused = true)]
    async fn without_authentication_a_session_is_refused_for_itself_and_the_others_for_nobody() {
        let mut crashes = crashes();
        let anonymous = |session| key(Principal::anonymous(), session);
        for session in [Some("one"), None] {
            crashes.ended(&running(&[anonymous(session)]));
        }
        assert!(matches!(
            crashes.admit(&anonymous(Some("one"))),
            Admission::Later(..)
        ));
        assert_eq!(
            crashes.admit(&anonymous(Some("another"))),
            Admission::Shared
        );
        assert_eq!(crashes.admit(&anonymous(None)), SUSPECTED);
    }
}
