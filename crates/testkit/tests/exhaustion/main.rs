//! Two principals on one server: one does its worst, and the other does not notice.
//!
//! Each test is one way to use a server up. While it goes on, every call of the honest principal must succeed, and no process
//! may hold more than its configuration says. By default each takes a second or two. With `EXHAUSTION_SECONDS=30` each goes on
//! for so long, on a machine that has nothing else to do, and the honest principal's 99th percentile must stay within three
//! times of what it is alone:
//!
//! `EXHAUSTION_SECONDS=30 cargo test --release -p shoal-testkit --test exhaustion -- --nocapture --test-threads 1`
#![expect(clippy::unwrap_used, reason = "a failed test is the report")]
#![expect(clippy::print_stdout, reason = "what was measured is the result")]

mod honest;
mod hostile;
mod server;

use std::future::Future;
use std::time::Duration;

use tokio::sync::Mutex;
use tokio::time::timeout;

use self::honest::Honest;
use self::hostile::Hostile;
use self::server::Server;

/// One server at a time: several would take one another's time.
static ALONE: Mutex<()> = Mutex::const_new(());
/// How often the honest principal may be slower than alone, in the long form.
const SLOWER: u32 = 3;

fn long() -> Option<Duration> {
    let seconds = std::env::var("EXHAUSTION_SECONDS").ok()?;
    Some(Duration::from_secs(seconds.parse().unwrap()))
}

/// Goes on with `attack` while the honest principal works.
async fn survives<F, A>(name: &str, attack: A)
where
    A: Fn(Hostile) -> F,
    F: Future<Output = ()> + Send + 'static,
{
    let _alone = ALONE.lock().await;
    let time = long().unwrap_or(Duration::from_millis(1500));
    let server = Server::start().await;
    let honest = Honest::new(server.url());
    let alone = honest.work(time / 3).await;
    let idle = server.memory().await;
    let attacking = tokio::spawn(attack(Hostile::new(server.url())));
    let beside = honest.work(time).await;
    attacking.abort();
    let _ = attacking.await;
    let after = timeout(Duration::from_secs(60), honest.work(time / 3))
        .await
        .unwrap();
    let (most, bound) = (server.most_memory().await, idle + server.bound());
    println!(
        "{name}: {} calls, p99 alone {:?}, beside {:?}, after {:?}; at most {} MiB of {} MiB ({} MiB idle)",
        alone.calls + beside.calls + after.calls,
        alone.p99,
        beside.p99,
        after.p99,
        most >> 20,
        bound >> 20,
        idle >> 20,
    );
    for (when, worked) in [("alone", &alone), ("beside", &beside), ("after", &after)] {
        assert!(worked.calls > 0, "{name}, {when}: no call was made");
        assert!(worked.failed.is_empty(), "{name}, {when}: {:#?}", worked.failed);
    }
    assert!(most <= bound, "{name}: {most} bytes, {bound} are the bound");
    if long().is_some() {
        assert!(beside.p99 <= alone.p99 * SLOWER, "{name}: it was noticed");
    }
}

macro_rules! survives {
    ($($(#[$meta:meta])* $name:ident: $attack:ident,)*) => {$(
        $(#[$meta])*
        #[tokio::test(flavor = "multi_thread")]
        async fn $name() {
            survives(stringify!($name), |hostile| async move { hostile.$attack().await }).await;
        }
    )*};
}

survives! {
    #[ignore = "validation has no budget of steps yet"]
    schema_bombs: schema_bombs,
    #[ignore = "calls that ask keep their places yet"]
    unanswered_questions: unanswered_questions,
    long_strings: long_strings,
    sessions_that_store_what_they_may: stored_bytes,
    answers_that_nobody_reads: unread_answers,
    streams_that_nobody_reads: unread_streams,
    requests_that_never_end: request_permits,
    bodies_that_never_come: body_bytes,
}
