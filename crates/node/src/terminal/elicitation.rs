//! `elicitation/create` as questions and answers, line by line.

mod field;

use serde_json::{Map, Value, json};

use crate::print::plain;
use field::Field;

/// Somebody who reads and answers.
pub(super) trait Person {
    /// Shows a line.
    fn tell(&mut self, line: &str);

    /// Asks for a line; `None` when there will be none.
    fn ask(&mut self, question: &str) -> Option<String>;
}

/// Whoever was asked is gone.
struct Gone;

/// Puts the questions of an `elicitation/create`: its `ElicitResult`.
pub(super) fn ask(params: &Value, person: &mut dyn Person) -> Value {
    let answered = match params["mode"].as_str() {
        Some("url") => visit(params, person),
        _ => fill_in(params, person),
    };
    answered.unwrap_or_else(|Gone| json!({ "action": "cancel" }))
}

fn visit(params: &Value, person: &mut dyn Person) -> Result<Value, Gone> {
    say(params, person);
    let url = plain(params["url"].as_str().unwrap_or_default());
    person.tell(&format!("Open this in a browser, if you trust it: {url}"));
    let action = match agreed(person, "Opened? [y/N] ", false)? {
        true => "accept",
        false => "decline",
    };
    Ok(json!({ "action": action }))
}

fn fill_in(params: &Value, person: &mut dyn Person) -> Result<Value, Gone> {
    say(params, person);
    if !agreed(person, "Answer? [Y/n] ", true)? {
        return Ok(json!({ "action": "decline" }));
    }
    let schema = &params["requestedSchema"];
    let required: Vec<&str> = schema["required"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    let mut content = Map::new();
    for (name, schema) in schema["properties"].as_object().into_iter().flatten() {
        let field = Field {
            name,
            schema,
            required: required.contains(&name.as_str()),
        };
        if let Some(value) = filled(&field, person)? {
            content.insert(name.clone(), value);
        }
    }
    Ok(json!({ "action": "accept", "content": content }))
}

/// One field, asked for until it can be used.
fn filled(field: &Field<'_>, person: &mut dyn Person) -> Result<Option<Value>, Gone> {
    person.tell(&format!("  {}", field.describe()));
    loop {
        let line = person.ask("  > ").ok_or(Gone)?;
        match field.read(&line) {
            Ok(value) => return Ok(value),
            Err(reason) => person.tell(&format!("    {reason}")),
        }
    }
}

fn say(params: &Value, person: &mut dyn Person) {
    let message = params["message"].as_str().unwrap_or_default();
    person.tell(&format!("The tool asks: {}", plain(message)));
}

fn agreed(person: &mut dyn Person, question: &str, otherwise: bool) -> Result<bool, Gone> {
    let line = person.ask(question).ok_or(Gone)?.to_lowercase();
    Ok(match line.as_str() {
        "" => otherwise,
        line => line.starts_with('y'),
    })
}

#[cfg(test)]
mod tests;
