//! Shuts a node down in steps, each with a deadline.
//!
//! If nodes share a store, the other nodes take over the sessions with their running calls at once. Clients then resume
//! their streams at other edges, and this node waits only for what cannot be resumed. With the embedded store, calls
//! finish before the streams end; Shoal stops overdue calls and answers them. Workers end before sessions, so that the
//! journal records stopped calls. Clients' connections close after the calls.

mod single_streams;

use std::time::Duration;

use futures::future::{self, join_all};
use tokio::time::{Instant, sleep, sleep_until, timeout};

use crate::config::Shutdown;
use crate::http::HttpServer;
use crate::node::{Node, NodeWatch};
use single_streams::end_single_streams;

const LOOK: Duration = Duration::from_millis(20);

/// How long a worker waits for calls that have exceeded the deadline.
const LAST_CHANCE: Duration = Duration::from_millis(50);

pub(crate) struct HttpServers {
    pub(crate) clients: Option<HttpServer>,
    pub(crate) operators: HttpServer,
}

pub(crate) async fn shut_down(node: Node, sockets: HttpServers) {
    let deadlines = node.settings.shutdown.clone();

    // Stopped first, so that reloads change no pools from here on.
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

    // With Redis, this edge returns the quota cells that it leased, because the other edges continue to count.
    node.watch.quotas.close().await;
    end_parts(node).await;

    // Closed last, so that operators can watch the shutdown.
    sockets.operators.close(2 * LAST_CHANCE).await;
}

async fn announce_leaving(node: &Node) {
    if let Some(membership) = node.watch.shared_membership() {
        let limit = node.settings.shutdown.sessions.get();
        if timeout(limit, membership.members.drain()).await.is_err() {
            tracing::warn!("could not tell the other nodes in time");
        }
    }
}

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

/// Accepts new calls in the first half of `shutdown.calls`, because most are short. Refuses calls in the second half,
/// so that their clients go to another node.
async fn refusing_late_calls<T>(
    watch: &NodeWatch,
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

/// The calls arrived while connections closed. They have the same deadline as all others.
async fn finish_last_calls(watch: &NodeWatch, deadlines: &Shutdown, deadline: Instant) {
    // After this pause, the node has read all requests that had arrived.
    sleep_until(deadline.min(Instant::now() + deadlines.streams.get())).await;
    if Instant::now() < deadline {
        finish_calls(watch, deadlines, deadline).await;
    }
}

async fn finish_calls(watch: &NodeWatch, deadlines: &Shutdown, deadline: Instant) {
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

/// With the embedded store: stops overdue calls while they can still be answered.
async fn stop_calls(node: &Node, limit: Duration) {
    if node.watch.unanswered() == 0 {
        return;
    }
    step("stop calls that did not finish");
    end_workers(node).await;
    answered(&node.watch, limit).await;
}

/// With a shared store: stops overdue calls outside of sessions. Other nodes continue the calls of sessions.
async fn stop_calls_of_no_session(watch: &NodeWatch, limit: Duration) {
    watch.load.end_waits();
    let stopped = watch.dispatch.stop_without_session();
    if stopped > 0 {
        tracing::warn!(calls = stopped, "stopping calls that did not end in time");
    }
    answered(watch, limit).await;
}

async fn answered(watch: &NodeWatch, limit: Duration) {
    let deadline = Instant::now() + limit;
    while watch.unanswered() > 0 && Instant::now() < deadline {
        sleep(LOOK).await;
    }
}

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
    // `end_single_streams` ends the streams that cannot be resumed, so only the others count here.
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
