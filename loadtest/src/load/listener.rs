use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep};

use crate::connection::{Connection, Goodbye, Reply};
use crate::engine::Shared;
use crate::engine::mix::Kind;
use crate::failure::Failure;
use crate::mcp::answer::Message;
use crate::mcp::client::Client;
use crate::mcp::tools::{self, COUNTER};

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
    pub(super) async fn open(shared: &Arc<Shared>, number: usize) -> Result<Self, Failure> {
        let mut client = shared.open(number).await?.client;
        let watches = shared.has(Kind::Update);
        let target = &shared.plan.targets[number % shared.plan.targets.len()];
        let opening = async {
            let Some(session) = client.session().cloned() else {
                return subscribe(&mut client, watches).await;
            };
            if watches {
                tools::subscribe(&mut client).await?;
            }
            let connection = Connection::open(target, Goodbye::Finish).await?;
            connection.send(session.listen(None)).await
        };
        let reply = shared.in_time(opening).await?;
        if !reply.is_streamed() {
            return Err(Failure::Wrong("a listener got no event stream".to_owned()));
        }
        let updates = Arc::new(AtomicU64::new(0));
        let (counted, shared) = (Arc::clone(&updates), Arc::clone(shared));
        let reader = tokio::spawn(async move {
            let ended = match read(reply, &counted).await {
                Ok(()) => Failure::Transport("the server ended it".to_owned()),
                Err(failure) => failure,
            };
            shared.tally.failed("a listener's stream", &ended);
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
    let mut reply = client
        .start(id, "subscriptions/listen", None, &wanted)
        .await?;
    tools::acknowledged(&mut reply).await?;
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

/// Makes a last change, of which all listeners must be told. The mix may have made none.
pub(super) async fn expect_updates(listeners: &[Listener], shared: &Shared, number: usize) {
    let seen = |listener: &Listener| listener.updates.load(Ordering::Relaxed);
    let before: Vec<u64> = listeners.iter().map(seen).collect();
    let change = async {
        let mut client = shared.open(number).await?.client;
        shared.in_time(tools::increment(&mut client)).await
    };
    if let Err(failure) = change.await {
        return shared.tally.failed("the last change", &failure);
    }
    let until = Instant::now() + TOLD_WITHIN;
    let untold = || {
        let all = listeners.iter().zip(&before);
        all.filter(|(listener, before)| seen(listener) == **before)
            .count()
    };
    while untold() > 0 && Instant::now() < until {
        sleep(Duration::from_millis(50)).await;
    }
    for _ in 0..untold() {
        let (what, example) = ("listener not told of a change", "changed, and nothing came");
        let findings = &shared.tally.findings;
        findings.add(what, format_args!("{COUNTER} {example}"));
    }
}

pub(super) fn updates(listeners: &[Listener]) -> u64 {
    listeners
        .iter()
        .map(|listener| listener.updates.load(Ordering::Relaxed))
        .sum()
}
