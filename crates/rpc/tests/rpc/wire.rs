//! The frames that a worker sends.

use bytes::Bytes;
use shoal_ports::AskId;
use shoal_protocol::RawJson;
use shoal_rpc::proto::types::v1::outcome::Outcome as WireOutcome;
use shoal_rpc::proto::types::v1::{Credit, Limits, Outcome};
use shoal_rpc::proto::worker::v1::event::Kind;
use shoal_rpc::proto::worker::v1::node_frame::Frame as Say;
use shoal_rpc::proto::worker::v1::worker_frame::Frame;
use shoal_rpc::proto::worker::v1::{Answer, AnswerTaken, Detach, Lost, Subscribe};
use shoal_rpc::{JoiningWorker, WorkerJoin};

use crate::probe::{journaled, long, repeatable};
use crate::raw_node::{RawLink, RawNode};
use crate::scripted_worker::ScriptedWorker;
use crate::setting::{config, within};

fn numbers(frames: &[Frame]) -> Vec<(u64, u64)> {
    let number = |frame: &Frame| match frame {
        Frame::Event(event) => (event.flight, event.sequence),
        other => panic!("{other:?} is no event"),
    };
    frames.iter().map(number).collect()
}

#[tokio::test]
async fn a_call_that_ends_at_once_is_one_event() {
    within(async {
        let mut node = RawNode::start().await;
        let joining = JoiningWorker::new(ScriptedWorker::echoing("w"));
        let _join = WorkerJoin::start(&joining, &node.address, config());
        let mut link = node.welcomed(1).await;
        for flight in [3, 9, 4] {
            link.start(flight, &repeatable()).await;
            let Some(Frame::Event(event)) = link.said().await else {
                panic!("an event");
            };
            assert_eq!((event.flight, event.sequence), (flight, 1));
            assert!(matches!(event.kind, Some(Kind::Finished(_))));
        }
        assert_eq!(link.so_far().await, []);
    })
    .await;
}

#[tokio::test]
async fn a_worker_says_how_much_it_can_run_before_what_it_offers() {
    within(async {
        let mut node = RawNode::start().await;
        let joining = JoiningWorker::new(ScriptedWorker::echoing("w"));
        let _join = WorkerJoin::start(&joining, &node.address, config());
        let mut link = node.welcomed(1).await;
        let first = link.hear().await;
        assert!(
            matches!(&first, Some(Frame::Load(load)) if load.capacity > 0),
            "{first:?}"
        );
        let second = link.hear().await;
        assert!(matches!(second, Some(Frame::Announce(_))), "{second:?}");
    })
    .await;
}

#[tokio::test]
async fn a_silent_call_is_accepted_once() {
    within(async {
        let mut node = RawNode::start().await;
        let worker = ScriptedWorker::running("w");
        let joining = JoiningWorker::new(worker.clone());
        let _join = WorkerJoin::start(&joining, &node.address, config());
        let mut link = node.welcomed(1).await;
        let call = journaled();
        link.start(1, &call).await;
        assert!(matches!(link.said().await, Some(Frame::Accepted(said)) if said.flight == 1));
        let record = worker.call(call.id).await;
        record.progress(1);
        record.result(2);
        for sequence in [1, 2] {
            assert_eq!(numbers(&[link.said().await.unwrap()]), [(1, sequence)]);
        }
        assert_eq!(link.so_far().await, []);
    })
    .await;
}

#[tokio::test]
async fn a_hello_names_the_worker_and_its_incarnation() {
    within(async {
        let mut node = RawNode::start().await;
        let joining = JoiningWorker::new(ScriptedWorker::running("w"));
        let join = WorkerJoin::start(&joining, &node.address, config());
        let (link, first) = node.link().await;
        let versions = first.versions.unwrap();
        assert_eq!((versions.lowest, versions.highest), (1, 6));
        assert_eq!(first.worker, "w");
        assert_eq!(first.limits.unwrap().credit_bytes, config().credit);
        drop(link);
        let (_link, again) = node.link().await;
        assert_eq!(again.incarnation, first.incarnation);
        join.stop();
        let anew = JoiningWorker::new(ScriptedWorker::running("w"));
        let _join = WorkerJoin::start(&anew, &node.address, config());
        loop {
            let (_link, hello) = node.link().await;
            if hello.incarnation != first.incarnation {
                break;
            }
        }
    })
    .await;
}

#[tokio::test]
async fn no_more_is_sent_than_the_credit_allows() {
    within(async {
        let mut node = RawNode::start().await;
        let worker = ScriptedWorker::running("w");
        let joining = JoiningWorker::new(worker.clone());
        let _join = WorkerJoin::start(&joining, &node.address, config());
        let limits = Limits {
            credit_bytes: 1000,
            ..Limits::default()
        };
        let mut link = node.limited(1, limits).await;
        let call = journaled();
        link.start(1, &call).await;
        let record = worker.call(call.id).await;
        assert!(matches!(link.said().await, Some(Frame::Accepted(_))));
        for _ in 0..6 {
            record.notify(long(598));
        }
        assert_eq!(numbers(&link.so_far().await), [(1, 1), (1, 2)]);
        assert_eq!(link.so_far().await, []);
        let grant = |bytes| Say::Credit(Credit { flight: 1, bytes });
        link.say(grant(712)).await;
        assert_eq!(link.so_far().await, []);
        link.say(grant(1)).await;
        assert_eq!(numbers(&[link.said().await.unwrap()]), [(1, 3)]);
        assert_eq!(link.so_far().await, []);
        link.attach(2, &call, 5).await;
        assert_eq!(numbers(&[link.said().await.unwrap()]), [(2, 6)]);
        assert_eq!(link.so_far().await, []);
        link.say(grant(u64::MAX)).await;
        let lost = Lost {
            flight: 1,
            replaced: true,
        };
        assert_eq!(link.said().await, Some(Frame::Lost(lost)));
        assert_eq!(link.so_far().await, []);
    })
    .await;
}

#[tokio::test]
async fn an_answer_that_comes_twice_is_taken_once_and_acknowledged_twice() {
    within(async {
        let mut node = RawNode::start().await;
        let worker = ScriptedWorker::running("w");
        let joining = JoiningWorker::new(worker.clone());
        let _join = WorkerJoin::start(&joining, &node.address, config());
        let mut link = node.welcomed(1).await;
        let call = journaled();
        link.start(1, &call).await;
        let record = worker.call(call.id).await;
        record.ask(5, RawJson::from_static("{}"));
        loop {
            if let Some(Frame::Event(event)) = link.said().await {
                assert!(matches!(event.kind, Some(Kind::Ask(ask)) if ask.ask == 5));
                break;
            }
        }
        let answer = |ask, text: &'static [u8]| {
            let outcome = Some(WireOutcome::Result(Bytes::from_static(text)));
            let outcome = Some(Outcome { outcome });
            Say::Answer(Answer {
                flight: 1,
                ask,
                outcome,
            })
        };
        let taken = |ask, open| {
            let flight = 1;
            Frame::AnswerTaken(AnswerTaken { flight, ask, open })
        };
        for text in [b"1", b"2"] {
            link.say(answer(5, text)).await;
            assert_eq!(link.said().await, Some(taken(5, true)));
        }
        link.say(answer(6, b"3")).await;
        assert_eq!(link.said().await, Some(taken(6, false)));
        assert_eq!(record.answer().await, (AskId(5), "1".to_owned()));
        assert_eq!(record.answers(), 1);
        drop(link);
        let mut again = node.welcomed(1).await;
        again.say(answer(5, b"4")).await;
        again.attach(1, &call, 1).await;
        again.say(answer(5, b"5")).await;
        let mut said = Vec::new();
        while said.len() < 2 {
            said.extend(again.said().await);
        }
        said.retain(|frame| !matches!(frame, Frame::Accepted(_)));
        assert_eq!(said, [taken(5, true)]);
        assert_eq!(record.answers(), 1);
        record.result(1);
        assert_eq!(numbers(&[again.said().await.unwrap()]), [(1, 2)]);
    })
    .await;
}

#[tokio::test]
async fn what_nobody_reads_is_not_sent_and_still_steered() {
    within(async {
        let mut node = RawNode::start().await;
        let worker = ScriptedWorker::running("w");
        let joining = JoiningWorker::new(worker.clone());
        let _join = WorkerJoin::start(&joining, &node.address, config());
        let mut link = node.welcomed(1).await;
        let call = journaled();
        link.start(1, &call).await;
        let record = worker.call(call.id).await;
        assert!(matches!(link.said().await, Some(Frame::Accepted(_))));
        let detach = |steering| {
            let flight = 1;
            Say::Detach(Detach { flight, steering })
        };
        link.say(detach(true)).await;
        assert_eq!(link.so_far().await, []);
        record.progress(1);
        let reason = "steered".to_owned();
        let flight = 1;
        let cancel = shoal_rpc::proto::worker::v1::Cancel { flight, reason };
        link.say(Say::Cancel(cancel.clone())).await;
        assert_eq!(record.cancelled().await, "steered");
        link.say(detach(false)).await;
        link.say(Say::Cancel(cancel)).await;
        assert_eq!(link.so_far().await, []);
        assert_eq!(record.cancels(), 1);
        answers_subscribe(&mut link).await;
    })
    .await;
}

async fn answers_subscribe(link: &mut RawLink) {
    for (request, uri, refused) in [(70, "file:a", false), (71, "no:b", true)] {
        let uri = uri.to_owned();
        link.say(Say::Subscribe(Subscribe { request, uri })).await;
        let Some(Frame::Subscribed(said)) = link.said().await else {
            panic!("an answer");
        };
        assert_eq!((said.request, said.error.is_some()), (request, refused));
    }
}
