//! Prints the cost of a call over a worker link: `cargo run --release -p shoal-rpc --example hop
//! [calls] [at once]`.
//!
//! Both sides run in this process, so the CPU time covers the whole round trip.
#![allow(clippy::print_stdout, reason = "this is a program")]

#[path = "../benches/pair/mod.rs"]
mod pair;

use std::sync::Arc;
use std::time::{Duration, Instant};

use shoal_ports::{CallId, Worker};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let mut number = |default: usize| match arguments.next() {
        Some(text) => text.parse(),
        None => Ok(default),
    };
    let (calls, at_once) = (number(200_000)?, number(64)?);
    let pair = pair::pair().await?;
    let worker = &pair.worker;
    run(worker, calls / 10, at_once).await;
    let (began, cpu) = (Instant::now(), cpu_time());
    run(worker, calls, at_once).await;
    let per_call = |spent: Duration| spent.as_secs_f64() * 1e6 / calls as f64;
    println!(
        "{calls} calls, {at_once} at once: {:.2} µs of CPU and {:.2} µs of time a call",
        per_call(cpu_time().saturating_sub(cpu)),
        per_call(began.elapsed())
    );
    Ok(())
}

async fn run(worker: &Arc<dyn Worker>, calls: usize, at_once: usize) {
    let template = pair::call();
    let tasks = (0..at_once).map(|_| {
        let (worker, template) = (Arc::clone(worker), template.clone());
        tokio::spawn(async move {
            for _ in 0..calls / at_once {
                let mut call = template.clone();
                call.id = CallId::generate();
                call.deadline = tokio::time::Instant::now() + Duration::from_secs(60);
                if let Ok(mut running) = worker.start(call, None).await {
                    running.events.next().await;
                }
            }
        })
    });
    futures::future::join_all(tasks).await;
}

fn cpu_time() -> Duration {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields = stat.rsplit(')').next().unwrap_or_default();
    let ticks = fields.split_whitespace().skip(11).take(2);
    let ticks = ticks
        .filter_map(|field| field.parse::<u64>().ok())
        .sum::<u64>();
    Duration::from_millis(ticks * 10)
}
