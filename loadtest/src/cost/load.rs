use std::time::{Duration, Instant};

use anyhow::Context;
use futures::future::try_join_all;
use futures::{StreamExt as _, TryStreamExt as _, stream};

use crate::connection::{Connection, Goodbye, Reply};
use crate::failure::Failure;
use crate::mcp::Mode;
use crate::mcp::client::Client;
use crate::mcp::job::Job;
use crate::target::Target;

const AT_ONCE: usize = 32;
const CALLERS: usize = 64;
const STEPS: usize = 10;

pub(super) async fn open(url: &str, sessions: usize) -> anyhow::Result<Vec<Client>> {
    let target = Target::resolve(url).await?;
    let opening = (0..sessions).map(|_| Client::open(&target, Mode::Legacy, Goodbye::Finish));
    let opened = stream::iter(opening).buffer_unordered(AT_ONCE);
    let opened: Result<_, Failure> = opened.try_collect().await;
    opened.context("could not open a session")
}

pub(super) async fn listen(url: &str, clients: &[Client]) -> anyhow::Result<Vec<Reply>> {
    let target = Target::resolve(url).await?;
    let opening = clients.iter().filter_map(Client::session).map(|session| {
        let request = session.listen(None);
        async {
            let connection = Connection::open(&target, Goodbye::Finish).await?;
            connection.send(request).await
        }
    });
    let opening: Vec<_> = opening.collect();
    let opened = stream::iter(opening).buffer_unordered(AT_ONCE);
    let opened: Result<_, Failure> = opened.try_collect().await;
    opened.context("could not open a stream")
}

pub(super) async fn progress(url: &str, time: Duration) -> anyhow::Result<(f64, f64)> {
    let clients = open(url, CALLERS).await?;
    let until = Instant::now() + time;
    let calling = clients.into_iter().map(|mut client| async move {
        let mut calls = 0;
        while Instant::now() < until {
            Job::burst(STEPS).call(&mut client).await?;
            calls += 1;
        }
        Ok::<usize, Failure>(calls)
    });
    let calls: usize = try_join_all(calling).await?.into_iter().sum();
    Ok((calls as f64, (calls * STEPS) as f64))
}
