//! A journaled call runs at most once, in every history of starts, ends and evictions.

use std::sync::Arc;
use std::time::Duration;

use proptest::prelude::*;
use shoal_ports::{Call, CallFailure, CallOutcome, LedgerNumber, Period, WorkerId};
use shoal_protocol::RawJson;
use tokio::time::Instant;

use super::super::client;
use super::super::record::CallRecord;
use super::super::tests::script::{call, done, repeatable};
use super::{CallLedger, Entered};
use crate::PoolConfig;

const CALLS: usize = 8;

#[derive(Clone, Debug)]
enum Step {
    Start {
        call: usize,
        admitted: bool,
    },
    Begin(usize),
    End(usize),
    Cancel(usize),
    /// Forgets what has expired, after this many seconds.
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

struct History {
    ledger: Arc<CallLedger>,
    calls: Vec<Call>,
    number: Option<LedgerNumber>,
    /// Calls whose caller knows that they did not run.
    refused: Vec<bool>,
    queued: Vec<Vec<Arc<CallRecord>>>,
    runs: Vec<usize>,
    now: Instant,
}

impl History {
    fn new(retained: usize, remembered: usize, restarted: bool, numbered: bool) -> Self {
        let config = PoolConfig {
            result_retention: Period::seconds(60),
            retained_results: retained,
            remembered_calls: remembered,
            call_memory: Period::seconds(600),
            ..PoolConfig::new("p")
        };
        let calls: Vec<Call> = (0..CALLS).map(|_| call()).collect();
        let ledger = CallLedger::new(&config);
        let mut bound = ledger.number();
        if restarted {
            // An earlier process with this worker's name may have run these calls.
            bound.incarnation ^= 1;
        }
        Self {
            ledger,
            calls,
            number: numbered.then_some(bound),
            refused: vec![false; CALLS],
            queued: vec![Vec::new(); CALLS],
            runs: vec![0; CALLS],
            now: Instant::now(),
        }
    }

    fn step(&mut self, step: &Step) {
        match *step {
            Step::Start { call, admitted } => {
                let refused = || CallFailure::NotExecuted {
                    reason: "no".to_owned(),
                };
                let admit = || admitted.then_some(()).ok_or_else(refused);
                match self.ledger.enter(&self.calls[call], self.number, admit) {
                    Ok(Entered::New(record, ())) => self.queued[call].push(record),
                    Ok(Entered::Known(_)) => {}
                    Err(CallFailure::NotExecuted { .. }) => self.refused[call] = true,
                    Err(_) => {}
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
                {
                    let reader = record.attach(0);
                    client::follow(record, reader, reader, &WorkerId::new("w"))
                }
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
        numbered in prop::bool::weighted(0.8),
        steps in prop::collection::vec(step(), 1..200),
    ) {
        let restarted = restarted && numbered;
        let mut history = History::new(retained, remembered, restarted, numbered);
        for step in &steps {
            history.step(step);
            prop_assert!(history.runs.iter().all(|runs| *runs <= usize::from(!restarted)), "{step:?}");
            let mut ends = history.refused.iter().zip(&history.runs);
            // After a refusal, the caller may have run the call elsewhere.
            prop_assert!(!numbered || ends.all(|(refused, runs)| !refused || *runs == 0), "{step:?}");
        }
    }
}

#[test]
fn a_repeatable_call_leaves_no_trace() {
    let config = PoolConfig {
        retained_results: 0,
        ..PoolConfig::new("p")
    };
    let ledger = CallLedger::new(&config);
    let call = repeatable();
    for _ in 0..2 {
        let entered = ledger.enter(&call, None, || Ok(()));
        let Ok(Entered::New(record, ())) = entered else {
            panic!("the call is new every time");
        };
        assert!(record.begin());
        record.finish(CallOutcome::Result(RawJson::from_static("{}")));
    }
    let (before, present) = (
        LedgerNumber {
            number: 0,
            ..ledger.number()
        },
        ledger.number(),
    );
    assert_eq!(before, present, "nothing was remembered");
}

#[tokio::test]
async fn a_result_that_is_acknowledged_is_not_kept() {
    let ledger = CallLedger::new(&PoolConfig::new("p"));
    for _ in 0..1000 {
        let (bound, number) = (call(), Some(ledger.number()));
        let Ok(Entered::New(record, ())) = ledger.enter(&bound, number, || Ok(())) else {
            panic!("it is new");
        };
        assert!(record.begin());
        ledger.acknowledge(bound.id);
        assert!(ledger.find(bound.id).is_some(), "it runs");
        record.finish(done());
        ledger.acknowledge(bound.id);
        assert!(ledger.find(bound.id).is_none());
        let again = ledger.enter(&bound, number, || Ok(())).err();
        assert!(matches!(again, Some(CallFailure::OutcomeUnknown { .. })));
        ledger.acknowledge(bound.id);
    }
    let retired = ledger.retired.lock();
    assert_eq!((retired.calls.len(), retired.bytes), (0, 0));
}
