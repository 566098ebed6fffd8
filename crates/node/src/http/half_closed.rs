//! A client that has closed its side of a connection after its request, and may still read.
//!
//! A client that only stops sending and one that is gone look the same: nothing more comes. But the operating system of a client
//! that is gone refuses what is sent to it. So Shoal sends an interim response, which clients skip (RFC 9110, 15.2), and looks
//! for the refusal.

use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::AsyncWrite as _;
use tokio::time::{Sleep, sleep};

use super::wire::Wire;

const INTERIM: &[u8] = b"HTTP/1.1 100 Continue\r\n\r\n";
/// Most answers come within this time, and so without an interim response before them.
const BEFORE_INTERIM: Duration = Duration::from_millis(50);
/// How long after the interim response Shoal looks for its refusal; each time, it waits twice as long for the next.
const FIRST_LOOK: Duration = Duration::from_millis(10);
const LAST_LOOK: Duration = Duration::from_secs(1);

/// A connection whose client sends nothing more, while an answer is under way.
#[derive(Debug)]
pub(super) struct HalfClosed {
    /// Runs until the next look.
    timer: Pin<Box<Sleep>>,
    /// The time between the next look and the one after it; `None` before the interim response.
    pause: Option<Duration>,
}

impl HalfClosed {
    pub(super) fn new() -> Self {
        Self {
            timer: Box::pin(sleep(BEFORE_INTERIM)),
            pause: None,
        }
    }

    /// Ready when the client is gone. Before the answer has begun, an interim response may be sent.
    pub(super) fn poll_gone(
        &mut self,
        wire: &mut Wire,
        has_begun: bool,
        cx: &mut Context<'_>,
    ) -> Poll<()> {
        loop {
            ready!(self.timer.as_mut().poll(cx));
            if wire.is_broken() {
                return Poll::Ready(());
            }
            let pause = match self.pause {
                Some(pause) => (pause * 2).min(LAST_LOOK),
                // An answer that has begun is a refusable write of its own.
                None if has_begun => FIRST_LOOK,
                // Where not even this finds room, the client has stopped reading too.
                None => match Pin::new(&mut *wire).poll_write(cx, INTERIM) {
                    Poll::Ready(Ok(written)) if written == INTERIM.len() => FIRST_LOOK,
                    _ => return Poll::Ready(()),
                },
            };
            self.pause = Some(pause);
            self.timer = Box::pin(sleep(pause));
        }
    }
}
