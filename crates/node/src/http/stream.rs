use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::{Buf as _, Bytes};
use http::Version;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, ReadBuf};
use tokio::time::{Sleep, sleep, timeout};

use super::framing::{Framing, FramingFault};
use super::half_closed::HalfClosed;
use super::refusal::{HeadLimits, Refusal};
use super::wire::HttpWire;

/// How long, and how much, a client may send after an early answer. An earlier close would reset the connection and
/// lose the answer.
const LINGER: Duration = Duration::from_secs(5);
const LINGER_BYTES: usize = 32 << 20;
const LINGER_BUFFER: usize = 8 << 10;

#[derive(Debug)]
pub(super) struct WatchedStream {
    stream: HttpWire,
    framing: Framing,
    seen: Arc<RequestProgress>,
    limits: HeadLimits,
    head_within: Duration,
    head_timer: Option<Pin<Box<Sleep>>>,
    refusal: Option<Bytes>,
    ended: bool,
    /// Set once the client has closed its sending side. hyper must not see this end before the answer, because hyper
    /// would drop the request.
    half_closed: Option<HalfClosed>,
}

#[derive(Debug, Default)]
pub(super) struct RequestProgress {
    fault: OnceLock<(u64, FramingFault)>,
    amid: AtomicBool,
    answering: AtomicBool,
    begun: AtomicBool,
    interim: AtomicBool,
}

impl RequestProgress {
    /// The first request has the number 0.
    pub(super) fn refusal(&self, request: u64) -> Option<Refusal> {
        let (at, fault) = self.fault.get()?;
        (request >= *at).then_some(Refusal::Fault(*fault))
    }

    pub(super) fn begin_answer(&self, version: Version) {
        self.interim
            .store(version >= Version::HTTP_11, Ordering::Relaxed);
        self.begun.store(false, Ordering::Relaxed);
        self.answering.store(true, Ordering::Relaxed);
    }

    pub(super) fn end_answer(&self) {
        self.answering.store(false, Ordering::Relaxed);
    }

    fn is_answering(&self) -> bool {
        self.answering.load(Ordering::Relaxed)
    }

    fn has_begun(&self) -> bool {
        self.begun.load(Ordering::Relaxed)
    }

    /// Whether a client that closed its sending side may wait for its answer. Once the answer has begun, the client may
    /// be leaving a stream instead.
    fn may_be_read(&self) -> bool {
        self.is_answering()
            && !self.is_amid()
            && !self.has_begun()
            && self.interim.load(Ordering::Relaxed)
    }

    pub(super) fn is_amid(&self) -> bool {
        self.amid.load(Ordering::Relaxed)
    }
}

impl WatchedStream {
    pub(super) fn new(
        stream: HttpWire,
        limits: HeadLimits,
        head_within: Duration,
    ) -> (Self, Arc<RequestProgress>) {
        let seen = Arc::<RequestProgress>::default();
        let watched = Self {
            stream,
            framing: Framing::default(),
            seen: Arc::clone(&seen),
            limits,
            head_within,
            head_timer: None,
            refusal: None,
            ended: false,
            half_closed: None,
        };
        (watched, seen)
    }

    pub(super) fn into_wire(self) -> HttpWire {
        self.stream
    }

    /// Reads and drops what the client still sends, so that the close does not lose the answer.
    pub(super) async fn linger(mut self, ended: &hyper::Result<()>) {
        // hyper's refusal does not reveal where the request ends.
        let unclear = self.refusal.is_some();
        let answered = unclear || ended.is_ok() && self.framing.is_amid();
        if self.ended || !answered {
            return;
        }
        let _ = timeout(LINGER, async {
            self.stream.shutdown().await?;
            let mut scrap = vec![0; LINGER_BUFFER];
            let mut taken = 0;
            while (unclear || self.framing.is_amid()) && taken < LINGER_BYTES {
                let length = self.stream.read(&mut scrap).await?;
                if length == 0 {
                    break;
                }
                self.framing.read(&scrap[..length]);
                taken += length;
            }
            io::Result::Ok(())
        })
        .await;
    }

    fn poll_head_timer(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if !self.framing.is_in_head() {
            return Poll::Pending;
        }
        let timer = self
            .head_timer
            .get_or_insert_with(|| Box::pin(sleep(self.head_within)));
        timer.as_mut().poll(cx)
    }

    fn poll_end(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        match &mut self.half_closed {
            Some(half_closed) if self.seen.is_answering() => {
                half_closed.poll_gone(&mut self.stream, self.seen.has_begun(), cx)
            }
            _ => Poll::Ready(()),
        }
    }

    fn poll_refusal(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        while let Some(refusal) = self.refusal.as_mut().filter(|refusal| !refusal.is_empty()) {
            let written = ready!(Pin::new(&mut self.stream).poll_write(cx, refusal))?;
            if written == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            refusal.advance(written);
        }
        Poll::Ready(Ok(()))
    }

    /// Stores the answer that replaces hyper's refusal.
    fn replaces(&mut self, written: &[u8]) -> bool {
        let refusal = Refusal::of_hyper(written, self.limits);
        self.refusal = refusal.map(Refusal::wire).or(self.refusal.take());
        refusal.is_some()
    }
}

impl AsyncRead for WatchedStream {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        if this.ended {
            ready!(this.poll_end(cx));
            return Poll::Ready(Ok(()));
        }
        let before = into.filled().len();
        match Pin::new(&mut this.stream).poll_read(cx, into) {
            Poll::Ready(read) => read?,
            Poll::Pending => {
                ready!(this.poll_head_timer(cx));
                return Poll::Ready(Err(io::ErrorKind::TimedOut.into()));
            }
        }
        let bytes = &into.filled()[before..];
        if bytes.is_empty() {
            this.ended = true;
            this.half_closed = this.seen.may_be_read().then(HalfClosed::new);
            ready!(this.poll_end(cx));
            return Poll::Ready(Ok(()));
        }
        if let Some(fault) = this.framing.read(bytes) {
            let _ = this.seen.fault.set(fault);
        }
        if !this.framing.is_in_head() {
            this.head_timer = None;
        }
        this.seen
            .amid
            .store(this.framing.is_amid(), Ordering::Relaxed);
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for WatchedStream {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        this.seen.begun.store(true, Ordering::Relaxed);
        if this.replaces(bytes) {
            return Poll::Ready(Ok(bytes.len()));
        }
        Pin::new(&mut this.stream).poll_write(cx, bytes)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        this.seen.begun.store(true, Ordering::Relaxed);
        if let [head] = slices
            && this.replaces(head)
        {
            return Poll::Ready(Ok(head.len()));
        }
        Pin::new(&mut this.stream).poll_write_vectored(cx, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        ready!(this.poll_refusal(cx))?;
        Pin::new(&mut this.stream).poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        ready!(this.poll_refusal(cx))?;
        Pin::new(&mut this.stream).poll_shutdown(cx)
    }
}
