mod field;

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use self::NoInput::{Declined, Gone};
use crate::print::plain;
use field::Field;

const DECLINE: &str = "/decline";

pub(super) type FormAnswers = BTreeMap<String, String>;

pub(super) trait Person {
    fn is_there(&self) -> bool;

    fn tell(&mut self, line: &str);

    /// `None` at the end of input.
    fn ask(&mut self, question: &str) -> Option<String>;
}

enum NoInput {
    Gone,
    Declined,
}

/// Asks for the values that `answers` lacks. Returns the `ElicitResult`.
pub(super) fn ask(params: &Value, answers: &FormAnswers, person: &mut dyn Person) -> Value {
    let answered = match params["mode"].as_str() {
        Some("url") => visit(params, person),
        _ => fill_in(params, answers, person),
    };
    answered.unwrap_or_else(|why| match why {
        Gone => json!({ "action": "cancel" }),
        Declined => json!({ "action": "decline" }),
    })
}

fn visit(params: &Value, person: &mut dyn Person) -> Result<Value, NoInput> {
    say(params, person);
    let url = plain(params["url"].as_str().unwrap_or_default());
    person.tell(&format!("Open this in a browser, if you trust it: {url}"));
    agree(person, "Opened? [y/N] ")?;
    Ok(json!({ "action": "accept" }))
}

fn fill_in(
    params: &Value,
    answers: &FormAnswers,
    person: &mut dyn Person,
) -> Result<Value, NoInput> {
    say(params, person);
    let schema = &params["requestedSchema"];
    let required: Vec<&str> = schema["required"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    let no_fields = Map::new();
    let fields = schema["properties"].as_object().unwrap_or(&no_fields);
    if fields.is_empty() {
        agree(person, "Agree? [y/N] ")?;
    } else if person.is_there() {
        person.tell(&format!(
            "An empty line takes the default or leaves the field out, {DECLINE} declines, Ctrl-D cancels."
        ));
    }
    let mut content = Map::new();
    for (name, schema) in fields {
        let field = Field {
            name,
            schema,
            required: required.contains(&name.as_str()),
        };
        if let Some(value) = filled(&field, answers.get(name), person)? {
            content.insert(name.clone(), value);
        }
    }
    Ok(json!({ "action": "accept", "content": content }))
}

fn filled(
    field: &Field<'_>,
    given: Option<&String>,
    person: &mut dyn Person,
) -> Result<Option<Value>, NoInput> {
    let name = field.name;
    match given.map(|given| field.read(given)) {
        Some(Ok(value)) => return Ok(value),
        Some(Err(reason)) => person.tell(&format!("--answer {name}=…: {reason}")),
        None => {}
    }
    if !person.is_there() {
        let left_out = field.read("").ok().filter(|_| given.is_none());
        if left_out.is_none() {
            let asked = field.describe();
            person.tell(&format!(
                "Run this in a terminal, or use --answer {name}=VALUE. The tool needs {asked}"
            ));
        }
        return left_out.ok_or(Gone);
    }
    person.tell(&format!("  {}", field.describe()));
    loop {
        let line = person.ask("  > ").ok_or(Gone)?;
        if line == DECLINE {
            return Err(Declined);
        }
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

/// Asks the person at the terminal for consent, which the command line cannot give.
fn agree(person: &mut dyn Person, question: &str) -> Result<(), NoInput> {
    if !person.is_there() {
        person.tell("The tool asks for somebody to agree. Run this in a terminal.");
        return Err(Gone);
    }
    let line = person.ask(question).ok_or(Gone)?.to_lowercase();
    match line.as_str() {
        "y" | "yes" => Ok(()),
        _ => Err(Declined),
    }
}

#[cfg(test)]
mod tests;
