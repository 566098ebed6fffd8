//! Isolates callers whose calls crash the server's processes.
//!
//! A crash ends all calls in the process without naming its cause. If one caller made them all, its
//! similar calls wait, twice as long each time. Otherwise all callers are suspects, and calls of
//! repeated suspects run apart until they succeed. So no caller is refused for another's calls, and
//! a guilty caller soon crashes only its own processes.

use std::collections::VecDeque;
use std::time::Duration;

use shoal_ports::{FailureKey, FailureTable};
use tokio::time::Instant;

use crate::upstream::STABLE;

/// How long after a call's end a crash may be the call's fault.
const AFTERMATH: Duration = Duration::from_secs(1);
const RECENT: usize = 64;
/// After this many crashes beside other callers, a caller's calls run apart. A repeatable call can be retried once
/// before.
const PATIENCE: u32 = 2;
const MOST_OWED: u32 = 1024;

pub(super) struct Crashes {
    held: FailureTable<CrashSuspicion>,
    first: Duration,
    longest: Duration,
}

#[derive(Debug, Default)]
struct CrashSuspicion {
    together: u32,
    alone: u32,
    trials: u32,
    owed: u32,
    last: Option<Instant>,
    not_before: Option<Instant>,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum ProcessAdmission {
    Shared,
    /// Apart from other callers. Without room, the call may share unless it is `certain` to be the cause.
    Apart {
        certain: bool,
    },
    Later(Duration, u32),
}

#[derive(Debug, Default)]
pub(super) struct Occupants {
    running: Vec<FailureKey>,
    recent: VecDeque<(FailureKey, Instant)>,
}

impl Crashes {
    pub(super) fn new(first: Duration, longest: Duration) -> Self {
        let longest = longest.max(first);
        Self {
            held: FailureTable::keeping(longest * 2 + STABLE),
            first,
            longest,
        }
    }

    pub(super) fn admit(&mut self, key: &FailureKey) -> ProcessAdmission {
        let now = Instant::now();
        let Some(held) = self.held.get(key).filter(|held| !held.is_over(now)) else {
            return ProcessAdmission::Shared;
        };
        let pause = held.not_before.map(|at| at.saturating_duration_since(now));
        match pause.filter(|pause| !pause.is_zero() && !key.is_anybodys()) {
            Some(pause) => ProcessAdmission::Later(pause, held.alone),
            None if held.owed > 0 => ProcessAdmission::Apart {
                certain: held.alone > 0 && !key.is_anybodys(),
            },
            None => ProcessAdmission::Shared,
        }
    }

    pub(super) fn ended(&mut self, occupants: &Occupants) {
        let suspects = occupants.suspects();
        let is_certain = suspects
            .windows(2)
            .all(|two| two[0].is_of_caller_of(&two[1]));
        for key in suspects {
            let now = Instant::now();
            let held = self.held.note(key);
            if held.is_over(now) {
                *held = CrashSuspicion::default();
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

    pub(super) fn succeeded_apart(&mut self, key: &FailureKey) {
        if let Some(held) = self.held.get(key) {
            held.owed = held.owed.saturating_sub(1);
        }
    }
}

impl CrashSuspicion {
    fn is_over(&self, now: Instant) -> bool {
        let since = self.not_before.max(self.last);
        since.is_some_and(|since| now >= since + STABLE)
    }
}

impl Occupants {
    pub(super) fn enter(&mut self, key: FailureKey) {
        self.running.push(key);
    }

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

    use super::{Crashes, Occupants, PATIENCE, ProcessAdmission};
    use crate::upstream::STABLE;

    const FIRST: Duration = Duration::from_millis(100);
    const LONGEST: Duration = Duration::from_secs(30);
    const SUSPECTED: ProcessAdmission = ProcessAdmission::Apart { certain: false };

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
            assert_eq!(
                crashes.admit(&mallory),
                ProcessAdmission::Later(pause, ended)
            );
            assert_eq!(crashes.admit(&named("alice")), ProcessAdmission::Shared);
            advance(pause).await;
            let certain = true;
            assert_eq!(crashes.admit(&mallory), ProcessAdmission::Apart { certain });
        }
        for _ in 0..20 {
            crashes.ended(&running(&[mallory]));
        }
        assert_eq!(
            crashes.admit(&mallory),
            ProcessAdmission::Later(LONGEST, 23)
        );
        advance(LONGEST + STABLE).await;
        assert_eq!(crashes.admit(&mallory), ProcessAdmission::Shared);
        crashes.ended(&running(&[mallory]));
        assert_eq!(crashes.admit(&mallory), ProcessAdmission::Later(FIRST, 1));
    }

    #[tokio::test(start_paused = true)]
    async fn suspects_are_never_refused_and_show_themselves_apart() {
        let (mut crashes, mallory, alice) = (crashes(), named("mallory"), named("alice"));
        for _ in 0..PATIENCE {
            assert_eq!(crashes.admit(&alice), ProcessAdmission::Shared);
            crashes.ended(&running(&[mallory, alice]));
        }
        assert_eq!(crashes.admit(&alice), SUSPECTED);
        crashes.succeeded_apart(&alice);
        assert_eq!(crashes.admit(&alice), ProcessAdmission::Shared);
        assert_eq!(crashes.admit(&mallory), SUSPECTED);
        // A caller that succeeds in between needs more successes each time.
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
        assert!(matches!(
            crashes.admit(&mallory),
            ProcessAdmission::Later(..)
        ));
        assert_eq!(crashes.admit(&alice), ProcessAdmission::Shared);
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
            ProcessAdmission::Later(..)
        ));
        assert_eq!(
            crashes.admit(&anonymous(Some("another"))),
            ProcessAdmission::Shared
        );
        assert_eq!(crashes.admit(&anonymous(None)), SUSPECTED);
    }
}
