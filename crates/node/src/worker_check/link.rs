use std::collections::{HashMap, VecDeque};
use std::time::Duration;

use prost::Message as _;
use shoal_ports::NEWEST_PROTOCOL;
use shoal_rpc::proto::types::v1::{Close, Fragment, Limits, Node, Ping, Pong};
use shoal_rpc::proto::worker::v1::node_frame::{self, Frame as Said};
use shoal_rpc::proto::worker::v1::worker_frame::Frame;
use shoal_rpc::proto::worker::v1::{Announce, Hello, Load, NodeFrame, Welcome, WorkerFrame};
use tokio::sync::mpsc;
use tokio::time::timeout;
use tonic::{Status, Streaming};

use super::check_failure::{CheckResult, expect, failed};

/// Maximum bytes of a message in either direction.
pub(super) const LONGEST_MESSAGE: usize = 128 * 1024;
/// The node sends longer frames in fragments of half this size.
const LONGEST_WHOLE: usize = 64 * 1024;
/// Maximum fragmented frames at a time.
const LANES: usize = 8;

pub(super) struct IncomingLink {
    pub(super) say: mpsc::Sender<Result<NodeFrame, Status>>,
    pub(super) heard: Streaming<WorkerFrame>,
}

#[derive(Clone, Copy, Default)]
pub(super) struct Setting {
    pub(super) limits: Limits,
    pub(super) oldest: bool,
}

pub(super) struct ProbeLink {
    say: mpsc::Sender<Result<NodeFrame, Status>>,
    heard: Streaming<WorkerFrame>,
    batch: VecDeque<WorkerFrame>,
    parts: HashMap<u64, Vec<u8>>,
    pub(super) kept: VecDeque<Frame>,
    pub(super) hello: Hello,
    pub(super) announce: Option<Announce>,
    pub(super) load: Option<Load>,
    pub(super) patience: Duration,
    pub(super) flights: u64,
    pub(super) grants: bool,
}

impl ProbeLink {
    pub(super) async fn welcome(
        incoming: IncomingLink,
        setting: Setting,
        address: &str,
        patience: Duration,
    ) -> CheckResult<Self> {
        let mut link = Self {
            say: incoming.say,
            heard: incoming.heard,
            batch: VecDeque::new(),
            parts: HashMap::new(),
            kept: VecDeque::new(),
            hello: Hello::default(),
            announce: None,
            load: None,
            patience,
            flights: 0,
            grants: true,
        };
        link.hello = match link.frame("a hello, the first frame of a worker").await? {
            Frame::Hello(hello) => hello,
            other => return failed("a hello, the first frame of a worker", kind(&other)),
        };
        let versions = link.hello.versions.unwrap_or_default();
        let (lowest, highest) = (versions.lowest, versions.highest);
        expect(
            (1..=NEWEST_PROTOCOL).contains(&lowest) && lowest <= highest,
            format!(
                "versions of the frame protocol that this release speaks, 1 to {NEWEST_PROTOCOL}"
            ),
            format!("{lowest} to {highest}"),
        )?;
        let version = match setting.oldest {
            true => lowest,
            false => highest.min(NEWEST_PROTOCOL),
        };
        let node = Node {
            id: "worker-check".to_owned(),
            address: address.to_owned(),
            session: true,
            edge: true,
            ..Node::default()
        };
        link.say(Said::Welcome(Welcome {
            version,
            node: node.id.clone(),
            nodes: vec![node],
            limits: Some(setting.limits),
            ..Welcome::default()
        }))
        .await?;
        Ok(link)
    }

    pub(super) async fn say(&self, said: Said) -> CheckResult {
        let flight = match &said {
            Said::Start(start) => start.flight,
            _ => 0,
        };
        let frame = NodeFrame { frame: Some(said) };
        if frame.encoded_len() <= LONGEST_WHOLE {
            return self.send(frame).await;
        }
        let encoded = frame.encode_to_vec();
        let pieces = encoded.chunks(LONGEST_WHOLE / 2);
        let count = pieces.len();
        for (at, piece) in pieces.enumerate() {
            let fragment = Fragment {
                flight,
                data: piece.to_vec().into(),
                last: at + 1 == count,
            };
            let frame = Some(Said::Fragment(fragment));
            self.send(NodeFrame { frame }).await?;
        }
        Ok(())
    }

    pub(super) async fn say_all(&self, said: Vec<Said>) -> CheckResult {
        let frames = said.into_iter().map(|said| NodeFrame { frame: Some(said) });
        let batch = node_frame::Batch {
            frames: frames.collect(),
        };
        let frame = Some(Said::Batch(batch));
        self.send(NodeFrame { frame }).await
    }

    pub(super) async fn send(&self, frame: NodeFrame) -> CheckResult {
        let sending = timeout(self.patience, self.say.send(Ok(frame))).await;
        match sending {
            Ok(Ok(())) => Ok(()),
            Ok(Err(_)) => failed("a link that lasts", "the worker has ended it"),
            Err(_) => failed("a worker that reads its link", "it does not"),
        }
    }

    /// `None` when the worker has ended its half.
    pub(super) async fn next(&mut self, expected: &str) -> CheckResult<Option<Frame>> {
        loop {
            let (frame, batched) = match self.batch.pop_front() {
                Some(frame) => (frame, true),
                None => match timeout(self.patience, self.heard.message()).await {
                    Ok(Ok(Some(frame))) => (frame, false),
                    Ok(Ok(None)) => return Ok(None),
                    Ok(Err(status)) => {
                        return failed(expected, format!("the link broke: {status}"));
                    }
                    Err(_) => return failed(expected, format!("nothing in {:?}", self.patience)),
                },
            };
            let Some(frame) = self.take(frame, batched).await? else {
                continue;
            };
            return Ok(Some(frame));
        }
    }

    pub(super) async fn frame(&mut self, expected: &str) -> CheckResult<Frame> {
        match self.next(expected).await? {
            Some(frame) => Ok(frame),
            None => failed(expected, "the worker has ended the link"),
        }
    }

    /// Records the worker's announcements.
    async fn take(&mut self, frame: WorkerFrame, batched: bool) -> CheckResult<Option<Frame>> {
        let Some(frame) = frame.frame else {
            return Ok(None);
        };
        match frame {
            Frame::Batch(batch) => {
                expect(!batched, "frames in a batch", "a batch within a batch")?;
                self.batch.extend(batch.frames);
            }
            Frame::Fragment(fragment) => {
                let parts = self.parts.entry(fragment.flight).or_default();
                parts.extend_from_slice(&fragment.data);
                let under_way = self.parts.len();
                let seen = format!("{under_way} frames in fragments at a time");
                expect(under_way <= LANES, "8 at most", seen)?;
                if fragment.last {
                    let whole = self.parts.remove(&fragment.flight).unwrap_or_default();
                    let Ok(whole) = WorkerFrame::decode(whole.as_slice()) else {
                        return failed("fragments that make a frame", "they do not");
                    };
                    return Box::pin(self.take(whole, true)).await;
                }
            }
            Frame::Ping(Ping { nonce }) => {
                let pong = Pong { nonce, clock_us: 0 };
                self.say(Said::Pong(pong)).await?;
            }
            Frame::Announce(said) => self.announce = Some(said),
            Frame::Load(said) => self.load = Some(said),
            frame => {
                let flight = flight_of(&frame);
                expect(
                    flight.is_none_or(|flight| !self.parts.contains_key(&flight)),
                    "no frame of a flight between its fragments",
                    kind(&frame),
                )?;
                return Ok(Some(frame));
            }
        }
        Ok(None)
    }

    pub(super) async fn announced(
        &mut self,
        wanted: impl Fn(&Announce) -> bool,
    ) -> CheckResult<Announce> {
        loop {
            if let Some(said) = self.announce.as_ref().filter(|said| wanted(said)) {
                return Ok(said.clone());
            }
            self.read("an announcement").await?;
        }
    }

    /// Keeps the frames of flights for later.
    pub(super) async fn read(&mut self, expected: &str) -> CheckResult {
        let heard = match timeout(self.patience, self.heard.message()).await {
            Ok(Ok(Some(frame))) => frame,
            Ok(Ok(None)) => return failed(expected, "the worker has ended the link"),
            Ok(Err(status)) => return failed(expected, format!("the link broke: {status}")),
            Err(_) => return failed(expected, format!("nothing in {:?}", self.patience)),
        };
        let mut taken = self.take(heard, false).await?;
        self.kept.extend(taken.take());
        while let Some(frame) = self.batch.pop_front() {
            taken = self.take(frame, true).await?;
            self.kept.extend(taken.take());
        }
        Ok(())
    }

    /// Keeps the frames before the answer.
    pub(super) async fn ping(&mut self) -> CheckResult {
        let nonce = 0x5ca1_ab1e;
        self.say(Said::Ping(Ping { nonce })).await?;
        let is_it = |frame: &Frame| matches!(frame, Frame::Pong(pong) if pong.nonce == nonce);
        loop {
            if let Some(at) = self.kept.iter().position(is_it) {
                self.kept.remove(at);
                return Ok(());
            }
            self.read("a pong with the nonce of the ping").await?;
        }
    }

    /// Closes the link like a leaving node, and waits until the worker has ended its half.
    pub(super) async fn close(mut self) -> CheckResult {
        let reason = "the check is over".to_owned();
        self.say(Said::Close(Close { reason })).await?;
        let expected = "a worker that ends its half of the stream after a close";
        while let Some(frame) = self.next(expected).await? {
            drop(frame);
        }
        Ok(())
    }
}

pub(super) fn flight_of(frame: &Frame) -> Option<u64> {
    match frame {
        Frame::Accepted(said) => Some(said.flight),
        Frame::Refused(said) => Some(said.flight),
        Frame::Event(said) => Some(said.flight),
        Frame::Lost(said) => Some(said.flight),
        Frame::AnswerTaken(said) => Some(said.flight),
        _ => None,
    }
}

pub(super) fn kind(frame: &Frame) -> String {
    let text = format!("{frame:?}");
    let short: String = text.chars().take(300).collect();
    short
}
