use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures::stream::{self, Stream};
use tokio::time::{Instant, Sleep};

use super::clocks;
use super::frame::{Frame, LinkFrame};
use super::outbox::Outbox;
use crate::LinkConfig;
use crate::error::LinkError;

/// A timer that fires this late was suspended with its process.
const OWN_PAUSE: Duration = Duration::from_millis(500);

#[derive(Clone, Default)]
pub(crate) struct Heard(Arc<AtomicBool>);

struct Pulse {
    due: Pin<Box<Sleep>>,
    patience: Duration,
    asked: bool,
}

#[derive(Debug, PartialEq, Eq)]
enum Beat {
    Alive,
    Ask,
    Dead,
}

impl Heard {
    pub(crate) fn note(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    pub(crate) fn take(&self) -> bool {
        self.0.swap(false, Ordering::Relaxed)
    }
}

/// Yields `Ok` at signs of life, and an error when the link must end.
pub(crate) fn pulse<F: Frame>(
    config: &LinkConfig,
    heard: Heard,
    outbox: Arc<Outbox<F>>,
) -> impl Stream<Item = Result<(), LinkError>> + use<F> {
    stream::unfold(Pulse::new(config), move |mut pulse| {
        let (heard, outbox) = (heard.clone(), Arc::clone(&outbox));
        async move {
            loop {
                pulse.due().await;
                match pulse.beat(heard.take()) {
                    Beat::Alive => return Some((Ok(()), pulse)),
                    Beat::Ask => outbox.push_now(F::of_link(LinkFrame::Ping(clocks::now_us()))),
                    Beat::Dead => return Some((Err(LinkError::Silent), pulse)),
                }
            }
        }
    })
}

impl Pulse {
    fn new(config: &LinkConfig) -> Self {
        Self {
            due: Box::pin(tokio::time::sleep(config.ping_after())),
            patience: config.ping_after(),
            asked: false,
        }
    }

    async fn due(&mut self) {
        self.due.as_mut().await;
    }

    fn beat(&mut self, heard: bool) -> Beat {
        let now = Instant::now();
        let paused = now.duration_since(self.due.deadline()) > OWN_PAUSE;
        let beat = match (heard, self.asked) {
            (true, _) => Beat::Alive,
            (false, true) if !paused => Beat::Dead,
            (false, _) => Beat::Ask,
        };
        self.asked = beat == Beat::Ask;
        self.due.as_mut().reset(now + self.patience);
        beat
    }
}

#[cfg(test)]
mod tests {
    use super::{Beat, Pulse};
    use crate::LinkConfig;

    #[tokio::test(start_paused = true)]
    async fn a_silent_peer_is_asked_once_and_then_given_up() {
        let mut pulse = Pulse::new(&LinkConfig::default());
        for (heard, beat) in [
            (true, Beat::Alive),
            (false, Beat::Ask),
            (true, Beat::Alive),
            (false, Beat::Ask),
            (false, Beat::Dead),
        ] {
            pulse.due().await;
            assert_eq!(pulse.beat(heard), beat);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_pause_of_our_own_is_not_held_against_the_peer() {
        let config = LinkConfig::default();
        let mut pulse = Pulse::new(&config);
        pulse.due().await;
        assert_eq!(pulse.beat(false), Beat::Ask);
        tokio::time::advance(config.ping_after() * 10).await;
        pulse.due().await;
        assert_eq!(pulse.beat(false), Beat::Ask);
    }
}
