use std::time::Duration;

use super::result::Measured;
use super::server::Server;
use crate::cli;
use crate::outcome::Outcome;
use crate::scenario::Finished as _;
use crate::times;

/// Bare axum's memory per stream with hyper's default buffers. A higher measured floor replaces
/// this limit.
const EDGE_KIB: f64 = 18.6;
const EDGE_AIM_KIB: f64 = 12.0;
const SESSION_KIB: f64 = 1.5;
const REDIS_KIB: f64 = 1.0;
/// Up to this much, a stream counts as costing nothing.
const NOTHING_KIB: f64 = 0.1;
/// With fewer streams, the allocator's pages dominate.
const ENOUGH: usize = 2_000;
const CROWD: usize = 20_000;
const CROWD_HOLD: Duration = Duration::from_secs(300);

pub(super) fn write(
    measured: &Measured,
    outcome: &mut Outcome,
    arguments: &cli::Idle,
    server: &Server,
) {
    for kind in server.kinds().into_iter().filter(|_| measured.open > 0) {
        let kib = measured.kib_per_stream(server, kind);
        let floor = measured.floor_kib;
        let edge = floor.map_or(EDGE_KIB, |floor| floor.max(EDGE_KIB));
        let (most, of_what) = match kind {
            "session" => (SESSION_KIB, "a session node"),
            "worker" | "redis" => continue,
            "edge" => (edge, "an edge"),
            _ => (edge + SESSION_KIB, "an edge and a session node together"),
        };
        let floor = floor.map_or(String::new(), |floor| format!(", floor {floor:.1} KiB"));
        let aim = match kind {
            "edge" => format!(", aim {EDGE_AIM_KIB:.0} KiB"),
            _ => String::new(),
        };
        let what =
            format!("{kind} {kib:.2} KiB a stream: {of_what} at most {most:.1} KiB{floor}{aim}");
        outcome.verdict(what, (measured.open >= ENOUGH).then_some(kib <= most));
    }
    write_bare(measured, outcome, server);
    write_crowd(measured, outcome, arguments);
}

fn write_bare(measured: &Measured, outcome: &mut Outcome, server: &Server) {
    let Some(bare) = &measured.bare else {
        return;
    };
    let enough = bare.open >= ENOUGH;
    for kind in server.kinds().into_iter().filter(|kind| *kind == "session") {
        let grown = bare.after.grown_kib(&bare.before, kind, &server.processes);
        let kib = grown / bare.open.max(1) as f64;
        let what = format!("{kind} {kib:.2} KiB a session without a stream: nothing");
        outcome.verdict(what, enough.then_some(kib <= NOTHING_KIB));
    }
    if let Some(kib) = bare.redis_kib() {
        let what =
            format!("redis {kib:.2} KiB a session without a stream: at most {REDIS_KIB:.0} KiB");
        outcome.verdict(what, enough.then_some(kib <= REDIS_KIB));
    }
}

fn write_crowd(measured: &Measured, outcome: &mut Outcome, arguments: &cli::Idle) {
    if arguments.streams == 0 {
        return;
    }
    let large = measured.open >= CROWD && arguments.hold >= CROWD_HOLD && arguments.rate > 0;
    let p99 = measured.calls.as_ref().map_or(String::new(), |calls| {
        format!(" (p99 {:.1} ms)", times::quantile_ms(&calls.latency, 0.99))
    });
    let held = match outcome.is_correct() {
        false => Some(false),
        true => large.then_some(true),
    };
    let what = format!(
        "{} streams for {} s beside {} calls a second{p99}: no drop (the bar is for {CROWD} streams and {} s)",
        measured.open,
        arguments.hold.as_secs(),
        arguments.rate,
        CROWD_HOLD.as_secs(),
    );
    outcome.verdict(what, held);
}
