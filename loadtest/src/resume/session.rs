use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use http::HeaderValue;
use tokio::time::Instant;

use super::chance::Chance;
use super::tally::Tally;
use crate::connection::{Connection, Event, Reply};
use crate::failure::Failure;
use crate::mcp::check::SeenIds;
use crate::mcp::legacy;
use crate::target::Target;

const RETRY_PAUSE: Duration = Duration::from_millis(100);

const LONGEST_RETRY_PAUSE: Duration = Duration::from_secs(5);

#[derive(Clone)]
pub(super) struct Session {
    pub(super) client: usize,
    pub(super) wire: legacy::Session,
    /// Each endpoint must know the session.
    pub(super) targets: Arc<[Target]>,
    pub(super) tally: Arc<Tally>,
    ids: Arc<Mutex<SeenIds>>,
}

impl Session {
    pub(super) fn new(
        client: usize,
        wire: legacy::Session,
        targets: Arc<[Target]>,
        tally: Arc<Tally>,
    ) -> Self {
        Self {
            client,
            wire,
            targets,
            tally,
            ids: Arc::default(),
        }
    }

    /// Returns `false` if the ID was seen before in this session.
    pub(super) fn note(&self, event: &Event) -> bool {
        self.tally.count(|counts| counts.events += 1);
        let Some(id) = &event.id else {
            return true;
        };
        let mut ids = self.ids.lock().unwrap_or_else(PoisonError::into_inner);
        ids.insert(id)
    }

    /// Retries until `deadline` while the server is away or busy.
    pub(super) async fn listen(
        &self,
        last_event_id: Option<&str>,
        chance: &mut Chance,
        deadline: Instant,
    ) -> Result<Reply, Failure> {
        let last_event_id = last_event_id
            .map(HeaderValue::from_str)
            .transpose()
            .map_err(|_| Failure::Wrong("the event id cannot be sent back".to_owned()))?;
        loop {
            let target = chance.pick(&self.targets);
            let goodbye = chance.goodbye();
            let attempt = async {
                let connection = Connection::open(target, goodbye).await?;
                let request = self.wire.listen(last_event_id.as_ref());
                connection.send(request).await
            };
            let failure = match tokio::time::timeout_at(deadline, attempt).await {
                Ok(Ok(reply)) if reply.is_streamed() => return Ok(reply),
                Ok(Ok(_)) => return Err(Failure::Wrong("a GET gave no event stream".to_owned())),
                Ok(Err(failure)) => failure,
                Err(_) => return Err(Failure::Transport("no answer to a GET".to_owned())),
            };
            let pause = match (&failure, failure.retry_after(RETRY_PAUSE)) {
                (Failure::Transport(_), _) => RETRY_PAUSE,
                (_, Some(pause)) => pause.min(LONGEST_RETRY_PAUSE),
                (_, None) => return Err(failure),
            };
            if Instant::now() + pause >= deadline {
                return Err(failure);
            }
            self.tally.count(|counts| counts.retries += 1);
            tokio::time::sleep(pause).await;
        }
    }
}
