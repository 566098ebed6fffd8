//! Detects whether a client that closed its sending side still reads. The operating system of a gone client rejects
//! data, so Shoal sends an interim response, which clients skip (RFC 9110, 15.2).

use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::AsyncWrite as _;
use tokio::time::{Sleep, sleep};

use super::wire::HttpWire;

const INTERIM: &[u8] = b"HTTP/1.1 100 Continue\r\n\r\n";
/// How long to wait before an interim response, because most answers come earlier.
const BEFORE_INTERIM: Duration = Duration::from_millis(50);
/// Doubles from check to check.
const FIRST_LOOK: Duration = Duration::from_millis(10);
const LAST_LOOK: Duration = Duration::from_secs(1);

#[derive(Debug)]
pub(super) struct HalfClosed {
    timer: Pin<Box<Sleep>>,
    pause: Option<Duration>,
}

impl HalfClosed {
    pub(super) fn new() -> Self {
        Self {
            timer: Box::pin(sleep(BEFORE_INTERIM)),
            pause: None,
        }
    }

    /// Becomes ready when the client is gone. Before the answer has begun, may send an interim response to find out.
    pub(super) fn poll_gone(
        &mut self,
        wire: &mut HttpWire,
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
                // The client's system can reject the answer, so no interim response is needed.
                None if has_begun => FIRST_LOOK,
                // A full buffer means that the client does not read.
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
