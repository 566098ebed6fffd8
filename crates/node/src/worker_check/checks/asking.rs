use serde_json::{Value, json};
use shoal_rpc::proto::types::v1::Call;
use shoal_rpc::proto::types::v1::call_outcome::Outcome;
use shoal_rpc::proto::worker::v1::event::{Kind, state};

use crate::worker_check::check_failure::{CheckResult, expect, failed};
use crate::worker_check::link::ProbeLink;
use crate::worker_check::listener::WorkerListener;

fn booking(link: &ProbeLink) -> Call {
    link.call("book_table", json!({ "restaurant": "Fuji" }))
}

fn form() -> Value {
    json!({ "action": "accept", "content": { "guests": 2, "date": "2026-08-01" } })
}

pub(super) async fn question(listener: &mut WorkerListener) -> CheckResult {
    let mut link = listener.link().await?;
    let call = booking(&link);
    let mut flight = link.start(&call).await?;
    let ask = link.question(&mut flight).await?;
    let method = ask.method.as_str();
    expect(method == "elicitation/create", "elicitation/create", method)?;
    link.answer(&flight, ask.ask, &form()).await?;
    let taken = link.taken(&mut flight).await?;
    expect(
        taken.open,
        "an open question that was answered",
        format!("{taken:?}"),
    )?;
    let text = link.text(&mut flight).await?;
    expect(text.contains("booked Fuji for 2"), "a booking for 2", text)
}

pub(super) async fn question_again(listener: &mut WorkerListener) -> CheckResult {
    let mut link = listener.link().await?;
    let call = booking(&link);
    let mut flight = link.start(&call).await?;
    let first = link.question(&mut flight).await?;
    link.hang_up();
    let mut link = listener.link().await?;
    let mut flight = link.attach(&call, 0, 0).await?;
    let second = link.question(&mut flight).await?;
    expect(first == second, format!("{first:?}"), format!("{second:?}"))?;
    link.answer(&flight, first.ask, &form()).await?;
    let taken = link.taken(&mut flight).await?;
    expect(taken.open, "an answer that was taken", format!("{taken:?}"))?;
    let text = link.text(&mut flight).await?;
    expect(text.contains("booked Fuji for 2"), "a booking for 2", text)
}

pub(super) async fn undeclared(listener: &mut WorkerListener) -> CheckResult {
    let mut link = listener.link().await?;
    let mut call = booking(&link);
    if let Some(caller) = &mut call.caller {
        caller.capabilities = "{}".into();
    }
    let mut flight = link.start(&call).await?;
    loop {
        let expected = "an error, or a result with isError";
        match link.event(&mut flight, expected).await?.kind {
            Some(Kind::Ask(ask)) => return failed("no question", format!("{ask:?}")),
            Some(Kind::Finished(end)) => {
                return match end.outcome {
                    Some(Outcome::Error(_)) => Ok(()),
                    Some(Outcome::Result(result)) => {
                        let result: Value = serde_json::from_slice(&result).unwrap_or_default();
                        expect(result["isError"] == true, expected, result)
                    }
                    other => failed(expected, format!("{other:?}")),
                };
            }
            _ => {}
        }
    }
}

pub(super) async fn session_state(listener: &mut WorkerListener) -> CheckResult {
    let mut link = listener.link().await?;
    let call = link.call("remember", json!({ "key": "a", "value": "1" }));
    let mut flight = link.start(&call).await?;
    let (ask, wish) = link.wish(&mut flight).await?;
    let state::Request::Set(set) = &wish else {
        return failed("a set", format!("{wish:?}"));
    };
    let right = set.key == "a" && set.value.as_deref() == Some(b"\"1\"") && set.writing != 0;
    expect(
        right,
        "a set of a to \"1\" with a writing",
        format!("{set:?}"),
    )?;
    link.answer(&flight, ask, &json!({})).await?;
    link.taken(&mut flight).await?;
    link.text(&mut flight).await?;

    let call = link.call("recall", json!({ "key": "a" }));
    let mut flight = link.start(&call).await?;
    let (ask, wish) = link.wish(&mut flight).await?;
    let right = matches!(&wish, state::Request::Get(get) if get.key == "a");
    expect(right, "a get of a", format!("{wish:?}"))?;
    link.answer(&flight, ask, &json!({ "value": "1" })).await?;
    link.taken(&mut flight).await?;
    let text = link.text(&mut flight).await?;
    expect(text == "1", "the value", text)
}

pub(super) async fn session_state_again(listener: &mut WorkerListener) -> CheckResult {
    let mut link = listener.link().await?;
    let call = link.call("remember", json!({ "key": "a", "value": "1" }));
    let mut flight = link.start(&call).await?;
    let (ask, first) = link.wish(&mut flight).await?;
    link.hang_up();
    let mut link = listener.link().await?;
    // Attaches after the request's event. The worker must repeat the request, because the node that was lost may have
    // answered it.
    let mut again = link.attach(&call, flight.read, 0).await?;
    let (same, second) = link.wish(&mut again).await?;
    let right = ask == same && first == second;
    expect(right, format!("{first:?} again"), format!("{second:?}"))?;
    link.answer(&again, same, &json!({})).await?;
    link.taken(&mut again).await?;
    link.text(&mut again).await.map(drop)
}
