use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::json;
use shoal_rpc::proto::types::v1::CallFailure;
use shoal_rpc::proto::types::v1::call_failure::Failure;
use shoal_rpc::proto::types::v1::call_outcome::Outcome;
use shoal_rpc::proto::worker::v1::EndSession;
use shoal_rpc::proto::worker::v1::node_frame::Frame as Said;
use shoal_rpc::proto::worker::v1::worker_frame::Frame;
use tokio::time::timeout;

use crate::worker_check::call_reader::CallReader;
use crate::worker_check::check_failure::{CheckFailure, CheckResult, expect, failed};
use crate::worker_check::link::ProbeLink;
use crate::worker_check::listener::WorkerListener;

pub(super) async fn cancel(listener: &mut WorkerListener) -> CheckResult {
    let mut link = listener.link().await?;
    let call = link.job(200, 50);
    let mut flight = link.start(&call).await?;
    link.event(&mut flight, "progress").await?;
    link.cancel(&flight).await?;
    cancelled(&mut link, &mut flight).await
}

pub(super) async fn deadline(listener: &mut WorkerListener) -> CheckResult {
    let mut link = listener.link().await?;
    let mut call = link.job(200, 50);
    call.timeout_ms = 200;
    let mut flight = link.start(&call).await?;
    match link.outcome(&mut flight).await? {
        Outcome::Failure(CallFailure {
            failure: Some(Failure::DeadlineExceeded(_)),
        }) => Ok(()),
        other => failed("deadline_exceeded", format!("{other:?}")),
    }
}

pub(super) async fn end_session(listener: &mut WorkerListener) -> CheckResult {
    let mut link = listener.link().await?;
    let call = link.job(200, 50);
    let session = (call.caller.as_ref()).and_then(|caller| caller.session.clone());
    let session = session.unwrap_or_default();
    let mut flight = link.start(&call).await?;
    link.event(&mut flight, "progress").await?;
    link.say(Said::EndSession(EndSession { session })).await?;
    cancelled(&mut link, &mut flight).await?;
    let mut late = link.job(1, 0);
    late.caller = call.caller.clone();
    let mut flight = link.start(&late).await?;
    let expected = "cancelled for a call of a session that is over";
    match link.refusal(&mut flight, expected).await? {
        Failure::Cancelled(_) => Ok(()),
        other => failed(expected, format!("{other:?}")),
    }
}

pub(super) async fn deserted(listener: &mut WorkerListener) -> CheckResult {
    let mut link = listener.link().await?;
    let arguments = json!({ "steps": 2000, "interval_ms": 50 });
    let mut call = link.repeatable("long_job", arguments);
    call.timeout_ms = 100_000;
    let mut flight = link.start(&call).await?;
    link.event(&mut flight, "progress").await?;
    link.hang_up();
    let mut link = listener.link().await?;
    // No reader attaches. The load shows the end of the call.
    let ends = async {
        while link.load.is_none_or(|load| load.running > 0) {
            link.read("a load without the call that nobody reads")
                .await?;
        }
        Ok(())
    };
    match timeout(listener.long(), ends).await {
        Ok(ended) => ended,
        Err(_) => failed("an end of the call that nobody reads", "it goes on"),
    }
}

pub(super) async fn drain(listener: &mut WorkerListener) -> CheckResult {
    let pid = listener
        .process
        .as_ref()
        .and_then(tokio::process::Child::id);
    let Some(pid) = pid.and_then(|pid| i32::try_from(pid).ok()) else {
        let reason = "the worker was not started here; give its command after --";
        return Err(CheckFailure::Skipped(reason.to_owned()));
    };
    let mut link = listener.link().await?;
    let call = link.job(20, 50);
    let mut flight = link.start(&call).await?;
    link.event(&mut flight, "progress").await?;
    if let Err(error) = kill(Pid::from_raw(pid), Signal::SIGTERM) {
        return failed("a process that can be told to end", error);
    }
    link.announced(|said| said.draining).await?;
    let done = "done after 20 steps";
    let text = link.text(&mut flight).await?;
    expect(text == done, "the result of the call that ran", text)?;
    let is_goodbye = |frame: &Frame| matches!(frame, Frame::Goodbye(_));
    while !link.kept.iter().any(is_goodbye) {
        link.read("a goodbye").await?;
    }
    let mut again = link.start(&call).await?;
    let text = link.text(&mut again).await?;
    expect(text == done, "the same result for a repeated start", text)?;
    let late = link.call("echo", json!({ "text": "late" }));
    let mut late = link.start(&late).await?;
    let expected = "not_executed after the goodbye";
    match link.refusal(&mut late, expected).await? {
        Failure::NotExecuted(_) => {}
        other => return failed(expected, format!("{other:?}")),
    }
    link.close().await?;
    let long = listener.long();
    let Some(process) = &mut listener.process else {
        return Ok(());
    };
    let expected = "a process that ends with 0";
    match timeout(long, process.wait()).await {
        Ok(Ok(status)) => expect(status.success(), expected, status),
        Ok(Err(error)) => failed(expected, error),
        Err(_) => failed(expected, "it runs on"),
    }
}

pub(super) async fn cancelled(link: &mut ProbeLink, flight: &mut CallReader) -> CheckResult {
    match link.outcome(flight).await? {
        Outcome::Failure(CallFailure {
            failure: Some(Failure::Cancelled(_)),
        }) => Ok(()),
        other => failed("cancelled", format!("{other:?}")),
    }
}
