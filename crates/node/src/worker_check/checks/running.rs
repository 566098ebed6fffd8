use serde_json::{Value, json};
use shoal_rpc::proto::types::v1::LogLevel;
use shoal_rpc::proto::types::v1::call_outcome::Outcome;
use shoal_rpc::proto::worker::v1::Start;
use shoal_rpc::proto::worker::v1::event::{Kind, Notification};
use shoal_rpc::proto::worker::v1::node_frame::Frame as Said;
use shoal_rpc::proto::worker::v1::worker_frame::Frame;

use crate::worker_check::call_reader::CallReader;
use crate::worker_check::check_failure::{CheckResult, expect, failed};
use crate::worker_check::link::ProbeLink;
use crate::worker_check::listener::WorkerListener;

pub(super) async fn result(listener: &mut WorkerListener) -> CheckResult {
    let mut link = listener.link().await?;
    for call in [
        link.call("echo", json!({ "text": "héllo 🌊" })),
        link.repeatable("echo", json!({ "text": "héllo 🌊" })),
    ] {
        let mut flight = link.start(&call).await?;
        let text = link.text(&mut flight).await?;
        expect(text == "héllo 🌊", "the text that was sent", text)?;
    }
    Ok(())
}

pub(super) async fn batch(listener: &mut WorkerListener) -> CheckResult {
    let mut link = listener.link().await?;
    let (mut flights, mut starts) = (Vec::new(), Vec::new());
    for number in 0..20 {
        let call = link.call("echo", json!({ "text": number.to_string() }));
        let flight = link.open(0);
        starts.push(Said::Start(Box::new(Start {
            flight: flight.number,
            call: Some(call),
        })));
        flights.push(flight);
    }
    link.say_all(starts).await?;
    for (number, flight) in flights.iter_mut().enumerate() {
        let text = link.text(flight).await?;
        expect(text == number.to_string(), number, text)?;
    }
    Ok(())
}

pub(super) async fn unknown_tool(listener: &mut WorkerListener) -> CheckResult {
    let mut link = listener.link().await?;
    let call = link.call("no tool has this name", json!({}));
    error(&mut link, call, -32602).await
}

pub(super) async fn unknown_method(listener: &mut WorkerListener) -> CheckResult {
    let mut link = listener.link().await?;
    let mut call = link.call("echo", json!({}));
    call.method = "nobody/knows".to_owned();
    error(&mut link, call, -32601).await
}

async fn error(
    link: &mut ProbeLink,
    call: shoal_rpc::proto::types::v1::Call,
    code: i64,
) -> CheckResult {
    let mut flight = link.start(&call).await?;
    match link.outcome(&mut flight).await? {
        Outcome::Error(error) => expect(error.code == code, code, format!("{error:?}")),
        other => failed(format!("the error {code}"), format!("{other:?}")),
    }
}

pub(super) async fn tool_error(listener: &mut WorkerListener) -> CheckResult {
    let mut link = listener.link().await?;
    let call = link.call("fail", json!({ "message": "so be it" }));
    let mut flight = link.start(&call).await?;
    let result = link.result(&mut flight).await?;
    let says = result["content"][0]["text"].as_str();
    let fails = result["isError"] == true && says.is_some_and(|text| text.contains("so be it"));
    expect(fails, "isError with the message", &result)
}

pub(super) async fn progress(listener: &mut WorkerListener) -> CheckResult {
    let mut link = listener.link().await?;
    let call = link.job(3, 1);
    let mut flight = link.start(&call).await?;
    let heard = heard(&mut link, &mut flight).await?;
    let right = |(at, said): (usize, &Notification)| {
        let params = params(said);
        said.method == "notifications/progress"
            && params["progressToken"] == "check"
            && params["progress"].as_f64() == Some((at + 1) as f64)
    };
    let all = heard.len() == 3 && heard.iter().enumerate().all(right);
    expect(
        all,
        "three notifications/progress with the token, 1 to 3",
        format!("{heard:?}"),
    )
}

pub(super) async fn no_progress(listener: &mut WorkerListener) -> CheckResult {
    let mut link = listener.link().await?;
    let mut call = link.job(3, 1);
    call.progress_token = None;
    let bare = json!({ "name": "long_job", "arguments": { "steps": 3, "interval_ms": 1 } });
    call.params = Some(bare.to_string().into());
    let mut flight = link.start(&call).await?;
    let heard = heard(&mut link, &mut flight).await?;
    expect(heard.is_empty(), "no notification", format!("{heard:?}"))
}

pub(super) async fn log_level(listener: &mut WorkerListener) -> CheckResult {
    let mut link = listener.link().await?;
    for (wanted, count) in [
        (LogLevel::Warning, 1),
        (LogLevel::Error, 0),
        (LogLevel::Unspecified, 0),
    ] {
        let arguments = json!({ "level": "warning", "message": "it rains" });
        let mut call = link.call("write_log", arguments);
        call.log_level = wanted.into();
        let mut flight = link.start(&call).await?;
        let heard = heard(&mut link, &mut flight).await?;
        let right = heard.len() == count
            && (heard.iter()).all(|said| said.method == "notifications/message");
        let expected = format!("{count} notifications/message at level {wanted:?}");
        expect(right, expected, format!("{heard:?}"))?;
    }
    Ok(())
}

pub(super) async fn reader_name(listener: &mut WorkerListener) -> CheckResult {
    let mut link = listener.link().await?;
    let call = link.job(2, 20);
    let mut flight = link.start(&call).await?;
    let expected = "an accepted or an event with the reader's number";
    let first = link.said(&mut flight, expected).await?;
    let named = match &first {
        Frame::Accepted(said) => said.reader != 0,
        Frame::Event(said) => said.reader != 0,
        _ => false,
    };
    expect(named, expected, format!("{first:?}"))?;
    link.outcome(&mut flight).await.map(drop)
}

async fn heard(link: &mut ProbeLink, flight: &mut CallReader) -> CheckResult<Vec<Notification>> {
    let mut heard = Vec::new();
    loop {
        match link.event(flight, "the call's end").await?.kind {
            Some(Kind::Notification(said)) => heard.push(said),
            Some(Kind::Finished(_)) => return Ok(heard),
            _ => {}
        }
    }
}

fn params(said: &Notification) -> Value {
    let params = said.params.as_ref();
    let params = params.and_then(|text| serde_json::from_slice(text).ok());
    params.unwrap_or_default()
}
