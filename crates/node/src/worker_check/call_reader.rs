use serde_json::Value;
use shoal_rpc::proto::types::v1::call_failure::Failure;
use shoal_rpc::proto::types::v1::call_outcome::Outcome;
use shoal_rpc::proto::types::v1::{Call, CallFailure, CallOutcome, Credit, outcome};
use shoal_rpc::proto::worker::v1::event::{Ask, Kind, State, state};
use shoal_rpc::proto::worker::v1::node_frame::Frame as Said;
use shoal_rpc::proto::worker::v1::worker_frame::Frame;
use shoal_rpc::proto::worker::v1::{Answer, AnswerTaken, Attach, Cancel, Event, Start};

use super::check_failure::{CheckResult, expect, failed};
use super::link::{ProbeLink, flight_of, kind};

/// Bytes of credit that each event costs besides its payload.
const WEIGHT: u64 = 256;

pub(super) struct CallReader {
    pub(super) number: u64,
    pub(super) read: u64,
    pub(super) reader: u64,
}

impl ProbeLink {
    pub(super) async fn start(&mut self, call: &Call) -> CheckResult<CallReader> {
        let flight = self.open(0);
        let call = Some(call.clone());
        let start = Start {
            flight: flight.number,
            call,
        };
        self.say(Said::Start(Box::new(start))).await?;
        Ok(flight)
    }

    /// Reads as the reader `reader` or, if that is 0, as a new one.
    pub(super) async fn attach(
        &mut self,
        call: &Call,
        after: u64,
        reader: u64,
    ) -> CheckResult<CallReader> {
        let flight = self.open(after);
        let attach = Attach {
            flight: flight.number,
            call: call.id.clone(),
            after,
            reader,
            trace: None,
            epoch: None,
        };
        self.say(Said::Attach(attach)).await?;
        Ok(flight)
    }

    /// Adds a reader. A flight is one reading of a call over this link.
    pub(super) fn open(&mut self, read: u64) -> CallReader {
        self.flights += 1;
        CallReader {
            number: self.flights,
            read,
            reader: 0,
        }
    }

    pub(super) async fn said(
        &mut self,
        flight: &mut CallReader,
        expected: &str,
    ) -> CheckResult<Frame> {
        let is_it = |frame: &Frame| flight_of(frame) == Some(flight.number);
        let frame = loop {
            let at = self.kept.iter().position(is_it);
            if let Some(frame) = at.and_then(|at| self.kept.remove(at)) {
                break frame;
            }
            self.read(expected).await?;
        };
        match &frame {
            Frame::Accepted(said) => flight.reader = said.reader,
            Frame::Event(event) => {
                let numbered = event.sequence == flight.read + 1;
                let seen = format!("event {} after {}", event.sequence, flight.read);
                expect(numbered, "events numbered without gaps", seen)?;
                flight.read = event.sequence;
                if flight.reader == 0 {
                    flight.reader = event.reader;
                }
                if self.grants {
                    self.grant(flight, cost(event)).await?;
                }
            }
            _ => {}
        }
        Ok(frame)
    }

    pub(super) async fn grant(&self, flight: &CallReader, bytes: u64) -> CheckResult {
        let flight = flight.number;
        self.say(Said::Credit(Credit { flight, bytes })).await
    }

    pub(super) async fn event(
        &mut self,
        flight: &mut CallReader,
        expected: &str,
    ) -> CheckResult<Event> {
        loop {
            match self.said(flight, expected).await? {
                Frame::Event(event) => return Ok(event),
                Frame::Accepted(_) | Frame::AnswerTaken(_) => {}
                other => return failed(expected, kind(&other)),
            }
        }
    }

    pub(super) async fn outcome(&mut self, flight: &mut CallReader) -> CheckResult<Outcome> {
        loop {
            let event = self.event(flight, "the call's end").await?;
            if let Some(Kind::Finished(CallOutcome { outcome })) = event.kind {
                return match outcome {
                    Some(outcome) => Ok(outcome),
                    None => failed("an outcome", "an end without one"),
                };
            }
        }
    }

    pub(super) async fn result(&mut self, flight: &mut CallReader) -> CheckResult<Value> {
        match self.outcome(flight).await? {
            Outcome::Result(result) => match serde_json::from_slice(&result) {
                Ok(result) => Ok(result),
                Err(error) => failed("a result that is JSON", error),
            },
            other => failed("a result", format!("{other:?}")),
        }
    }

    pub(super) async fn text(&mut self, flight: &mut CallReader) -> CheckResult<String> {
        let result = self.result(flight).await?;
        match result["content"][0]["text"].as_str() {
            Some(text) => Ok(text.to_owned()),
            None => failed("a result whose first content is a text", result),
        }
    }

    pub(super) async fn refusal(
        &mut self,
        flight: &mut CallReader,
        expected: &str,
    ) -> CheckResult<Failure> {
        match self.said(flight, expected).await? {
            Frame::Refused(refused) => match refused.failure {
                Some(CallFailure {
                    failure: Some(failure),
                }) => Ok(failure),
                _ => failed(expected, "a refusal without a reason"),
            },
            other => failed(expected, kind(&other)),
        }
    }

    pub(super) async fn question(&mut self, flight: &mut CallReader) -> CheckResult<Ask> {
        loop {
            let expected = "a request to the client";
            match self.event(flight, expected).await?.kind {
                Some(Kind::Ask(ask)) => return Ok(ask),
                Some(Kind::Finished(end)) => return failed(expected, format!("{end:?}")),
                _ => {}
            }
        }
    }

    pub(super) async fn wish(
        &mut self,
        flight: &mut CallReader,
    ) -> CheckResult<(u64, state::Request)> {
        let expected = "a request for the session's state";
        loop {
            match self.event(flight, expected).await?.kind {
                Some(Kind::State(State {
                    ask,
                    request: Some(request),
                })) => return Ok((ask, request)),
                Some(Kind::Finished(end)) => return failed(expected, format!("{end:?}")),
                _ => {}
            }
        }
    }

    pub(super) async fn answer(
        &mut self,
        flight: &CallReader,
        ask: u64,
        result: &Value,
    ) -> CheckResult {
        let result = outcome::Outcome::Result(result.to_string().into());
        let outcome = shoal_rpc::proto::types::v1::Outcome {
            outcome: Some(result),
        };
        let answer = Answer {
            flight: flight.number,
            ask,
            outcome: Some(outcome),
        };
        self.say(Said::Answer(answer)).await
    }

    /// Drops the events before the reply.
    pub(super) async fn taken(&mut self, flight: &mut CallReader) -> CheckResult<AnswerTaken> {
        let expected = "an acknowledgement of the answer (answer_taken)";
        loop {
            match self.said(flight, expected).await? {
                Frame::AnswerTaken(taken) => return Ok(taken),
                Frame::Event(Event {
                    kind: Some(Kind::Finished(end)),
                    ..
                }) => return failed(expected, format!("the end before it: {end:?}")),
                Frame::Event(_) | Frame::Accepted(_) => {}
                other => return failed(expected, kind(&other)),
            }
        }
    }

    pub(super) async fn cancel(&self, flight: &CallReader) -> CheckResult {
        let reason = "the check says so".to_owned();
        let flight = flight.number;
        self.say(Said::Cancel(Cancel { flight, reason })).await
    }
}

pub(super) fn cost(event: &Event) -> u64 {
    let payload = match &event.kind {
        Some(Kind::Notification(said)) => said.params.as_ref().map_or(0, |params| params.len()),
        Some(Kind::Ask(said)) => said.params.as_ref().map_or(0, |params| params.len()),
        Some(Kind::State(said)) => match &said.request {
            Some(state::Request::Get(get)) => get.key.len(),
            Some(state::Request::Set(set)) => {
                set.key.len() + set.value.as_ref().map_or(0, |value| value.len())
            }
            _ => 0,
        },
        Some(Kind::Finished(end)) => match &end.outcome {
            Some(Outcome::Result(result)) => result.len(),
            Some(Outcome::Error(error)) => {
                error.message.len() + error.data.as_ref().map_or(0, |data| data.len())
            }
            _ => 0,
        },
        _ => 0,
    };
    payload as u64 + WEIGHT
}
