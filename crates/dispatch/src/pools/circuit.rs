use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use rand::Rng as _;
use serde::Serialize;
use shoal_ports::{CallFailure, CallOutcome, FailureKey, FailureTable};
use tokio::time::Instant;

use crate::config::Config;

/// How long failures are remembered, as a multiple of the longest open time.
const REMEMBERED: u32 = 2;

/// Keeps calls away from a worker after consecutive failures: broken connections, unknown outcomes
/// and unexecuted calls, but not a tool's own error or a full queue.
///
/// A caller's arguments may crash a server, so failures count only against the same caller and
/// tool.
///
/// Failures are consecutive if each call began after the previous failure, so a crash counts once
/// however many calls it ends.
pub(crate) struct Circuit {
    limit: u32,
    first: Duration,
    longest: Duration,
    troubled: AtomicBool,
    counted: AtomicU64,
    held: Mutex<FailureTable<Failures>>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct CircuitMark(u64);

#[derive(Clone, Copy, Debug, Default)]
struct Failures {
    in_a_row: u32,
    counted: u64,
    openings: u32,
    open_until: Option<Instant>,
    trial: bool,
}

/// The state of a circuit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum CircuitState {
    /// Admits every call.
    Closed,
    /// Admits one call as a trial.
    HalfOpen,
    /// Refuses calls for a while.
    Open,
}

impl Circuit {
    pub(crate) fn new(config: &Config) -> Self {
        let longest = config
            .calls
            .circuit_open_max
            .get()
            .max(config.calls.circuit_open.get());
        Self {
            limit: config.calls.circuit_failures,
            first: config.calls.circuit_open.get(),
            longest: config.calls.circuit_open_max.get(),
            troubled: AtomicBool::new(false),
            counted: AtomicU64::new(0),
            held: Mutex::new(FailureTable::keeping(longest * REMEMBERED)),
        }
    }

    pub(crate) fn mark(&self) -> CircuitMark {
        CircuitMark(self.counted.load(Ordering::Acquire))
    }

    pub(crate) fn state(&self) -> CircuitState {
        if self.is_well() {
            return CircuitState::Closed;
        }
        let held = self.held.lock();
        let states = held.values().map(Failures::state);
        states.max().unwrap_or(CircuitState::Closed)
    }

    pub(crate) fn state_of(&self, key: &FailureKey) -> CircuitState {
        let mut held = self.held.lock();
        held.get(key).map_or(CircuitState::Closed, |f| f.state())
    }

    pub(crate) fn is_well(&self) -> bool {
        !self.troubled.load(Ordering::Acquire)
    }

    /// Whether the call may go to the worker. A trial without a result expires after the open time, and the next call
    /// is then the trial.
    pub(crate) fn enter(&self, key: &FailureKey) -> bool {
        let now = Instant::now();
        let mut held = self.held.lock();
        let Some(failures) = held.get(key) else {
            return true;
        };
        match failures.open_until {
            None => true,
            Some(until) if until > now => false,
            Some(_) => {
                failures.trial = true;
                failures.open_until = Some(now + self.time(failures.openings));
                true
            }
        }
    }

    /// Returns the new state for the caller and tool if it changed.
    pub(crate) fn ended(
        &self,
        key: impl FnOnce() -> FailureKey,
        outcome: &CallOutcome,
        begun: CircuitMark,
    ) -> Option<CircuitState> {
        match outcome {
            CallOutcome::Result(_) | CallOutcome::Error(_) | CallOutcome::Refused(_) => {
                self.succeeded(key)
            }
            CallOutcome::Failed(failure) => self.refused(key, failure, begun),
        }
    }

    pub(crate) fn refused(
        &self,
        key: impl FnOnce() -> FailureKey,
        failure: &CallFailure,
        begun: CircuitMark,
    ) -> Option<CircuitState> {
        match failure {
            CallFailure::NotExecuted { .. }
            | CallFailure::WorkerAway { .. }
            | CallFailure::OutcomeUnknown { .. } => self.failed(key(), begun),
            // Neither failures nor successes: the answer does not prove that the worker can run calls.
            CallFailure::Overloaded { .. }
            | CallFailure::NotReady { .. }
            | CallFailure::DeadlineExceeded { .. }
            | CallFailure::Cancelled
            | CallFailure::Superseded { .. } => None,
        }
    }

    fn succeeded(&self, key: impl FnOnce() -> FailureKey) -> Option<CircuitState> {
        if self.is_well() {
            return None;
        }
        let mut held = self.held.lock();
        let former = held.forget(&key());
        if held.is_empty() {
            self.troubled.store(false, Ordering::Release);
        }
        former?.open_until.map(|_| CircuitState::Closed)
    }

    pub(crate) fn failed(&self, key: FailureKey, begun: CircuitMark) -> Option<CircuitState> {
        if self.limit == 0 {
            return None;
        }
        let mut held = self.held.lock();
        // The call ran during the key's last failure, so one crash may have caused both.
        if held.get(&key).is_some_and(|last| begun.0 < last.counted) {
            return None;
        }
        let failures = held.note(key);
        failures.counted = self.counted.fetch_add(1, Ordering::Release) + 1;
        failures.in_a_row += 1;
        self.troubled.store(true, Ordering::Release);
        let opens = match failures.open_until {
            None => failures.in_a_row >= self.limit,
            // Only a failed trial opens the circuit again, because calls bound to the worker pass
            // an open one.
            Some(_) => std::mem::take(&mut failures.trial),
        };
        if opens {
            failures.openings += 1;
            failures.open_until = Some(Instant::now() + self.time(failures.openings));
        }
        opens.then_some(CircuitState::Open)
    }

    /// A random time between half and all of the limit, so that nodes do not retry in step.
    fn time(&self, openings: u32) -> Duration {
        let doubled = 2_u32.saturating_pow(openings.saturating_sub(1));
        let time = self.first.saturating_mul(doubled).min(self.longest);
        time.mul_f64(rand::rng().random_range(0.5..=1.0))
    }
}

impl Failures {
    fn state(&self) -> CircuitState {
        match self.open_until {
            None => CircuitState::Closed,
            Some(until) if until > Instant::now() => CircuitState::Open,
            Some(_) => CircuitState::HalfOpen,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use shoal_ports::{CallFailure, CallOutcome, Caller, FailureKey, ForwardedHeaders, Principal};
    use shoal_protocol::{Method, RawJson, Revision, RpcError};
    use tokio::time::{Instant, advance};

    use super::{Circuit, CircuitMark, CircuitState};
    use crate::config::Config;

    fn circuit() -> Circuit {
        Circuit::new(&Config::default())
    }

    fn of(principal: &str, tool: &str) -> FailureKey {
        let caller = Caller {
            principal: Principal::new(principal),
            session: None,
            revision: Revision::LATEST,
            client_info: None,
            capabilities: RawJson::from_static("{}"),
            headers: ForwardedHeaders::default(),
            grant: None,
        };
        FailureKey::of(&caller, &Method::ToolsCall, Some(tool))
    }

    fn key() -> FailureKey {
        of("somebody", "t")
    }

    fn fail(circuit: &Circuit, times: usize) {
        for _ in 0..times {
            fail_begun(circuit, circuit.mark());
        }
    }

    fn fail_begun(circuit: &Circuit, begun: CircuitMark) {
        let failure = CallFailure::outcome_unknown("?");
        circuit.ended(key, &CallOutcome::Failed(failure), begun);
    }

    #[test]
    fn failures_of_one_caller_and_tool_are_held_against_nobody_else() {
        let circuit = circuit();
        fail(&circuit, 100);
        assert_eq!(circuit.state(), CircuitState::Open);
        assert!(!circuit.enter(&key()));
        for other in [of("another", "t"), of("somebody", "u")] {
            assert!(circuit.enter(&other));
            assert_eq!(circuit.state_of(&other), CircuitState::Closed);
            let result = CallOutcome::Result(RawJson::from_static("{}"));
            circuit.ended(|| other, &result, circuit.mark());
        }
        assert_eq!(circuit.state_of(&key()), CircuitState::Open);
    }

    #[test]
    fn others_failures_in_between_do_not_hide_a_callers_own() {
        let circuit = circuit();
        for _ in 0..5 {
            let begun = circuit.mark();
            circuit.failed(of("another", "t"), circuit.mark());
            fail_begun(&circuit, begun);
        }
        assert_eq!(circuit.state_of(&key()), CircuitState::Open);
    }

    #[test]
    fn calls_that_fail_together_are_one_failure() {
        let circuit = circuit();
        for _ in 0..4 {
            let begun = circuit.mark();
            for _ in 0..100 {
                fail_begun(&circuit, begun);
            }
        }
        assert_eq!(circuit.state(), CircuitState::Closed);
        fail(&circuit, 1);
        assert_eq!(circuit.state(), CircuitState::Open);
    }

    #[test]
    fn it_opens_after_failures_in_a_row_only() {
        let circuit = circuit();
        let result = CallOutcome::Result(RawJson::from_static("{}"));
        for _ in 0..3 {
            fail(&circuit, 4);
            circuit.ended(key, &result, circuit.mark());
        }
        fail(&circuit, 4);
        let error = CallOutcome::Error(RpcError::internal("the tool's own"));
        circuit.ended(key, &error, circuit.mark());
        fail(&circuit, 4);
        let full = CallFailure::overloaded("full", Duration::from_secs(1));
        circuit.refused(key, &full, circuit.mark());
        assert!(circuit.enter(&key()) && circuit.state() == CircuitState::Closed);
        fail(&circuit, 1);
        assert!(!circuit.enter(&key()) && circuit.state() == CircuitState::Open);
    }

    #[tokio::test(start_paused = true)]
    async fn one_trial_at_a_time_and_longer_after_each() {
        let circuit = circuit();
        fail(&circuit, 9);
        let mut longest = Duration::from_secs(1);
        for _ in 0..7 {
            let until = circuit.held.lock().get(&key()).unwrap().open_until.unwrap();
            let open = until.saturating_duration_since(Instant::now());
            assert!(open <= longest && open >= longest / 2, "{open:?}");
            advance(open).await;
            assert_eq!(circuit.state(), CircuitState::HalfOpen);
            assert!(circuit.enter(&key()) && !circuit.enter(&key()));
            fail(&circuit, 1);
            longest = (longest * 2).min(Duration::from_secs(30));
        }
        advance(longest).await;
        assert!(circuit.enter(&key()));
        let result = CallOutcome::Result(RawJson::from_static("{}"));
        circuit.ended(key, &result, circuit.mark());
        assert_eq!(circuit.state(), CircuitState::Closed);
    }

    #[tokio::test(start_paused = true)]
    async fn a_trial_of_which_nothing_is_heard_is_followed_by_another() {
        let circuit = circuit();
        fail(&circuit, 5);
        for _ in 0..2 {
            advance(Duration::from_secs(1)).await;
            assert!(circuit.enter(&key()) && !circuit.enter(&key()));
        }
    }
}
