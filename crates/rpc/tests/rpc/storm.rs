use std::time::Duration;

use shoal_ports::{Binding, CallEventKind};
use shoal_protocol::{Outcome, RawJson};
use shoal_rpc::LinkConfig;

use crate::probe::{Following, journaled};
use crate::scripted_worker::ScriptedWorker;
use crate::setting::{Pair, config, until, within};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_is_lost_or_repeated_however_often_the_link_breaks() {
    within(async {
        let pair = Pair::new(ScriptedWorker::running("w")).await;
        let call = journaled();
        let id = call.id;
        let mut following = Following::start(&pair.remote, call).await;
        let record = pair.worker.call(id).await;
        let script = async {
            for number in 0..2000 {
                record.progress(number);
                if number % 200 == 100 {
                    tokio::time::sleep(Duration::from_millis(1)).await;
                    pair.proxy.cut();
                }
                if number % 10 == 0 {
                    tokio::task::yield_now().await;
                }
            }
            record.result(1);
        };
        let read = async {
            let mut number = 0;
            while let CallEventKind::Notification { params, .. } =
                following.next().await.unwrap().kind
            {
                assert_eq!(params.unwrap().as_str(), number.to_string());
                number += 1;
            }
        };
        tokio::join!(read, script);
        assert_eq!(following.seen, 2001);
        assert_eq!(pair.worker.starts(id), 1);
        assert!(pair.proxy.connections() > 1);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_storm_of_breaks_leaves_every_call_whole() {
    within(async {
        let tight = LinkConfig {
            credit: 8 * 1024,
            ..config()
        };
        let worker = ScriptedWorker::running("w");
        let pair = std::sync::Arc::new(Pair::configured(worker, tight.clone(), tight).await);
        let calls = (0..20).map(|seed| {
            let pair = std::sync::Arc::clone(&pair);
            tokio::spawn(async move { talk(&pair, seed).await })
        });
        let calls: Vec<_> = calls.collect();
        let storm = tokio::spawn({
            let proxy = pair.proxy.clone();
            async move {
                for wait in [
                    3, 1, 7, 2, 11, 5, 13, 1, 1, 4, 17, 2, 6, 3, 9, 8, 1, 12, 5, 2,
                ] {
                    tokio::time::sleep(Duration::from_millis(wait)).await;
                    proxy.cut();
                }
            }
        });
        for call in calls {
            call.await.unwrap();
        }
        storm.await.unwrap();
        assert!(pair.proxy.connections() > 3);
    })
    .await;
}

async fn talk(pair: &Pair, seed: usize) {
    let mut call = journaled();
    call.binding = Some(Binding {
        worker: pair.worker.id.clone(),
        ledger: None,
    });
    let id = call.id;
    let script = async {
        let record = pair.worker.call(id).await;
        for round in 0..30 {
            record.notify(crate::probe::long((seed * 37 + round * 411) % 3000));
            if round % 10 == 5 {
                record.ask(round as u64, RawJson::of(&round));
                until(|| record.answers() > round / 10).await;
            }
            tokio::time::sleep(Duration::from_millis((seed as u64 + round as u64) % 3)).await;
        }
        record.finish(shoal_ports::CallOutcome::Result(crate::probe::long(
            100_000,
        )));
    };
    let read = async {
        let mut following = Following::start(&pair.remote, call).await;
        loop {
            match following.next().await.unwrap().kind {
                CallEventKind::Ask { ask, .. } => {
                    following.answer(ask, Outcome::Result(RawJson::of(&ask.0)));
                }
                CallEventKind::Finished(_) => break,
                _ => {}
            }
        }
        assert_eq!(following.seen, 34, "call {seed}");
        assert_eq!(pair.worker.call(id).await.answers(), 3, "call {seed}");
    };
    tokio::join!(script, read);
}
