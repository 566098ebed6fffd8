//! Measures Redis' time and commands for a journaled call's begin, event and end, by concurrent sessions.
//!
//! Starts its own `redis-server`. Without `--bench` it runs a few rounds.
#![allow(missing_docs, reason = "a program")]

#[allow(
    dead_code,
    clippy::unwrap_used,
    reason = "the tests use the rest, and fail where it does"
)]
#[path = "../tests/suite/server.rs"]
mod server;

use std::io::Write as _;
use std::time::Duration;

use bytes::Bytes;
use futures::future::join_all;
use shoal_ports::{
    Append, Begin, CallId, CallProgress, DeliveryId, Epoch, JournalEntry, NewSession, NodeId,
    Principal, SessionId, Store, StreamSettings, WorkerId,
};
use shoal_protocol::{EventId, RawJson, RequestId};
use shoal_store_redis::{RedisConfig, RedisStore};

use server::{IN_MEMORY, Server};

const SESSIONS: usize = 64;
const DEPTHS: [usize; 2] = [1, 16];
/// Short, so that Redis expires data as fast as the benchmark stores it.
const RETENTION: Duration = Duration::from_millis(200);
const ROUNDS: usize = 16;
const CALLS: usize = 25;
const LONG: Duration = Duration::from_secs(3600);

#[derive(Default)]
struct Spent {
    commands: f64,
    scripts_us: f64,
    cpu_us: f64,
}

impl Spent {
    fn add(&mut self, before: &Self, after: &Self) {
        self.commands += after.commands - before.commands;
        self.scripts_us += after.scripts_us - before.scripts_us;
        self.cpu_us += after.cpu_us - before.cpu_us;
    }

    async fn now(server: &Server) -> Self {
        let stats: String = server.ask(&["INFO", "commandstats"]).await;
        let cpu: String = server.ask(&["INFO", "cpu"]).await;
        let figure = |line: &str, name: &str| -> f64 {
            let (_, rest) = line.split_once(name).unwrap_or_default();
            rest.split(',')
                .next()
                .unwrap_or_default()
                .parse()
                .unwrap_or_default()
        };
        let asked = |line: &&str| line.starts_with("cmdstat_") && !line.starts_with("cmdstat_info");
        let lines = || stats.lines().filter(asked);
        let seconds = |name| {
            figure(
                cpu.lines()
                    .find(|line| line.starts_with(name))
                    .unwrap_or_default(),
                ":",
            )
        };
        Self {
            commands: lines().map(|line| figure(line, ":calls=")).sum(),
            scripts_us: lines()
                .filter(|line| line.starts_with("cmdstat_evalsha:"))
                .map(|line| figure(line, ",usec="))
                .sum(),
            cpu_us: 1e6 * (seconds("used_cpu_user:") + seconds("used_cpu_sys:")),
        }
    }
}

type Open = (CallId, EventId);

struct Session {
    store: Store,
    id: SessionId,
    epoch: Epoch,
    start: RawJson,
    answer: Bytes,
}

impl Session {
    async fn open(store: &Store) -> Self {
        let id = SessionId::random();
        let new = NewSession {
            session: id.clone(),
            principal: Principal::new("somebody"),
            owner: NodeId::new("a"),
            record: Bytes::from(vec![b'r'; 300]),
            idle: LONG,
        };
        let epoch = store.directory.create(new).await;
        let start = format!(r#"{{"arguments":"{}"}}"#, "a".repeat(300));
        Self {
            store: store.clone(),
            id,
            epoch: epoch.expect("it is new"),
            start: RawJson::parse_text(start.into()).expect("an object"),
            answer: Bytes::from(vec![b'x'; 200]),
        }
    }

    async fn begin(&self) -> Open {
        let call = CallId::generate();
        let begin = Begin {
            delivery: DeliveryId::generate(),
            stream: None,
            running: false,
            entries: vec![JournalEntry {
                call,
                request: RequestId::from_number(1),
                worker: Some(WorkerId::new("worker-1")),
                ledger: None,
                start: self.start.clone(),
            }],
        };
        let begun = self.store.journal.begin(&self.id, self.epoch, begin).await;
        (call, begun.expect("there is room").id())
    }

    async fn append(&self, call: CallId, after: EventId, ended: bool) -> EventId {
        let append = Append {
            after,
            events: vec![self.answer.clone()],
            progress: Some(CallProgress {
                call,
                seen: after.sequence + 1,
                ended,
            }),
        };
        let appended = self.store.log.append(&self.id, self.epoch, append).await;
        appended.expect("nobody else writes").last
    }

    async fn begin_some(&self, count: usize) -> Vec<Open> {
        let mut open = Vec::new();
        for _ in 0..count {
            open.push(self.begin().await);
        }
        open
    }

    async fn append_some(&self, open: &[Open], ended: bool) -> Vec<Open> {
        let mut logged = Vec::new();
        for (call, at) in open {
            logged.push((*call, self.append(*call, *at, ended).await));
        }
        logged
    }
}

async fn all<T, F: Future<Output = T>>(
    sessions: &[Session],
    depth: usize,
    step: impl Fn(usize) -> F,
) -> Vec<T> {
    let mut done = Vec::new();
    let numbers: Vec<usize> = (0..sessions.len()).collect();
    for together in numbers.chunks(depth) {
        done.extend(join_all(together.iter().map(|number| step(*number))).await);
    }
    done
}

fn tell(what: &str, depth: usize, count: usize, spent: &Spent) {
    let each = |all: f64| all / count as f64;
    let _ = writeln!(
        std::io::stdout(),
        "{what:<8} {depth:>8} {:>8.1} {:>10.1} {:>8.1}",
        each(spent.commands),
        each(spent.scripts_us),
        each(spent.cpu_us),
    );
}

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let measures = std::env::args().any(|arg| arg == "--bench");
    let (rounds, calls) = if measures { (ROUNDS, CALLS) } else { (1, 1) };
    let server = Server::on_socket(&IN_MEMORY).await;
    let config = RedisConfig {
        url: server.url(),
        streams: StreamSettings {
            retention: RETENTION.into(),
            ..StreamSettings::default()
        },
        ..RedisConfig::default()
    };
    let store = RedisStore::connect(config)
        .await
        .expect("it is there")
        .into_store();
    let sessions = join_all((0..SESSIONS).map(|_| Session::open(&store))).await;
    let _ = writeln!(
        std::io::stdout(),
        "{:<8} {:>8} {:>8} {:>10} {:>8}",
        "each",
        "at once",
        "commands",
        "scripts µs",
        "CPU µs"
    );
    for depth in DEPTHS {
        let mut spent = [Spent::default(), Spent::default(), Spent::default()];
        for round in 0..rounds {
            let before = Spent::now(&server).await;
            let step = |number: usize| sessions[number].begin_some(calls);
            let open = all(&sessions, depth, step).await;
            let begun = Spent::now(&server).await;
            let step = |number: usize| sessions[number].append_some(&open[number], false);
            let logged = all(&sessions, depth, step).await;
            let told = Spent::now(&server).await;
            let step = |number: usize| sessions[number].append_some(&logged[number], true);
            all(&sessions, depth, step).await;
            let ended = Spent::now(&server).await;
            if round >= rounds / 4 {
                spent[0].add(&before, &begun);
                spent[1].add(&begun, &told);
                spent[2].add(&told, &ended);
            }
        }
        let count = (rounds - rounds / 4) * calls * SESSIONS;
        for (what, spent) in ["begin", "event", "end"].into_iter().zip(&spent) {
            tell(what, depth, count, spent);
        }
    }
}
