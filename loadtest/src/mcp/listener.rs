use std::time::Duration;

use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};

use super::Mode;
use super::answer::Message;
use super::client::Client;
use super::tools::{COUNTER, acknowledged, subscribe};
use crate::connection::Reply;
use crate::failure::Failure;

const LOOK_EVERY: Duration = Duration::from_millis(20);

/// A stream that is held open, and counts updates.
pub(crate) struct Listener {
    /// The number of updates, and when the last came.
    heard: watch::Receiver<(u64, Instant)>,
    _reading: JoinSet<()>,
}

impl Listener {
    /// With `watches`, subscribes to the counter. `ended` gets the reason if the stream ends.
    pub(crate) async fn open(
        mut client: Client,
        watches: bool,
        ended: impl FnOnce(Failure) + Send + 'static,
    ) -> Result<Self, Failure> {
        let wanted = match watches {
            true => format!(r#"{{"resourceSubscriptions":["{COUNTER}"]}}"#),
            false => r#"{"toolsListChanged":true}"#.to_owned(),
        };
        if watches && client.mode() == Mode::Legacy {
            subscribe(&mut client).await?;
        }
        let mut reply = client.listen(&wanted).await?;
        if !reply.is_streamed() {
            return Err(Failure::Wrong("a listener got no event stream".to_owned()));
        }
        if client.mode() == Mode::Modern {
            acknowledged(&mut reply).await?;
        }
        // A stream of the modern era has only what was asked for.
        let only_updates = watches && client.mode() == Mode::Modern;
        let (told, heard) = watch::channel((0, Instant::now()));
        let mut reading = JoinSet::new();
        reading.spawn(async move {
            let _client = client;
            let closed = || Failure::Transport("the server ended it".to_owned());
            ended(
                read(reply, only_updates, &told)
                    .await
                    .err()
                    .unwrap_or_else(closed),
            );
        });
        Ok(Self {
            heard,
            _reading: reading,
        })
    }

    pub(crate) fn updates(&self) -> u64 {
        self.heard.borrow().0
    }

    pub(crate) fn last(&self) -> Instant {
        self.heard.borrow().1
    }
}

async fn read(
    mut reply: Reply,
    only_updates: bool,
    told: &watch::Sender<(u64, Instant)>,
) -> Result<(), Failure> {
    while let Some(event) = reply.next().await? {
        if event.data.is_empty() {
            continue;
        }
        match Message::parse(&event.data)?.method.as_deref() {
            Some("notifications/resources/updated") => {
                told.send_modify(|heard| *heard = (heard.0 + 1, Instant::now()));
            }
            Some(other) if !only_updates && other != "notifications/progress" => {}
            _ => {
                let what = format!("{} does not belong on a listener's stream", event.data);
                return Err(Failure::Wrong(what));
            }
        }
    }
    Ok(())
}

/// Returns how many listeners did not hear of a change since `began` in time.
pub(crate) async fn untold(listeners: &[Listener], began: Instant, within: Duration) -> usize {
    let until = Instant::now() + within;
    let untold = || listeners.iter().filter(|one| one.last() < began).count();
    while untold() > 0 && Instant::now() < until {
        sleep(LOOK_EVERY).await;
    }
    untold()
}
