use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use http::HeaderValue;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep};

use super::mix::Kind;
use super::session::Common;
use crate::connection::{Connection, Goodbye, Reply};
use crate::failure::Failure;
use crate::mcp::answer::Message;
use crate::mcp::client::Client;

const COUNTER: &str = "demo://counter";

const TOLD_WITHIN: Duration = Duration::from_secs(10);

pub(super) struct Listener {
    reader: JoinHandle<()>,
    updates: Arc<AtomicU64>,
    _client: Client,
}

impl Drop for Listener {
    fn drop(&mut self) {
        self.reader.abort();
    }
}

impl Listener {
    pub(super) async fn open(common: Arc<Common>, number: usize) -> Result<Self, Failure> {
        let mut client = common.open(number).await?.client;
        let watches = common.mix.kinds().any(|kind| kind == Kind::Update);
        let target = &common.targets[number % common.targets.len()];
        let opening = async {
            let Some(session) = client.session().cloned() else {
                return subscribe(&mut client, watches).await;
            };
            if watches {
                let params = format!(r#""uri":"{COUNTER}""#);
                client
                    .request("resources/subscribe", None, &params, |_| Ok(()))
                    .await?;
            }
            let connection = Connection::open(target, Goodbye::Finish).await?;
            connection.send(session.listen(None)).await
        };
        let reply = common.in_time(opening).await?;
        if !reply.is_streamed() {
            return Err(Failure::Wrong("a listener got no event stream".to_owned()));
        }
        let updates = Arc::new(AtomicU64::new(0));
        let counted = Arc::clone(&updates);
        let reader = tokio::spawn(async move {
            let ended = match read(reply, &counted).await {
                Ok(()) => Failure::Transport("the server ended it".to_owned()),
                Err(failure) => failure,
            };
            common.tally.failed("a listener's stream", &ended);
        });
        Ok(Self {
            reader,
            updates,
            _client: client,
        })
    }
}

async fn subscribe(client: &mut Client, watches: bool) -> Result<Reply, Failure> {
    let id = client.next_id();
    let wanted = if watches {
        format!(r#""notifications":{{"resourceSubscriptions":["{COUNTER}"]}}"#)
    } else {
        r#""notifications":{"toolsListChanged":true}"#.to_owned()
    };
    let name: Option<&HeaderValue> = None;
    let mut reply = client
        .start(id, "subscriptions/listen", name, &wanted)
        .await?;
    let first = reply
        .next()
        .await?
        .map(|event| event.data)
        .unwrap_or_default();
    let message = Message::parse(&first)?;
    if message.method.as_deref() != Some("notifications/subscriptions/acknowledged") {
        return Err(Failure::Wrong(format!(
            "a subscription was not acknowledged but told {first}"
        )));
    }
    Ok(reply)
}

async fn read(mut reply: Reply, updates: &AtomicU64) -> Result<(), Failure> {
    while let Some(event) = reply.next().await? {
        if event.data.is_empty() {
            continue;
        }
        let message = Message::parse(&event.data)?;
        match message.method.as_deref() {
            Some("notifications/resources/updated") => {
                updates.fetch_add(1, Ordering::Relaxed);
            }
            Some("notifications/progress") | None => {
                let what = format!("{} does not belong on a listener's stream", event.data);
                return Err(Failure::Wrong(what));
            }
            Some(_) => {}
        }
    }
    Ok(())
}

pub(super) async fn expect_updates(listeners: &[Listener], common: &Common) {
    let until = Instant::now() + TOLD_WITHIN;
    let untold = || {
        listeners
            .iter()
            .filter(|listener| listener.updates.load(Ordering::Relaxed) == 0)
            .count()
    };
    while untold() > 0 && Instant::now() < until {
        sleep(Duration::from_millis(50)).await;
    }
    for _ in 0..untold() {
        let what = "listener not told of a change".to_owned();
        common
            .tally
            .fault(what, format!("{COUNTER} changed, and nothing came"));
    }
}

pub(super) fn updates(listeners: &[Listener]) -> u64 {
    listeners
        .iter()
        .map(|listener| listener.updates.load(Ordering::Relaxed))
        .sum()
}
