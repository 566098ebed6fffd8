use serde_json::json;
use shoal_rpc::proto::types::v1::Limits;
use shoal_rpc::proto::worker::v1::event::Kind;
use shoal_rpc::proto::worker::v1::worker_frame::Frame;

use crate::worker_check::call_reader::cost;
use crate::worker_check::check_failure::{CheckResult, expect};
use crate::worker_check::link::flight_of;
use crate::worker_check::listener::WorkerListener;

/// Longer than any message, and shorter than any frame.
const LONG: usize = 300_000;
/// Little more than the cost of one progress event.
const CREDIT: u64 = 500;

pub(super) async fn fragments(listener: &mut WorkerListener) -> CheckResult {
    let mut link = listener.link().await?;
    let text = "0123456789".repeat(LONG / 10);
    let mut flights = Vec::new();
    for _ in 0..3 {
        let call = link.call("echo", json!({ "text": text }));
        flights.push(link.start(&call).await?);
    }
    for flight in &mut flights {
        let echoed = link.text(flight).await?;
        let seen = format!("{} bytes that differ", echoed.len());
        expect(echoed == text, "the text that was sent", seen)?;
    }
    Ok(())
}

pub(super) async fn credit(listener: &mut WorkerListener) -> CheckResult {
    let limits = Limits {
        credit_bytes: CREDIT,
        ..Limits::default()
    };
    let mut link = listener.limited(limits).await?;
    link.grants = false;
    let call = link.job(12, 0);
    let mut flight = link.start(&call).await?;
    let mut credit = i64::try_from(CREDIT).unwrap_or(i64::MAX);
    loop {
        let event = link
            .event(&mut flight, "an event for which there is credit")
            .await?;
        credit = credit.saturating_sub_unsigned(cost(&event));
        if matches!(event.kind, Some(Kind::Finished(_))) {
            return Ok(());
        }
        if credit > 0 {
            continue;
        }
        // Another call must get its result, while the worker sends no event of this call.
        let other = link.call("echo", json!({ "text": "past" }));
        let mut other = link.start(&other).await?;
        let text = link.text(&mut other).await?;
        expect(text == "past", "another call's result", text)?;
        let of_it = |frame: &&Frame| flight_of(frame) == Some(flight.number);
        let more = link.kept.iter().find(of_it);
        let seen = format!("{more:?} with a credit of {credit}");
        expect(more.is_none(), "nothing of a flight without credit", seen)?;
        link.grant(&flight, CREDIT).await?;
        credit = credit.saturating_add_unsigned(CREDIT);
    }
}
