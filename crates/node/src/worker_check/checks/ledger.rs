use serde_json::json;
use shoal_rpc::proto::types::v1::call_failure::Failure;
use shoal_rpc::proto::types::v1::{Call, Ledger};
use shoal_rpc::proto::worker::v1::Acknowledge;
use shoal_rpc::proto::worker::v1::node_frame::Frame as Said;

use crate::worker_check::check_failure::{CheckFailure, CheckResult, expect, failed};
use crate::worker_check::link::ProbeLink;
use crate::worker_check::listener::WorkerListener;

pub(super) async fn ledger_number(listener: &mut WorkerListener) -> CheckResult {
    let mut link = listener.link().await?;
    if link.hello.ledger.is_none() {
        let seen = "none: it gets calls without a number, and its refusals are not final";
        return failed("a number of the ledger in the hello", seen);
    }
    while link.load.is_none_or(|load| load.ledger.is_none()) {
        link.read("a load with the ledger's number").await?;
    }
    Ok(())
}

pub(super) async fn same_call(listener: &mut WorkerListener) -> CheckResult {
    let mut link = listener.link().await?;
    let before = count(&mut link).await?;
    let call = counting(&link);
    let mut flights = [link.start(&call).await?, link.start(&call).await?];
    // The second start takes the call over. The worker may report this to the first reader.
    let first = link.text(&mut flights[1]).await?;
    let mut again = link.start(&call).await?;
    let second = link.text(&mut again).await?;
    expect(first == second, format!("{first} again"), second)?;
    let after = count(&mut link).await?;
    let expected = format!("{} after one call", before + 2);
    expect(after == before + 2, expected, after)
}

pub(super) async fn acknowledged(listener: &mut WorkerListener) -> CheckResult {
    let mut link = listener.link().await?;
    let call = counting(&link);
    let mut flight = link.start(&call).await?;
    let first: i64 = number(&link.text(&mut flight).await?)?;
    let calls = vec![call.id.clone()];
    link.say(Said::Acknowledge(Acknowledge { calls })).await?;
    link.ping().await?;
    let mut attached = link.attach(&call, 0, 0).await?;
    let expected = "outcome_unknown for a result that was let go";
    unknown(link.refusal(&mut attached, expected).await?, expected)?;
    let mut again = link.start(&call).await?;
    let expected = "outcome_unknown for a call that has run";
    unknown(link.refusal(&mut again, expected).await?, expected)?;
    let after = count(&mut link).await?;
    expect(after == first + 1, first + 1, after)
}

pub(super) async fn other_incarnation(listener: &mut WorkerListener) -> CheckResult {
    refused_as(listener, |ledger| Ledger {
        incarnation: ledger.incarnation.wrapping_add(1),
        ..ledger
    })
    .await
}

pub(super) async fn number_out_of_range(listener: &mut WorkerListener) -> CheckResult {
    refused_as(listener, |ledger| Ledger {
        number: ledger.number + 1_000_000,
        ..ledger
    })
    .await
}

pub(super) async fn attach_only(listener: &mut WorkerListener) -> CheckResult {
    let mut link = listener.link().await?;
    let before = count(&mut link).await?;
    let mut call = counting(&link);
    call.attach_only = true;
    for expected in [
        "cancelled for a call that is only attached to",
        "cancelled for its later start too",
    ] {
        let mut flight = link.start(&call).await?;
        match link.refusal(&mut flight, expected).await? {
            Failure::Cancelled(_) => {}
            other => return failed(expected, format!("{other:?}")),
        }
        call.attach_only = false;
    }
    let after = count(&mut link).await?;
    expect(after == before + 1, "a call that has not run", after)
}

async fn refused_as(
    listener: &mut WorkerListener,
    other: impl Fn(Ledger) -> Ledger,
) -> CheckResult {
    let mut link = listener.link().await?;
    let Some(ledger) = link.ledger() else {
        return Err(CheckFailure::Skipped(
            "the worker keeps no ledger number".to_owned(),
        ));
    };
    let before = count(&mut link).await?;
    let mut call = counting(&link);
    call.ledger = Some(other(ledger));
    let mut flight = link.start(&call).await?;
    let expected = "a refusal, outcome_unknown";
    unknown(link.refusal(&mut flight, expected).await?, expected)?;
    let after = count(&mut link).await?;
    expect(after == before + 1, "a call that has not run", after)
}

fn counting(link: &ProbeLink) -> Call {
    link.call("increment_counter", json!({}))
}

async fn count(link: &mut ProbeLink) -> CheckResult<i64> {
    let call = counting(link);
    let mut flight = link.start(&call).await?;
    number(&link.text(&mut flight).await?)
}

fn number(text: &str) -> CheckResult<i64> {
    match text.parse() {
        Ok(number) => Ok(number),
        Err(_) => failed("a count", text),
    }
}

fn unknown(failure: Failure, expected: &str) -> CheckResult {
    match failure {
        Failure::OutcomeUnknown(_) => Ok(()),
        other => failed(expected, format!("{other:?}")),
    }
}
