use serde_json::json;
use shoal_rpc::proto::types::v1::call_failure::Failure;
use shoal_rpc::proto::worker::v1::Detach;
use shoal_rpc::proto::worker::v1::node_frame::Frame as Said;
use shoal_rpc::proto::worker::v1::worker_frame::Frame;

use crate::worker_check::call_reader::CallReader;
use crate::worker_check::check_failure::{CheckResult, expect, failed};
use crate::worker_check::link::{ProbeLink, kind};
use crate::worker_check::listener::WorkerListener;

fn done(steps: u32) -> String {
    format!("done after {steps} steps")
}

pub(super) async fn attach_unknown(listener: &mut WorkerListener) -> CheckResult {
    let mut link = listener.link().await?;
    let never = link.call("echo", json!({}));
    let mut flight = link.attach(&never, 0, 0).await?;
    let expected = "a refusal, outcome_unknown";
    match link.refusal(&mut flight, expected).await? {
        Failure::OutcomeUnknown(_) => Ok(()),
        other => failed(expected, format!("{other:?}")),
    }
}

pub(super) async fn attach_after(listener: &mut WorkerListener) -> CheckResult {
    let mut link = listener.link().await?;
    let call = link.job(4, 1);
    let mut flight = link.start(&call).await?;
    link.outcome(&mut flight).await?;
    // `text` checks the numbers of the events that it reads.
    let mut late = link.attach(&call, 3, 0).await?;
    let text = link.text(&mut late).await?;
    expect(text == done(4), done(4), text)?;
    expect(late.read == flight.read, flight.read, late.read)
}

pub(super) async fn kept_result(listener: &mut WorkerListener) -> CheckResult {
    let mut link = listener.link().await?;
    let call = link.call("echo", json!({ "text": "kept" }));
    let mut flight = link.start(&call).await?;
    link.text(&mut flight).await?;
    link.hang_up();
    let mut link = listener.link().await?;
    let mut again = link.attach(&call, 0, 0).await?;
    let text = link.text(&mut again).await?;
    expect(text == "kept", "the result once more", text)
}

pub(super) async fn broken_link(listener: &mut WorkerListener) -> CheckResult {
    let mut link = listener.link().await?;
    let call = link.job(10, 30);
    let mut flight = link.start(&call).await?;
    link.event(&mut flight, "progress").await?;
    link.hang_up();
    let mut link = listener.link().await?;
    let mut again = link.attach(&call, flight.read, flight.reader).await?;
    let text = link.text(&mut again).await?;
    expect(text == done(10), done(10), text)
}

pub(super) async fn replaced(listener: &mut WorkerListener) -> CheckResult {
    let mut link = listener.link().await?;
    let call = link.job(20, 20);
    let mut first = link.start(&call).await?;
    link.event(&mut first, "progress").await?;
    let mut second = link.attach(&call, first.read, 0).await?;
    lost(&mut link, &mut first).await?;
    let text = link.text(&mut second).await?;
    expect(text == done(20), done(20), text)
}

pub(super) async fn replaced_reader_returns(listener: &mut WorkerListener) -> CheckResult {
    let mut link = listener.link().await?;
    let call = link.job(20, 20);
    let mut first = link.start(&call).await?;
    link.event(&mut first, "progress").await?;
    let mut second = link.attach(&call, first.read, 0).await?;
    link.event(&mut second, "progress").await?;
    let mut back = link.attach(&call, first.read, first.reader).await?;
    lost(&mut link, &mut back).await?;
    let text = link.text(&mut second).await?;
    expect(text == done(20), done(20), text)
}

/// Expects the worker to report the reader's replacement. Events may come first.
async fn lost(link: &mut ProbeLink, flight: &mut CallReader) -> CheckResult {
    let expected = "lost, replaced";
    loop {
        match link.said(flight, expected).await? {
            Frame::Lost(lost) => return expect(lost.replaced, expected, "lost, not replaced"),
            Frame::Event(_) | Frame::Accepted(_) => {}
            other => return failed(expected, kind(&other)),
        }
    }
}

pub(super) async fn detach(listener: &mut WorkerListener) -> CheckResult {
    let mut link = listener.link().await?;
    let call = link.job(200, 50);
    let mut flight = link.start(&call).await?;
    link.event(&mut flight, "progress").await?;
    let detach = Detach {
        flight: flight.number,
        steering: true,
    };
    link.say(Said::Detach(detach)).await?;
    link.cancel(&flight).await?;
    // No other reader has attached, so the cancellation is valid.
    let mut reader = link.attach(&call, flight.read, 0).await?;
    super::ending::cancelled(&mut link, &mut reader).await
}
