//! A circuit for each worker: one that fails again and again is left alone for a while.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use rand::Rng as _;
use serde::Serialize;
use shoal_ports::{CallFailure, CallOutcome};
use tokio::time::Instant;

use crate::config::Config;

/// Counts a worker's failures in a row: a broken way, an outcome that is unknown, a call that it did not
/// execute. A tool's own error is no failure, and neither is a full queue.
///
/// Failures are in a row when each call has begun after the failure before. A server that crashes takes all calls with
/// it that run there: that is one failure, however many they are.
pub(crate) struct Circuit {
    limit: u32,
    first: Duration,
    longest: Duration,
    /// Whether `state` says anything; nearly always it does not.
    troubled: AtomicBool,
    /// How many failures have been counted.
    counted: AtomicU32,
    state: Mutex<CircuitInner>,
}

/// How many failures had been counted when a call began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct CircuitMark(u32);

#[derive(Clone, Copy, Default)]
struct CircuitInner {
    failures: u32,
    /// How often it has opened since it was closed.
    openings: u32,
    open_until: Option<Instant>,
    /// Whether a trial is on its way.
    trial: bool,
}

/// What a circuit lets through.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum CircuitState {
    /// Every call.
    Closed,
    /// None, for a while.
    Open,
    /// One, to see whether the worker is well again.
    HalfOpen,
}

impl Circuit {
    pub(crate) fn new(config: &Config) -> Self {
        Self {
            limit: config.circuit_failures,
            first: config.circuit_open,
            longest: config.circuit_open_max,
            troubled: AtomicBool::new(false),
            counted: AtomicU32::new(0),
            state: Mutex::default(),
        }
    }

    /// What a call must remember that begins now.
    pub(crate) fn mark(&self) -> CircuitMark {
        CircuitMark(self.counted.load(Ordering::Acquire))
    }

    /// What it lets through now.
    pub(crate) fn state(&self) -> CircuitState {
        if self.is_well() {
            return CircuitState::Closed;
        }
        match self.state.lock().open_until {
            None => CircuitState::Closed,
            Some(until) if until > Instant::now() => CircuitState::Open,
            Some(_) => CircuitState::HalfOpen,
        }
    }

    /// Whether nothing is held against the worker.
    pub(crate) fn is_well(&self) -> bool {
        !self.troubled.load(Ordering::Acquire)
    }

    /// Lets a call through, or does not. The trial of a half-open circuit counts for as long as the circuit
    /// was open: if nothing is heard of it, there is another one.
    pub(crate) fn enter(&self) -> bool {
        if self.is_well() {
            return true;
        }
        let now = Instant::now();
        let mut state = self.state.lock();
        match state.open_until {
            None => true,
            Some(until) if until > now => false,
            Some(_) => {
                state.trial = true;
                state.open_until = Some(now + self.time(state.openings));
                true
            }
        }
    }

    /// Takes note of how a call ended. What the circuit lets through now, if that has changed.
    pub(crate) fn ended(&self, outcome: &CallOutcome, begun: CircuitMark) -> Option<CircuitState> {
        match outcome {
            CallOutcome::Result(_) | CallOutcome::Error(_) | CallOutcome::Refused(_) => {
                self.succeeded()
            }
            CallOutcome::Failed(failure) => self.refused(failure, begun),
        }
    }

    /// Takes note of why a call was refused, or not finished. What the circuit lets through now, if that has
    /// changed.
    pub(crate) fn refused(
        &self,
        failure: &CallFailure,
        begun: CircuitMark,
    ) -> Option<CircuitState> {
        match failure {
            CallFailure::NotExecuted { .. }
            | CallFailure::WorkerAway { .. }
            | CallFailure::OutcomeUnknown { .. } => self.failed(begun),
            // The worker lives and has said so; that it runs calls is another matter.
            CallFailure::Overloaded { .. }
            | CallFailure::NotReady { .. }
            | CallFailure::DeadlineExceeded { .. }
            | CallFailure::Cancelled
            | CallFailure::Superseded { .. } => None,
        }
    }

    fn succeeded(&self) -> Option<CircuitState> {
        if self.is_well() {
            return None;
        }
        let mut state = self.state.lock();
        let former = std::mem::take(&mut *state);
        self.troubled.store(false, Ordering::Release);
        former.open_until.map(|_| CircuitState::Closed)
    }

    /// The worker failed a call. What the circuit lets through now, if that has changed.
    pub(crate) fn failed(&self, begun: CircuitMark) -> Option<CircuitState> {
        if self.limit == 0 {
            return None;
        }
        let mut state = self.state.lock();
        // It was under way when another one failed: it tells nothing new.
        if begun != self.mark() {
            return None;
        }
        self.counted.fetch_add(1, Ordering::Release);
        self.troubled.store(true, Ordering::Release);
        state.failures += 1;
        let opens = match state.open_until {
            None => state.failures >= self.limit,
            // Calls that are bound to the worker are not asked whether they may begin.
            Some(_) => std::mem::take(&mut state.trial),
        };
        if opens {
            state.openings += 1;
            state.open_until = Some(Instant::now() + self.time(state.openings));
        }
        opens.then_some(CircuitState::Open)
    }

    /// Between half and all of the time, so that the nodes of a cluster do not try in step.
    fn time(&self, openings: u32) -> Duration {
        let doubled = 2_u32.saturating_pow(openings.saturating_sub(1));
        let time = self.first.saturating_mul(doubled).min(self.longest);
        time.mul_f64(rand::rng().random_range(0.5..=1.0))
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use shoal_ports::{CallFailure, CallOutcome};
    use shoal_protocol::{RawJson, RpcError};
    use tokio::time::{Instant, advance};

    use super::{Circuit, CircuitMark, CircuitState};
    use crate::config::Config;

    fn circuit() -> Circuit {
        Circuit::new(&Config::default())
    }

    fn fail(circuit: &Circuit, times: usize) {
        for _ in 0..times {
            fail_begun(circuit, circuit.mark());
        }
    }

    fn fail_begun(circuit: &Circuit, begun: CircuitMark) {
        let failure = CallFailure::outcome_unknown("?");
        circuit.ended(&CallOutcome::Failed(failure), begun);
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
            circuit.ended(&result, circuit.mark());
        }
        fail(&circuit, 4);
        let error = CallOutcome::Error(RpcError::internal("the tool's own"));
        circuit.ended(&error, circuit.mark());
        fail(&circuit, 4);
        let full = CallFailure::overloaded("full", Duration::from_secs(1));
        circuit.refused(&full, circuit.mark());
        assert!(circuit.enter() && circuit.state() == CircuitState::Closed);
        fail(&circuit, 1);
        assert!(!circuit.enter() && circuit.state() == CircuitState::Open);
    }

    #[tokio::test(start_paused = true)]
    async fn one_trial_at_a_time_and_longer_after_each() {
        let circuit = circuit();
        fail(&circuit, 9);
        let mut longest = Duration::from_secs(1);
        for _ in 0..7 {
            let until = circuit.state.lock().open_until.unwrap();
            let open = until.saturating_duration_since(Instant::now());
            assert!(open <= longest && open >= longest / 2, "{open:?}");
            advance(open).await;
            assert_eq!(circuit.state(), CircuitState::HalfOpen);
            assert!(circuit.enter() && !circuit.enter());
            fail(&circuit, 1);
            longest = (longest * 2).min(Duration::from_secs(30));
        }
        advance(longest).await;
        assert!(circuit.enter());
        let result = CallOutcome::Result(RawJson::from_static("{}"));
        circuit.ended(&result, circuit.mark());
        assert_eq!(circuit.state(), CircuitState::Closed);
    }

    #[tokio::test(start_paused = true)]
    async fn a_trial_of_which_nothing_is_heard_is_followed_by_another() {
        let circuit = circuit();
        fail(&circuit, 5);
        for _ in 0..2 {
            advance(Duration::from_secs(1)).await;
            assert!(circuit.enter() && !circuit.enter());
        }
    }
}
