//! Each answer reaches the tool, however often the path breaks.

use std::collections::BTreeMap;
use std::sync::Arc;

use futures::FutureExt as _;
use parking_lot::Mutex;
use proptest::prelude::*;
use shoal_ports::{Answered, AskId, CallControl, answered};
use shoal_protocol::{Outcome, RawJson};

use super::AnswerRelay;

#[derive(Default)]
struct Tool {
    answered: Mutex<BTreeMap<AskId, usize>>,
}

#[derive(Clone, Copy, Debug)]
enum Fate {
    Arrive,
    Unacknowledged,
    Silent,
}

struct Link {
    tool: Arc<Tool>,
    fate: Fate,
}

impl Link {
    fn of(tool: &Arc<Tool>, fate: Fate) -> Arc<Self> {
        Arc::new(Self {
            tool: Arc::clone(tool),
            fate,
        })
    }
}

impl CallControl for Link {
    fn answer(&self, ask: AskId, _: Outcome) -> Answered {
        let arrives = matches!(self.fate, Fate::Arrive | Fate::Unacknowledged);
        // Like a worker, confirms a repeated answer and does not count it.
        if arrives {
            self.tool.answered.lock().insert(ask, 1);
        }
        match self.fate {
            Fate::Arrive => answered(arrives),
            Fate::Unacknowledged | Fate::Silent => Box::pin(std::future::pending()),
        }
    }

    fn cancel(&self, _: &str) {}
}

fn answer() -> Outcome {
    Outcome::Result(RawJson::from_static("{}"))
}

fn fates() -> impl Strategy<Value = Fate> {
    prop_oneof![
        Just(Fate::Arrive),
        Just(Fate::Unacknowledged),
        Just(Fate::Silent),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn no_answer_is_lost(
        links in prop::collection::vec((fates(), 0_u64..5), 1..6),
        dropped in any::<bool>(),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .start_paused(true)
            .build()
            .unwrap();
        runtime.block_on(async {
            let tool = Arc::new(Tool::default());
            let (first, ..) = links[0];
            let relay = AnswerRelay::new(Link::of(&tool, first));
            let mut given = 0;
            let mut waiting = Vec::new();
            for (at, (_, held)) in links.iter().enumerate() {
                for _ in 0..*held {
                    given += 1;
                    waiting.push(tokio::spawn(relay.answer(AskId(given), answer())));
                }
                if dropped {
                    waiting.drain(..).for_each(|it: tokio::task::JoinHandle<bool>| it.abort());
                }
                tokio::task::yield_now().await;
                let fate = links.get(at + 1).map_or(Fate::Arrive, |(fate, ..)| *fate);
                relay.follow(Link::of(&tool, fate), true);
            }
            for arrival in waiting {
                let arrived = tokio::time::timeout(std::time::Duration::from_secs(5), arrival).await;
                prop_assert!(arrived.is_ok(), "nobody waits for ever");
            }
            prop_assert_eq!(tool.answered.lock().len() as u64, given);
            Ok(())
        })?;
    }
}

#[tokio::test(start_paused = true)]
async fn an_answer_of_an_unknown_fate_is_settled_when_the_way_is_mended_or_given_up() {
    let tool = Arc::new(Tool::default());
    let relay = AnswerRelay::new(Link::of(&tool, Fate::Silent));
    let mut lost = relay.answer(AskId(1), answer());
    let mut given_meanwhile = relay.answer(AskId(2), answer());
    assert!(
        (&mut lost).now_or_never().is_none() && (&mut given_meanwhile).now_or_never().is_none()
    );
    relay.follow(Link::of(&tool, Fate::Arrive), true);
    assert!(lost.await && given_meanwhile.await);
    relay.follow(Link::of(&tool, Fate::Silent), true);
    let never = relay.answer(AskId(3), answer());
    relay.closed();
    assert!(!never.await);
    relay.follow(Link::of(&tool, Fate::Arrive), true);
    assert_eq!(tool.answered.lock().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn another_run_of_the_call_gets_no_answer_of_the_first() {
    let tool = Arc::new(Tool::default());
    let relay = AnswerRelay::new(Link::of(&tool, Fate::Silent));
    let first = relay.answer(AskId(1), answer());
    relay.follow(Link::of(&tool, Fate::Arrive), false);
    assert!(!first.await);
    assert!(tool.answered.lock().is_empty());
}
