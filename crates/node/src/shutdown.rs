//! The orderly end of a node: one visible list of steps, each with its deadline.
//!
//! Where other nodes share the store, sessions go to them at once, with the calls that run for them; then
//! clients are sent to other edges, with the streams that they can resume there, and only what cannot be
//! resumed is waited for. No client notices anything. With the embedded store nobody else can answer for this
//! node, so calls are let finish while their streams are still open, before anybody is sent away. What does not
//! finish is stopped, and answered, while its connection is there. Workers end before sessions, so that a call
//! that had to be stopped is written down as such.
//!
//! A connection of HTTP/1.1 that idles is closed last, and only after its client had time to come with another
//! request: closing it may break one that is on its way.

mod single_streams;

use std::time::Duration;

use futures::future::{self, join_all};
use tokio::time::{Instant, sleep, sleep_until, timeout};

use crate::config::Shutdown;
use crate::http::HttpServer;
use crate::node::{Node, Watch};
use single_streams::end_single_streams;

/// How often a step looks whether it is done.
const LOOK: Duration = Duration::from_millis(20);

/// How long a worker waits for calls that had their time already, before it names and stops them.
const LAST_CHANCE: Duration = Duration::from_millis(50);

/// The sockets of a node.
pub(crate) struct Sockets {
    /// None without the role.
    pub(crate) clients: Option<HttpServer>,
    pub(crate) operators: HttpServer,
}

/// Ends a node that serves on sockets.
pub(crate) async fn shut_down(node: Node, sockets: Sockets) {
    let deadlines = node.settings.shutdown.clone();

    // Nothing is changed any more.
    node.pools.stop(deadlines.workers.get()).await;

    step("stop being ready");
    node.watch.leave();
    announce_leaving(&node).await;

    step("wait for balancers to notice");
    sleep(deadlines.balancer_delay.get()).await;

    if let Some(clients) = &sockets.clients {
        step("send clients elsewhere with their next answer");
        clients.drain();
    }

    let is_shared = node.watch.shared_membership().is_some();
    let calls_end;
    if is_shared {
        hand_sessions_over(&node).await;

        step("tell streams when to come back");
        tell_streams(&node, deadlines.streams.get()).await;

        if let Some(clients) = &sockets.clients {
            step("wait for connections that idle");
            let idle = clients.let_idle_go(deadlines.connections.get()).await;
            tracing::debug!(idle, "waited for connections that idle");
        }

        step("let calls finish");
        calls_end = Instant::now() + deadlines.calls.get();
        let finished = future::join(
            finish_calls(&node.watch, &deadlines, calls_end),
            end_single_streams(&node, deadlines.calls.get()),
        );
        refusing_late_calls(&node.watch, &deadlines, finished).await;
    } else {
        step("let calls finish");
        calls_end = Instant::now() + deadlines.calls.get();
        let finished = finish_calls(&node.watch, &deadlines, calls_end);
        refusing_late_calls(&node.watch, &deadlines, finished).await;
        if Instant::now() >= calls_end {
            stop_calls(&node, deadlines.streams.get()).await;
        }

        step("tell streams when to come back");
        end_single_streams(&node, deadlines.streams.get()).await;
        tell_streams(&node, deadlines.streams.get()).await;
    }

    if let Some(clients) = sockets.clients {
        step("close connections");
        clients.begin_close();
        tokio::select! {
            () = clients.closed() => {}
            () = finish_last_calls(&node.watch, &deadlines, calls_end) => {
                match is_shared {
                    true => stop_calls_of_no_session(&node.watch, deadlines.streams.get()).await,
                    false => stop_calls(&node, deadlines.streams.get()).await,
                }
            }
        }
        let busy = clients.close(deadlines.streams.get()).await;
        if busy > 0 {
            tracing::warn!(
                connections = busy,
                "cutting connections that are still busy"
            );
        }
    }

    // Where Redis is, other edges go on.
    node.watch.quotas.close().await;
    end_parts(node).await;

    // Operators can watch to the end.
    sockets.operators.close(Duration::ZERO).await;
}

/// The other nodes place nothing new here.
async fn announce_leaving(node: &Node) {
    if let Some(membership) = node.watch.shared_membership() {
        let limit = node.settings.shutdown.sessions.get();
        if timeout(limit, membership.members.drain()).await.is_err() {
            tracing::warn!("could not tell the other nodes in time");
        }
    }
}

/// Where other nodes can take the sessions, they need not wait for anything.
async fn hand_sessions_over(node: &Node) {
    let Some(membership) = node.watch.shared_membership() else {
        return;
    };
    if let Some(sessions) = &membership.sessions {
        step("hand sessions over");
        let limit = node.settings.shutdown.sessions.get();
        match timeout(limit, sessions.hand_over()).await {
            Ok(handed) => tracing::info!(
                sessions = handed.sessions,
                median_ms = millis(handed.median),
                longest_ms = millis(handed.longest),
                "handed over"
            ),
            Err(_) => {
                tracing::warn!("some sessions were not handed over in time; others claim them")
            }
        }
    }
}

/// Ends a node that has no sockets, or none any more.
pub(crate) async fn end_parts(node: Node) {
    let deadlines = &node.settings.shutdown;
    node.pools.stop(deadlines.workers.get()).await;

    if let Some(joins) = &node.joins {
        step("let the calls of other nodes finish");
        let deadline = Instant::now() + deadlines.calls.get();
        if !joins.leave(deadline).await {
            tracing::warn!(busy = ?node.watch.busy(), "giving up on calls of other nodes");
        }
    }

    step("end workers");
    end_workers(&node).await;

    let Some(membership) = &node.watch.membership else {
        return;
    };
    if let Some(sessions) = &membership.sessions {
        step("let sessions go");
        let stopped = timeout(deadlines.sessions.get(), sessions.stop()).await;
        if stopped.is_err() {
            tracing::warn!("some sessions were not written down in time");
        }
    }

    step("leave the cluster");
    let left = timeout(deadlines.sessions.get(), membership.members.leave()).await;
    if left.is_err() {
        tracing::warn!("the lease was not ended in time; it will lapse by itself");
    }
    if let Some(listener) = node.listener {
        listener.close().await;
    }
}

/// Waits for `finished`, and takes calls in the first half of the time that they have: most are short, and their clients do not
/// know of the drain. A later call might not end in time, so its client is told to go elsewhere.
async fn refusing_late_calls<T>(
    watch: &Watch,
    deadlines: &Shutdown,
    finished: impl Future<Output = T>,
) -> T {
    let second_half = async {
        sleep(deadlines.calls.get() / 2).await;
        step("take no more calls");
        watch.load.stop_calls();
        std::future::pending().await
    };
    tokio::select! {
        finished = finished => finished,
        never = second_half => never,
    }
}

/// Waits for calls that came while connections were being closed. They have the time of all calls, so that a call is never
/// stopped merely because it came last.
async fn finish_last_calls(watch: &Watch, deadlines: &Shutdown, deadline: Instant) {
    // Within this time, connections have read what had arrived.
    sleep_until(deadline.min(Instant::now() + deadlines.streams.get())).await;
    if Instant::now() < deadline {
        finish_calls(watch, deadlines, deadline).await;
    }
}

/// Waits for every call to be answered, and says now and then who is still busy.
async fn finish_calls(watch: &Watch, deadlines: &Shutdown, deadline: Instant) {
    let mut report = Instant::now() + deadlines.report_every.get();
    loop {
        let unanswered = watch.unanswered();
        if unanswered == 0 {
            return;
        }
        let now = Instant::now();
        if now >= deadline {
            let busy = watch.busy();
            tracing::warn!(
                requests = unanswered,
                ?busy,
                "giving up on calls that did not finish"
            );
            return;
        }
        if now >= report {
            report = now + deadlines.report_every.get();
            let left = deadline - now;
            let busy = watch.busy();
            tracing::info!(
                requests = unanswered,
                ?busy,
                ?left,
                "waiting for calls to finish"
            );
        }
        sleep(LOOK).await;
    }
}

/// With the embedded store: what has not finished by now is stopped by its worker, and answered while there is a connection.
async fn stop_calls(node: &Node, limit: Duration) {
    if node.watch.unanswered() == 0 {
        return;
    }
    step("stop calls that did not finish");
    end_workers(node).await;
    answered(&node.watch, limit).await;
}

/// Where other nodes share the store: calls of sessions go on there. Nobody else can answer one without a session.
async fn stop_calls_of_no_session(watch: &Watch, limit: Duration) {
    watch.load.end_waits();
    let stopped = watch.dispatch.stop_without_session();
    if stopped > 0 {
        tracing::warn!(calls = stopped, "stopping calls that did not end in time");
    }
    answered(watch, limit).await;
}

/// Waits until nobody waits for an answer any more; not for long.
async fn answered(watch: &Watch, limit: Duration) {
    let deadline = Instant::now() + limit;
    while watch.unanswered() > 0 && Instant::now() < deadline {
        sleep(LOOK).await;
    }
}

/// Workers that have ended already end at once.
async fn end_workers(node: &Node) {
    let workers = node.pools.workers();
    let ended = workers
        .iter()
        .map(|worker| worker.shutdown(Instant::now() + LAST_CHANCE));
    let ended = join_all(ended);
    let limit = node.settings.shutdown.workers.get();
    if timeout(limit, ended).await.is_err() {
        tracing::warn!("some workers did not end in time");
    }
}

async fn tell_streams(node: &Node, limit: Duration) {
    node.watch.drain.cancel();
    if let Some(membership) = &node.watch.membership
        && let Some(sessions) = &membership.sessions
    {
        sessions.drain_streams();
    }
    let deadline = Instant::now() + limit;
    let load = &node.watch.load;
    // Those that cannot be resumed have a step of their own.
    let told = || {
        load.open_streams()
            .saturating_sub(load.single_streams().count())
    };
    while told() > 0 {
        if Instant::now() >= deadline {
            let streams = told();
            tracing::warn!(streams, "some clients did not take the news in time");
            return;
        }
        sleep(LOOK).await;
    }
}

fn millis(time: Duration) -> f64 {
    time.as_secs_f64() * 1000.0
}

fn step(what: &str) {
    tracing::debug!("shutting down: {what}");
}
