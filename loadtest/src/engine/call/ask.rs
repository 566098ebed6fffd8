//! The server asks by its own request in 2025-11-25, by a result that needs a second call in 2026-07-28.

use serde_json::Value;
use serde_json::value::RawValue;

use crate::failure::Failure;
use crate::mcp::Mode;
use crate::mcp::answer::{Message, check_text, parse, quote};
use crate::mcp::client::Client;

const TOOL: &str = "book_table";

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
    match client.mode() {
        Mode::Legacy => booking.legacy(client).await,
        Mode::Modern => booking.modern(client).await,
    }
}

impl Booking<'_> {
    async fn legacy(&self, client: &mut Client) -> Result<(), Failure> {
        let id = client.next_id();
        let mut reply = client
            .start(id, "tools/call", TOOL, &self.params, "")
            .await?;
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
                    let params = message.params.map_or("", RawValue::get);
                    check_question(method, params, self.restaurant, asked)?;
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
        let asking = client.request("tools/call", TOOL, &self.params, |result| parse(result));
        let asked: Value = asking.await?;
        let questions = asked["inputRequests"].as_object();
        let questions = questions.filter(|all| all.len() == 1).into_iter().flatten();
        let Some((name, question)) = questions
            .last()
            .filter(|_| asked["resultType"] == "input_required")
        else {
            let asked = asked.to_string();
            return Err(Failure::Wrong(format!(
                "not one question: {}",
                quote(&asked)
            )));
        };
        let method = question["method"].as_str().unwrap_or_default();
        check_question(method, &question["params"].to_string(), self.restaurant, 1)?;
        let state = asked.get("requestState");
        let state = state.map_or_else(String::new, |state| format!(r#","requestState":{state}"#));
        let (Self { params, answer, .. }, name) = (self, Value::from(name.as_str()));
        let retry = format!(r#"{params},"inputResponses":{{{name}:{answer}}}{state}"#);
        let check = |result: &str| check_text(result, &self.expected);
        client.request("tools/call", TOOL, &retry, check).await
    }
}

fn check_question(method: &str, params: &str, restaurant: &str, asked: u32) -> Result<(), Failure> {
    if method == "elicitation/create" && params.contains(restaurant) && asked == 1 {
        return Ok(());
    }
    Err(Failure::Wrong(format!(
        "question {asked} of the call is no elicitation about {restaurant}: {method} {}",
        quote(params)
    )))
}
