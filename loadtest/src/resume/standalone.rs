//! The standalone stream. Conflation may skip updates of the changing resource, but an event must
//! not come twice.

use std::time::Duration;

use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout_at};

use super::chance::{Chance, Pause};
use super::session::Session;
use crate::connection::{Event, Reply};
use crate::failure::Failure;
use crate::mcp::answer::Message;
use crate::mcp::client::Client;
use crate::mcp::tools::subscribe;
use crate::mcp::violation::{Finding, Violation};

const LISTEN_TIMEOUT: Duration = Duration::from_secs(30);

pub(super) struct Standalone {
    reader: JoinHandle<()>,
}

impl Drop for Standalone {
    fn drop(&mut self) {
        self.reader.abort();
    }
}

pub(super) async fn hold(
    session: &Session,
    client: &mut Client,
    chance: Chance,
) -> Result<Standalone, Failure> {
    subscribe(client).await?;
    let listener = Listener {
        session: session.clone(),
        chance,
        last_id: None,
    };
    Ok(Standalone {
        reader: tokio::spawn(listener.run()),
    })
}

struct Listener {
    session: Session,
    chance: Chance,
    last_id: Option<String>,
}

impl Listener {
    async fn run(mut self) {
        loop {
            let deadline = Instant::now() + LISTEN_TIMEOUT;
            let listening =
                self.session
                    .listen(self.last_id.as_deref(), &mut self.chance, deadline);
            match listening.await {
                Ok(reply) => {
                    self.session.tally.count(|counts| counts.listens += 1);
                    self.read(reply).await;
                }
                Err(failure) => {
                    let detail = format!("standalone after {:?}: {failure}", self.last_id);
                    return self.find(Violation::RefusedResume, detail);
                }
            }
            let pause = match self.chance.pause() {
                Pause::For(time) => time,
                // The standalone stream has no end to wait for.
                Pause::PastTheEnd => self.chance.listening_time(),
            };
            tokio::time::sleep(pause).await;
        }
    }

    async fn read(&mut self, mut reply: Reply) {
        let until = Instant::now() + self.chance.listening_time();
        while let Ok(Ok(Some(event))) = timeout_at(until, reply.next()).await {
            self.take(event);
        }
        if let Some(time) = self.chance.half_open() {
            tokio::spawn(async move {
                tokio::time::sleep(time).await;
                drop(reply);
            });
        }
    }

    fn take(&mut self, event: Event) {
        if !self.session.note(&event) {
            let id = event.id.as_deref().unwrap_or_default();
            self.find(Violation::RepeatedId, format!("standalone event id {id}"));
        }
        if event.id.is_some() {
            self.last_id = event.id;
        }
        if event.data.is_empty() {
            return;
        }
        match Message::parse(&event.data) {
            Ok(message) => match message.method.as_deref() {
                Some("notifications/resources/updated") => {
                    self.session.tally.count(|counts| counts.updates += 1);
                }
                Some("notifications/progress") => {
                    self.find(Violation::Stray, "progress on the standalone stream");
                }
                Some(_) => {}
                None => self.find(Violation::Stray, "a response on the standalone stream"),
            },
            Err(failure) => self.find(Violation::Stray, failure.to_string()),
        }
    }

    fn find(&self, violation: Violation, detail: impl Into<String>) {
        let finding = Finding::new(violation, detail);
        self.session.tally.found(self.session.client, [finding]);
    }
}
