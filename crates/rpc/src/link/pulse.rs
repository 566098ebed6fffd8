//! Whether the peer of a link is alive.

use std::pin::Pin;
use std::time::Duration;

use tokio::time::{Instant, Sleep};

use crate::LinkConfig;

/// A timer that fires much later than it should was stopped with its process, and says nothing of the peer.
const OWN_PAUSE: Duration = Duration::from_millis(500);

/// Times the questions to a peer that says nothing, and its answers.
pub(crate) struct Pulse {
    due: Pin<Box<Sleep>>,
    after: Duration,
    timeout: Duration,
    asked: bool,
}

/// What to do when the pulse is due.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Beat {
    /// Nothing.
    Alive,
    /// Ask.
    Ask,
    /// Give up.
    Dead,
}

impl Pulse {
    pub(crate) fn new(config: &LinkConfig) -> Self {
        Self {
            due: Box::pin(tokio::time::sleep(config.ping_after)),
            after: config.ping_after,
            timeout: config.ping_timeout,
            asked: false,
        }
    }

    /// Returns when [`Pulse::beat`] should be called. Cancellation safe.
    pub(crate) async fn due(&mut self) {
        self.due.as_mut().await;
    }

    /// Decides; `heard` tells whether anything has arrived since the last time.
    pub(crate) fn beat(&mut self, heard: bool) -> Beat {
        let now = Instant::now();
        let paused = now.duration_since(self.due.deadline()) > OWN_PAUSE;
        let (beat, next) = match (heard, self.asked) {
            (true, _) => (Beat::Alive, self.after),
            (false, true) if !paused => (Beat::Dead, self.after),
            (false, _) => (Beat::Ask, self.timeout),
        };
        self.asked = beat == Beat::Ask;
        self.due.as_mut().reset(now + next);
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
        tokio::time::advance(config.ping_timeout * 10).await;
        pulse.due().await;
        assert_eq!(pulse.beat(false), Beat::Ask);
    }
}
