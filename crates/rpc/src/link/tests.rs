//! Frames survive batching and fragmentation between an outbox and an inbox.

use std::collections::HashMap;
use std::sync::Arc;

use bytes::Bytes;
use futures::{FutureExt as _, Stream, StreamExt as _, stream};
use proptest::prelude::{Strategy, any, proptest};
use proptest::{collection, prop_oneof};
use prost::Message as _;
use tonic::Status;

use super::frame::{Frame as _, LinkFrame};
use super::inbox::Inbox;
use super::outbox::{OutStream, Outbox, Pushed};
use super::versions::PeerHello;
use super::{FRAGMENT, LANES, LONGEST_MESSAGE};
use crate::error::{LinkError, TooLong};
use crate::proto::types::v1::{Fragment, Limits};
use crate::proto::worker::v1::event::{Kind, Notification};
use crate::proto::worker::v1::worker_frame::{Batch, Frame};
use crate::proto::worker::v1::{Event, NodeFrame, WorkerFrame};

const MAX_FRAME: usize = 1 << 20;

type TestInbox<S> = Inbox<S, WorkerFrame, NodeFrame>;

fn peer(version: u32) -> PeerHello {
    let limits = Limits {
        frame_bytes: MAX_FRAME as u64,
        credit_bytes: 0,
    };
    PeerHello::new(version, Some(limits))
}

fn outbox(version: u32) -> (Arc<Outbox<WorkerFrame>>, OutStream<WorkerFrame>) {
    let (outbox, stream) = Outbox::new(usize::MAX);
    outbox.open(&peer(version));
    (outbox, stream)
}

fn inbox<S: Stream<Item = Result<WorkerFrame, Status>> + Unpin>(stream: S) -> TestInbox<S> {
    let (pongs, _) = Outbox::new(usize::MAX);
    let mut inbox = Inbox::new(stream, pongs, MAX_FRAME);
    inbox.open(2);
    inbox
}

fn event(flight: u64, sequence: u64, bytes: usize) -> WorkerFrame {
    Frame::Event(Event {
        flight,
        sequence,
        reader: 0,
        kind: Some(Kind::Notification(Notification {
            method: "m".to_owned(),
            params: Some(Bytes::from(vec![flight as u8; bytes])),
        })),
    })
    .into()
}

fn fragment(flight: u64, bytes: usize, last: bool) -> WorkerFrame {
    WorkerFrame::of_link(LinkFrame::Fragment(Fragment {
        flight,
        data: Bytes::from(vec![0xff; bytes]),
        last,
    }))
}

fn arrivals(messages: Vec<WorkerFrame>) -> (Vec<WorkerFrame>, LinkError) {
    let mut inbox = inbox(stream::iter(messages.into_iter().map(Ok)));
    let mut frames = Vec::new();
    loop {
        match inbox.next().now_or_never().expect("all of it is there") {
            Ok(frame) => frames.push(frame),
            Err(ended) => return (frames, ended),
        }
    }
}

fn sent(stream: &mut OutStream<WorkerFrame>) -> Vec<WorkerFrame> {
    std::iter::from_fn(|| stream.next().now_or_never().flatten()).collect()
}

fn sizes() -> impl Strategy<Value = usize> {
    prop_oneof![
        8 => 0..400_usize,
        2 => 60_000..70_000_usize,
        1 => 100_000..500_000_usize,
    ]
}

proptest! {
    #[test]
    fn each_flight_gets_its_frames_whole_and_in_order(
        frames in collection::vec((0..5_u64, sizes(), any::<bool>()), 0..80),
        version in 1..=2_u32,
    ) {
        let (outbox, mut stream) = outbox(version);
        let mut expected: HashMap<u64, Vec<WorkerFrame>> = HashMap::new();
        let mut messages = Vec::new();
        for (sequence, (flight, bytes, pull)) in (1..).zip(frames) {
            let frame = event(flight, sequence, bytes);
            outbox.push(flight, frame.clone()).unwrap();
            expected.entry(flight).or_default().push(frame);
            if pull {
                messages.extend(stream.next().now_or_never().flatten());
            }
        }
        messages.extend(sent(&mut stream));
        for message in &messages {
            assert!(message.encoded_len() <= LONGEST_MESSAGE);
            let batch = matches!(message.frame, Some(Frame::Batch(_)));
            assert!(version > 1 || !batch);
        }
        let (arrived, _) = arrivals(messages);
        let mut found: HashMap<u64, Vec<WorkerFrame>> = HashMap::new();
        for frame in arrived {
            let Some(Frame::Event(event)) = &frame.frame else { panic!("{frame:?}") };
            found.entry(event.flight).or_default().push(frame);
        }
        assert!(found == expected);
    }

    #[test]
    fn no_message_makes_an_inbox_panic(messages in collection::vec(any::<Vec<u8>>(), 0..20)) {
        let decoded = messages.iter().filter_map(|bytes| WorkerFrame::decode(&bytes[..]).ok());
        arrivals(decoded.collect());
    }
}

#[test]
fn short_frames_take_turns_with_long_ones() {
    let (outbox, mut stream) = outbox(1);
    outbox.push(1, event(1, 1, 10 * FRAGMENT - 100)).unwrap();
    for sequence in 0..5 {
        outbox.push(2, event(2, sequence, 10)).unwrap();
    }
    let kinds: String = (sent(&mut stream).into_iter())
        .map(|message| match message.frame {
            Some(Frame::Fragment(_)) => 'F',
            _ => 's',
        })
        .collect();
    assert_eq!(kinds, "sFsFsFsFsFFFFFF");
}

#[test]
fn no_more_frames_are_in_fragments_at_a_time_than_may_be() {
    let (outbox, mut stream) = outbox(2);
    for flight in 1..=3 * LANES as u64 {
        outbox.push(flight, event(flight, 1, 3 * FRAGMENT)).unwrap();
    }
    let (arrived, ended) = arrivals(sent(&mut stream));
    assert_eq!(arrived.len(), 3 * LANES);
    assert!(matches!(ended, LinkError::Ended));
}

#[test]
fn frames_that_are_due_together_travel_together_after_the_first() {
    let (outbox, mut stream) = outbox(2);
    for sequence in 1..=300 {
        outbox.push(1, event(1, sequence, 10)).unwrap();
    }
    let messages = sent(&mut stream);
    assert!(matches!(messages[0].frame, Some(Frame::Event(_))));
    assert!(
        messages[1..]
            .iter()
            .all(|message| matches!(message.frame, Some(Frame::Batch(_))))
    );
    assert!(messages.len() < 6, "{}", messages.len());
}

#[test]
fn a_frame_that_is_too_long_is_not_taken() {
    let (outbox, mut stream) = outbox(2);
    let refused = outbox.push(1, event(1, 1, MAX_FRAME));
    assert!(
        matches!(refused, Err(TooLong { bytes, limit }) if bytes > limit && limit == MAX_FRAME)
    );
    assert!(sent(&mut stream).is_empty());
}

#[test]
fn a_closed_outbox_sends_what_it_has_and_takes_no_more() {
    let (outbox, mut stream) = outbox(2);
    outbox.push(1, event(1, 1, 10)).unwrap();
    outbox.close(Some("that was it"));
    outbox.push(1, event(1, 2, 10)).unwrap();
    let (arrived, ended) = arrivals(sent(&mut stream));
    assert_eq!(arrived.len(), 1);
    assert!(matches!(ended, LinkError::Closed(reason) if reason == "that was it"));
    assert!(stream.next().now_or_never().unwrap().is_none());
}

#[test]
fn why_an_outbox_ends_is_said_after_everything_else() {
    let (outbox, mut stream) = outbox(2);
    outbox.push(1, event(1, 1, 10)).unwrap();
    outbox.push(2, event(2, 1, 5 * FRAGMENT)).unwrap();
    outbox.push(2, event(2, 2, 10)).unwrap();
    outbox.finish("that was it");
    assert_eq!(outbox.push(1, event(1, 2, 10)), Ok(Pushed::Dropped));
    let (arrived, ended) = arrivals(sent(&mut stream));
    assert_eq!(arrived.len(), 3);
    assert!(matches!(ended, LinkError::Closed(reason) if reason == "that was it"));
    assert!(stream.next().now_or_never().is_none(), "it stays open");
    outbox.close(Some("once more"));
    assert!(stream.next().now_or_never().unwrap().is_none());
}

#[tokio::test]
async fn whoever_waits_for_room_is_told() {
    let (outbox, mut stream) = Outbox::<WorkerFrame>::new(1000);
    outbox.push(1, event(1, 1, 600)).unwrap();
    outbox.room().await;
    outbox.push(1, event(1, 2, 600)).unwrap();
    assert!(outbox.is_full() && outbox.room().now_or_never().is_none());
    let waiting = tokio::spawn({
        let outbox = Arc::clone(&outbox);
        async move { outbox.room().await }
    });
    tokio::task::yield_now().await;
    stream.next().await.unwrap();
    waiting.await.unwrap();
    outbox.push(1, event(1, 3, 2000)).unwrap();
    drop(stream);
    outbox.room().await;
    assert!(!outbox.is_full());
}

#[test]
fn breaches_of_the_protocol_are_named() {
    let batch = |frames| WorkerFrame::from(Frame::Batch(Batch { frames }));
    let many = (1..=LANES as u64 + 1).map(|flight| fragment(flight, 1, false));
    let whole = |frame: WorkerFrame| {
        WorkerFrame::of_link(LinkFrame::Fragment(Fragment {
            flight: 1,
            data: frame.encode_to_vec().into(),
            last: true,
        }))
    };
    let cases = [
        (vec![batch(vec![batch(Vec::new())])], "batch within a batch"),
        (vec![fragment(1, 100, true)], "a frame in fragments"),
        (
            vec![whole(WorkerFrame::of_link(LinkFrame::Ping(1)))],
            "frame of the link",
        ),
        (
            vec![fragment(1, MAX_FRAME, false), fragment(1, 1, false)],
            "more than 1048576 bytes",
        ),
        (many.collect(), "more than 8 frames"),
    ];
    for (messages, reason) in cases {
        let (_, ended) = arrivals(messages);
        let text = ended.to_string();
        assert!(
            matches!(ended, LinkError::Protocol(_)) && text.contains(reason),
            "{text}"
        );
    }
}

#[test]
fn pings_are_answered_even_in_batches() {
    let (pongs, mut answers) = Outbox::<NodeFrame>::new(usize::MAX);
    let ping = |nonce| WorkerFrame::of_link(LinkFrame::Ping(nonce));
    let batch = WorkerFrame::from(Frame::Batch(Batch {
        frames: vec![ping(1), event(1, 1, 1), WorkerFrame::default(), ping(2)],
    }));
    let messages = stream::iter([Ok(batch), Ok(ping(3))]);
    let mut inbox: TestInbox<_> = Inbox::new(messages, pongs, MAX_FRAME);
    inbox.open(2);
    assert!(inbox.next().now_or_never().unwrap().is_ok());
    assert!(inbox.next().now_or_never().unwrap().is_err());
    assert!(inbox.heard.take() && !inbox.heard.take());
    let answered = std::iter::from_fn(|| answers.next().now_or_never().flatten());
    assert_eq!(answered.count(), 3);
}
