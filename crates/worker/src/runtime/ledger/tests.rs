//! No history of starts, ends and evictions runs a journaled call twice.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use proptest::prelude::*;
use shoal_ports::{Call, CallId, CallOutcome, WorkerId};
use shoal_protocol::RawJson;
use tokio::time::Instant;

use super::super::client;
use super::super::record::CallRecord;
use super::super::tests::script::{call, done, repeatable};
use super::{Entered, Ledger};
use crate::PoolConfig;

/// Calls in a history.
const CALLS: usize = 8;

#[derive(Clone, Debug)]
enum Step {
    /// A start reaches the worker; the pool may refuse it.
    Start {
        call: usize,
        admitted: bool,
    },
    /// An actor takes the call from the queue.
    Begin(usize),
    End(usize),
    Cancel(usize),
    /// The sweep, after so many seconds.
    Sweep(u64),
}

fn step() -> impl Strategy<Value = Step> {
    let call = 0..CALLS;
    prop_oneof![
        4 => (call.clone(), prop::bool::weighted(0.9))
            .prop_map(|(call, admitted)| Step::Start { call, admitted }),
        4 => call.clone().prop_map(Step::Begin),
        3 => call.clone().prop_map(Step::End),
        1 => call.prop_map(Step::Cancel),
        1 => (0_u64..200).prop_map(Step::Sweep),
    ]
}

/// One worker's ledger, and what its pool does.
struct History {
    ledger: Arc<Ledger>,
    calls: Vec<Call>,
    /// What waits in the queue or runs, for each call.
    queued: Vec<Vec<Arc<CallRecord>>>,
    runs: Vec<usize>,
    now: Instant,
}

impl History {
    fn new(retained: usize, remembered: usize, restarted: bool) -> Self {
        let config = PoolConfig {
            result_retention: Duration::from_secs(60),
            retained_results: retained,
            remembered_calls: remembered,
            call_memory: Duration::from_secs(600),
            ..PoolConfig::new("p")
        };
        let calls: Vec<Call> = (0..CALLS).map(|_| call()).collect();
        let since = match restarted {
            // Later than every call: an earlier process may have run them.
            true => SystemTime::now() + Duration::from_secs(1),
            false => SystemTime::UNIX_EPOCH,
        };
        Self {
            ledger: Ledger::new(&config, since),
            calls,
            queued: vec![Vec::new(); CALLS],
            runs: vec![0; CALLS],
            now: Instant::now(),
        }
    }

    fn step(&mut self, step: &Step) {
        match *step {
            Step::Start { call, admitted } => {
                let refused = || shoal_ports::CallFailure::NotExecuted {
                    reason: "no".to_owned(),
                };
                let admit = || admitted.then_some(()).ok_or_else(refused);
                if let Ok(Entered::New(record, ())) = self.ledger.enter(&self.calls[call], admit) {
                    self.queued[call].push(record);
                }
            }
            Step::Begin(call) => {
                if let Some(record) = self.queued[call].pop()
                    && record.begin()
                {
                    self.runs[call] += 1;
                }
            }
            Step::End(call) => self.find(call, |record| {
                record.finish(done());
            }),
            Step::Cancel(call) => self.find(call, |record| {
                client::attach(record, 0, &WorkerId::new("w"))
                    .control
                    .cancel("enough");
            }),
            Step::Sweep(seconds) => {
                self.now += Duration::from_secs(seconds);
                self.ledger.forget_expired(self.now);
            }
        }
    }

    fn find(&self, call: usize, act: impl FnOnce(Arc<CallRecord>)) {
        if let Some(record) = self.ledger.find(self.calls[call].id) {
            act(record);
        }
    }
}

proptest! {
    #[test]
    fn no_journaled_call_runs_twice(
        retained in 0_usize..4,
        remembered in 0_usize..4,
        restarted in prop::bool::weighted(0.1),
        steps in prop::collection::vec(step(), 1..200),
    ) {
        let mut history = History::new(retained, remembered, restarted);
        for step in &steps {
            history.step(step);
            prop_assert!(history.runs.iter().all(|runs| *runs <= usize::from(!restarted)), "{step:?}");
        }
    }
}

#[test]
fn a_repeatable_call_leaves_no_trace() {
    let config = PoolConfig {
        retained_results: 0,
        ..PoolConfig::new("p")
    };
    let ledger = Ledger::new(&config, SystemTime::UNIX_EPOCH);
    let call = repeatable();
    for _ in 0..2 {
        let entered = ledger.enter(&call, || Ok(()));
        let Ok(Entered::New(record, ())) = entered else {
            panic!("the call is new every time");
        };
        assert!(record.begin());
        record.finish(CallOutcome::Result(RawJson::from_static("{}")));
    }
    assert!(!ledger.may_have_run(call.id) && !ledger.may_have_run(CallId::generate()));
}
