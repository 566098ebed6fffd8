//! The orderly end of a node: one visible list of steps, each with its deadline.
//!
//! With the embedded store nobody else can answer for this node, so calls are let finish while their
//! streams are still open, before anybody is sent away; and workers end before sessions, so that a call
//! that had to be stopped is written down as such.

use std::time::Duration;

use futures::future::join_all;
use tokio::time::{Instant, sleep, timeout};

use crate::config::Shutdown;
use crate::http::HttpServer;
use crate::node::{Node, Watch};

/// How often a step looks whether it is done.
const LOOK: Duration = Duration::from_millis(20);

/// How long a worker waits for calls that had their time already, before it names and stops them.
const LAST_CHANCE: Duration = Duration::from_millis(50);

/// The sockets of a node.
pub(crate) struct Sockets {
    pub(crate) clients: HttpServer,
    pub(crate) operators: HttpServer,
}

/// Ends a node that serves on sockets.
pub(crate) async fn shut_down(node: Node, sockets: Sockets) {
    let began = Instant::now();
    let deadlines = node.settings.shutdown.clone();

    step("stop being ready");
    node.watch.leave();

    step("wait for balancers to notice");
    sleep(deadlines.balancer_delay.get()).await;

    step("let calls finish");
    finish_calls(&node.watch, &deadlines).await;

    step("tell streams when to come back");
    tell_streams(&node, deadlines.streams.get()).await;

    step("close connections");
    let busy = sockets.clients.close(deadlines.streams.get()).await;
    if busy > 0 {
        tracing::warn!(
            connections = busy,
            "cutting connections that are still busy"
        );
    }

    end_parts(node).await;

    // Operators can watch to the end.
    sockets.operators.close(Duration::ZERO).await;
    tracing::info!(took = ?began.elapsed(), "shut down");
}

/// Ends a node that has no sockets, or none any more.
pub(crate) async fn end_parts(node: Node) {
    let deadlines = &node.settings.shutdown;

    step("end workers");
    let ended = join_all(
        node.workers
            .iter()
            .map(|worker| worker.shutdown(Instant::now() + LAST_CHANCE)),
    );
    if timeout(deadlines.workers.get(), ended).await.is_err() {
        tracing::warn!("some workers did not end in time");
    }

    step("let sessions go");
    let stopped = timeout(deadlines.sessions.get(), node.sessions.stop()).await;
    if stopped.is_err() {
        tracing::warn!("some sessions were not written down in time");
    }

    step("end the lease");
    if timeout(deadlines.sessions.get(), node.lease.end())
        .await
        .is_err()
    {
        tracing::warn!("the lease was not ended in time; it will lapse by itself");
    }
}

/// Waits for every call to be answered, and says now and then who is still busy.
pub(crate) async fn finish_calls(watch: &Watch, deadlines: &Shutdown) {
    let deadline = Instant::now() + deadlines.calls.get();
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

async fn tell_streams(node: &Node, limit: Duration) {
    node.watch.drain.cancel();
    node.sessions.drain_streams();
    let deadline = Instant::now() + limit;
    while node.watch.load.open_streams() > 0 {
        if Instant::now() >= deadline {
            let streams = node.watch.load.open_streams();
            tracing::warn!(streams, "some clients did not take the news in time");
            return;
        }
        sleep(LOOK).await;
    }
}

fn step(what: &str) {
    tracing::info!("shutting down: {what}");
}
