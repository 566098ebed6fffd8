//! Two principals on one server: one attacks, and the other must not notice.
//!
//! During an attack every call of the honest principal must succeed, and no process may exceed its
//! configured memory. With `EXHAUSTION_SECONDS=30` an attack takes 30 s, and the honest principal's
//! 99th percentile must stay within three times its value without an attack. This needs an
//! otherwise idle machine:
//!
//! `EXHAUSTION_SECONDS=30 cargo test --release -p shoal-testkit --test exhaustion -- --nocapture --test-threads 1`
#![expect(clippy::unwrap_used, reason = "a failed test is the report")]
#![expect(clippy::print_stdout, reason = "what was measured is the result")]

mod callers;
mod health;
mod honest;
mod hostile;
mod server;

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::JoinHandle;
use std::time::Duration;

use tokio::runtime::Builder;
use tokio::sync::{Mutex, oneshot};
use tokio::time::{sleep, timeout};

use self::callers::{Auth, Callers};
use self::honest::Honest;
use self::hostile::Hostile;
use self::server::{Form, Server};

/// Concurrent tests would compete for the CPU.
static ALONE: Mutex<()> = Mutex::const_new(());
const SLOWER: u32 = 3;

#[expect(clippy::disallowed_methods, reason = "tests have no configuration")]
fn long() -> Option<Duration> {
    let seconds = std::env::var("EXHAUSTION_SECONDS").ok()?;
    Some(Duration::from_secs(seconds.parse().unwrap()))
}

async fn survives<F, A>((form, auth): (Form, Auth), name: &str, attack: A)
where
    A: FnOnce(Hostile) -> F + Send + 'static,
    F: Future<Output = ()>,
{
    let _alone = ALONE.lock().await;
    let time = long().unwrap_or(Duration::from_millis(1500));
    let callers = Callers::of(auth).await;
    let server = Server::start(form, &callers).await;
    let honest = Honest::new(server.url(), &callers.honest);
    honest.ready().await;
    let alone = honest.work(time / 3).await;
    let idle = server.memory().await;
    let hostile = Hostile::new(server.url(), &callers.hostile);
    let stopped = Arc::clone(&hostile.stopped);
    let attacking = Attack::begin(attack, hostile);
    if auth != Auth::Tokens {
        let reached = async {
            while stopped.load(Ordering::Relaxed) == 0 {
                sleep(Duration::from_millis(10)).await;
            }
        };
        let reached = timeout(Duration::from_secs(60), reached).await;
        assert!(reached.is_ok(), "{name}: its bound was not reached");
    }
    let beside = honest.work(time).await;
    attacking.end().await;
    let after = timeout(Duration::from_secs(60), honest.work(time / 3))
        .await
        .unwrap();
    println!(
        "{form:?} {name}: {} calls, p99 alone {:?}, beside {:?}, after {:?}",
        alone.calls + beside.calls + after.calls,
        alone.p99,
        beside.p99,
        after.p99,
    );
    for (idle, most) in idle.iter().zip(server.most_memory().await) {
        let bound = idle.bytes + server.bound();
        println!(
            "  {}: at most {} MiB of {} MiB ({} MiB idle)",
            most.process,
            most.bytes >> 20,
            bound >> 20,
            idle.bytes >> 20,
        );
        assert!(
            most.bytes <= bound,
            "{name}: {most:?}, {bound} bytes are the bound"
        );
    }
    for (when, worked) in [("alone", &alone), ("beside", &beside), ("after", &after)] {
        assert!(worked.calls > 0, "{name}, {when}: no call was made");
        assert!(
            worked.failed.is_empty(),
            "{name}, {when}: {:#?}",
            worked.failed
        );
    }
    if long().is_some() {
        assert!(beside.p99 <= alone.p99 * SLOWER, "{name}: it was noticed");
    }
}

/// The attack has its own thread, so that running it does not slow the honest principal down.
struct Attack {
    stop: oneshot::Sender<()>,
    thread: JoinHandle<()>,
}

impl Attack {
    fn begin<F, A>(attack: A, hostile: Hostile) -> Self
    where
        A: FnOnce(Hostile) -> F + Send + 'static,
        F: Future<Output = ()>,
    {
        let (stop, stopped) = oneshot::channel();
        let thread = std::thread::spawn(move || {
            let runtime = Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async {
                tokio::select! {
                    () = attack(hostile) => {}
                    _ = stopped => {}
                }
            });
        });
        Self { stop, thread }
    }

    async fn end(self) {
        drop(self.stop);
        let joined = tokio::task::spawn_blocking(|| self.thread.join());
        joined.await.unwrap().unwrap();
    }
}

macro_rules! survives {
    ($($name:ident: $attack:ident by $auth:ident,)*) => {
        mod one_process {
            $(survives!(OneProcess, $auth, $name, $attack);)*
        }
        mod cluster {
            $(survives!(Cluster, $auth, $name, $attack);)*
        }
    };
    ($form:ident, $auth:ident, $name:ident, $attack:ident) => {
        #[tokio::test(flavor = "multi_thread")]
        async fn $name() {
            let attack = |hostile: crate::Hostile| async move { hostile.$attack().await };
            let setting = (crate::Form::$form, crate::Auth::$auth);
            crate::survives(setting, stringify!($name), attack).await;
        }
    };
}

survives! {
    schema_bombs: schema_bombs by Tokens,
    pattern_bombs: pattern_bombs by Tokens,
    unanswered_questions: unanswered_questions by Tokens,
    unanswered_questions_of_processes: unanswered_processes by Tokens,
    sessions_that_keep_processes: idle_processes by Tokens,
    calls_that_end_their_process: crashes by Tokens,
    long_strings: long_strings by Tokens,
    sessions_that_store_what_they_may: stored_bytes by Tokens,
    answers_that_nobody_reads: unread_answers by Tokens,
    streams_that_nobody_reads: unread_streams by Tokens,
    requests_that_never_end: request_permits by Tokens,
    bodies_that_never_come: body_bytes by Tokens,
    proofs_without_end: proofs by Dpop,
    tokens_that_nobody_issued: invented_tokens by Introspection,
}
