//! The server asks by its own request in 2025-11-25, by a result that needs a second call in 2026-07-28.

use http::HeaderValue;
use serde::Deserialize;
use serde_json::value::RawValue;
use std::collections::BTreeMap;

use crate::failure::Failure;
use crate::mcp::answer::{Message, check_text, quote};
use crate::mcp::client::Client;

const TOOL: &str = "book_table";

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Asked {
    result_type: String,
    #[serde(default)]
    input_requests: BTreeMap<String, Question>,
    #[serde(default)]
    request_state: Option<String>,
}

#[derive(Deserialize)]
struct Question {
    method: String,
    #[serde(default)]
    params: Option<Box<RawValue>>,
}

/// A call, with the client's answer to its question and the text of its result.
struct Booking<'a> {
    restaurant: &'a str,
    params: String,
    answer: String,
    expected: String,
}

/// `restaurant` must be unique for each call.
pub(super) async fn call(
    client: &mut Client,
    restaurant: &str,
    number: u64,
) -> Result<(), Failure> {
    let guests = number % 20 + 1;
    let booking = Booking {
        restaurant,
        params: format!(r#""name":"{TOOL}","arguments":{{"restaurant":"{restaurant}"}}"#),
        answer: format!(
            r#"{{"action":"accept","content":{{"guests":{guests},"date":"day {number}"}}}}"#
        ),
        expected: format!("booked {restaurant} for {guests} on day {number}"),
    };
    match client.session() {
        Some(_) => booking.legacy(client).await,
        None => booking.modern(client).await,
    }
}

impl Booking<'_> {
    async fn legacy(&self, client: &mut Client) -> Result<(), Failure> {
        let id = client.next_id();
        let mut reply = client.start(id, "tools/call", None, &self.params).await?;
        let mut asked = 0;
        let mut answered = 0;
        while let Some(event) = reply.next().await? {
            if event.data.is_empty() {
                continue;
            }
            let message = Message::parse(&event.data)?;
            match (message.method.as_deref(), message.id) {
                (Some(method), Some(question)) => {
                    asked += 1;
                    check_question(method, message.params, self.restaurant, asked)?;
                    client.answer(question.get(), &self.answer).await?;
                }
                (Some(_), None) => {}
                (None, _) => {
                    answered += 1;
                    check_text(message.result_of(id)?, &self.expected)?;
                }
            }
        }
        client.give_back(reply);
        match (asked, answered) {
            (1, 1) => Ok(()),
            _ => Err(Failure::Wrong(format!(
                "request {id} asked {asked} times and was answered {answered} times; both must be once"
            ))),
        }
    }

    async fn modern(&self, client: &mut Client) -> Result<(), Failure> {
        let tool = HeaderValue::from_static(TOOL);
        let asked = client.request("tools/call", Some(&tool), &self.params, |result| {
            let wrong = |what: &str| Failure::Wrong(format!("{what}: {}", quote(result)));
            let asked: Asked =
                serde_json::from_str(result).map_err(|cause| wrong(&cause.to_string()))?;
            if asked.result_type != "input_required" || asked.input_requests.len() != 1 {
                return Err(wrong("not one question"));
            }
            Ok(asked)
        });
        let asked = asked.await?;
        let Some((name, question)) = asked.input_requests.first_key_value() else {
            return Err(Failure::Wrong("no question".to_owned()));
        };
        check_question(
            &question.method,
            question.params.as_deref(),
            self.restaurant,
            1,
        )?;
        let name = serde_json::Value::from(name.as_str());
        let state = asked.request_state.map_or_else(String::new, |state| {
            format!(r#","requestState":{}"#, serde_json::Value::from(state))
        });
        let Self { params, answer, .. } = self;
        let retry = format!(r#"{params},"inputResponses":{{{name}:{answer}}}{state}"#);
        client
            .request("tools/call", Some(&tool), &retry, |result| {
                check_text(result, &self.expected)
            })
            .await
    }
}

fn check_question(
    method: &str,
    params: Option<&RawValue>,
    restaurant: &str,
    asked: u32,
) -> Result<(), Failure> {
    let params = params.map_or("", RawValue::get);
    if method == "elicitation/create" && params.contains(restaurant) && asked == 1 {
        return Ok(());
    }
    Err(Failure::Wrong(format!(
        "question {asked} of the call is no elicitation about {restaurant}: {method} {}",
        quote(params)
    )))
}
