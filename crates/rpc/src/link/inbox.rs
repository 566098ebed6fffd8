use std::collections::HashMap;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::{Bytes, BytesMut};
use futures::{Stream, StreamExt as _};
use shoal_telemetry::metrics::{self, Direction, metrics};
use tonic::Status;

use super::clocks::{self, Skew};
use super::frame::{Frame, LinkFrame, Sorted};
use super::outbox::Outbox;
use super::pulse::{Heard, pulse};
use super::versions::BATCHES;
use super::{LANES, LONGEST_WHOLE};
use crate::LinkConfig;
use crate::error::LinkError;
use crate::proto::types::v1::{Fragment, Pong};

pub(crate) struct Inbox<S, F, O> {
    stream: S,
    outbox: Arc<Outbox<O>>,
    batch: std::vec::IntoIter<F>,
    parts: PartialFrames,
    batches: bool,
    pub(super) heard: Heard,
    skew: Skew,
}

impl<S, F, O> Inbox<S, F, O>
where
    S: Stream<Item = Result<F, Status>> + Unpin,
    F: Frame,
    O: Frame,
{
    pub(crate) fn new(stream: S, outbox: Arc<Outbox<O>>, max_frame: usize) -> Self {
        Self {
            stream,
            outbox,
            batch: Vec::new().into_iter(),
            parts: PartialFrames::new(max_frame),
            batches: false,
            heard: Heard::default(),
            skew: Skew::new(),
        }
    }

    /// The agreed version says whether batches may arrive.
    pub(crate) fn open(&mut self, version: u32) {
        self.batches = version >= BATCHES;
    }

    pub(crate) fn pulse(
        &self,
        config: &LinkConfig,
    ) -> impl Stream<Item = Result<(), LinkError>> + use<S, F, O> {
        pulse(config, self.heard.clone(), Arc::clone(&self.outbox))
    }

    /// An error ends the link. Cancellation safe.
    pub(crate) async fn next(&mut self) -> Result<F, LinkError> {
        std::future::poll_fn(|cx| self.poll_next(cx)).await
    }

    pub(crate) async fn ended(&mut self) {
        while let Some(Ok(_)) = self.stream.next().await {}
    }

    fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Result<F, LinkError>> {
        loop {
            if let Some(frame) = self.batch.next() {
                if let Some(frame) = self.handle(frame, true)? {
                    return Poll::Ready(Ok(frame));
                }
                continue;
            }
            let frame = match ready!(Pin::new(&mut self.stream).poll_next(cx)) {
                Some(Ok(frame)) => frame,
                Some(Err(status)) => return Poll::Ready(Err(LinkError::of_status(&status))),
                None => return Poll::Ready(Err(LinkError::Ended)),
            };
            self.heard.note();
            if metrics::enabled() {
                let bytes = frame.encoded_len() as u64;
                metrics().rpc.frame(F::LINK, Direction::In, bytes);
            }
            if let Some(frame) = self.handle(frame, false)? {
                return Poll::Ready(Ok(frame));
            }
        }
    }

    /// `None` for the link's own frames.
    fn handle(&mut self, frame: F, in_batch: bool) -> Result<Option<F>, LinkError> {
        let own = match frame.sort() {
            Sorted::Contract(frame) => return Ok(Some(frame)),
            Sorted::Unknown => return Ok(None),
            Sorted::Link(own) => own,
        };
        match own {
            LinkFrame::Batch(_) if in_batch => {
                return Err(LinkError::protocol("a batch within a batch"));
            }
            LinkFrame::Batch(_) if !self.batches => {
                return Err(LinkError::protocol(
                    "a batch, which version 1 does not support",
                ));
            }
            LinkFrame::Batch(frames) => self.batch = frames.into_iter(),
            LinkFrame::Fragment(fragment) => {
                if let Some(whole) = self.parts.add(fragment)? {
                    return self.handle_whole(whole);
                }
            }
            LinkFrame::Ping(nonce) => {
                let clock_us = clocks::now_us();
                let pong = LinkFrame::Pong(Pong { nonce, clock_us });
                self.outbox.push_now(O::of_link(pong));
            }
            LinkFrame::Pong(pong) => self.skew.note(pong.nonce, clocks::now_us(), pong.clock_us),
            LinkFrame::Close(reason) => return Err(LinkError::Closed(reason)),
        }
        Ok(None)
    }

    fn handle_whole(&mut self, whole: Bytes) -> Result<Option<F>, LinkError> {
        let frame = F::decode(whole)
            .map_err(|error| LinkError::protocol(format!("a frame in fragments: {error}")))?;
        match frame.sort() {
            Sorted::Contract(frame) => Ok(Some(frame)),
            Sorted::Unknown => Ok(None),
            Sorted::Link(_) => Err(LinkError::protocol("a frame of the link in fragments")),
        }
    }
}

struct PartialFrames {
    open: HashMap<u64, BytesMut>,
    max_frame: usize,
}

impl PartialFrames {
    fn new(max_frame: usize) -> Self {
        Self {
            open: HashMap::new(),
            max_frame: max_frame.max(LONGEST_WHOLE),
        }
    }

    fn add(&mut self, fragment: Fragment) -> Result<Option<Bytes>, LinkError> {
        if !self.open.contains_key(&fragment.flight) && self.open.len() >= LANES {
            return Err(LinkError::protocol(format!(
                "more than {LANES} frames in fragments at a time"
            )));
        }
        let parts = self.open.entry(fragment.flight).or_default();
        let bytes = parts.len() + fragment.data.len();
        if bytes > self.max_frame {
            return Err(LinkError::protocol(format!(
                "a frame of more than {} bytes",
                self.max_frame
            )));
        }
        parts.extend_from_slice(&fragment.data);
        if !fragment.last {
            return Ok(None);
        }
        Ok(self.open.remove(&fragment.flight).map(BytesMut::freeze))
    }
}
