use std::collections::VecDeque;

use serde_json::{Value, json};

use super::{FormAnswers, Person, ask};

struct Typist {
    is_there: bool,
    lines: VecDeque<&'static str>,
    seen: String,
}

impl Person for Typist {
    fn is_there(&self) -> bool {
        self.is_there
    }

    fn tell(&mut self, line: &str) {
        self.seen.push_str(line);
        self.seen.push('\n');
    }

    fn ask(&mut self, question: &str) -> Option<String> {
        self.seen.push_str(question);
        self.lines.pop_front().map(str::to_owned)
    }
}

fn answer(params: &Value, lines: &[&'static str]) -> (Value, String) {
    let mut typist = Typist {
        is_there: true,
        lines: lines.iter().copied().collect(),
        seen: String::new(),
    };
    (ask(params, &FormAnswers::new(), &mut typist), typist.seen)
}

/// With `is_there`, a user is at the terminal but types nothing.
fn given(params: &Value, answers: &[(&str, &str)], is_there: bool) -> (Value, String) {
    let mut typist = Typist {
        is_there,
        lines: VecDeque::new(),
        seen: String::new(),
    };
    let answers = answers.iter();
    let answers = answers.map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
    (ask(params, &answers.collect(), &mut typist), typist.seen)
}

fn one_field(schema: Value) -> Value {
    json!({ "message": "How many?", "requestedSchema": { "properties": { "it": schema }, "required": ["it"] } })
}

fn form() -> Value {
    json!({
        "message": "When?\u{1b}[2J",
        "requestedSchema": {
            "type": "object",
            "properties": {
                "guests": { "type": "integer", "minimum": 1, "maximum": 20, "description": "How many." },
                "date": { "type": "string", "format": "date", "minLength": 2 },
                "inside": { "type": "boolean", "default": true },
                "share": { "type": "number" },
                "menu": { "type": "string", "oneOf": [{ "const": "v", "title": "Vegan" }, { "const": "f", "title": "Fish" }] },
                "wines": { "type": "array", "items": { "type": "string", "enum": ["red", "white"] } },
            },
            "required": ["guests", "date"],
        },
    })
}

#[test]
fn every_kind_of_field_can_be_filled_in() {
    let lines = ["4", "today", "no", "0.5", "fish", "red, white"];
    let (result, seen) = answer(&form(), &lines);
    let content = json!({
        "guests": 4, "date": "today", "inside": false, "share": 0.5, "menu": "f", "wines": ["red", "white"],
    });
    assert_eq!(result, json!({ "action": "accept", "content": content }));
    for part in [
        "The tool asks: When? [2J\n",
        "guests (integer, required): How many.",
        "date (date, required)",
        "inside (yes | no, default true)",
        "menu (Vegan | Fish)",
        "wines (any of red | white, separated by commas)",
    ] {
        assert!(seen.contains(part), "{part:?} is not in {seen}");
    }
}

#[test]
fn what_is_left_out_has_its_default_or_is_not_there() {
    let (result, _) = answer(&form(), &["1", "today", "", "", "", ""]);
    let content = json!({ "guests": 1, "date": "today", "inside": true });
    assert_eq!(result["content"], content);
}

#[test]
fn what_cannot_be_used_is_asked_for_again() {
    let lines = [
        "", "many", "0", "21", "2", "x", "today", "maybe", "yes", "half", "1", "meat", "Vegan",
        "rose", "red",
    ];
    let (result, seen) = answer(&form(), &lines);
    assert_eq!(result["content"]["guests"], 2);
    assert_eq!(result["content"]["wines"], json!(["red"]));
    for part in [
        "an answer is needed",
        "a whole number",
        "at least 1\n",
        "at most 20\n",
        "at least 2 characters",
        "yes or no",
        "type a number",
        "\"meat\" is none of these: Vegan | Fish",
        "\"rose\" is none of these",
    ] {
        assert!(seen.contains(part), "{part:?} is not in {seen}");
    }
}

#[test]
fn titles_of_earlier_revisions_are_known() {
    let schema = json!({ "type": "string", "enum": ["r", "w"], "enumNames": ["Red", "White"] });
    let params =
        json!({ "message": "Which?", "requestedSchema": { "properties": { "wine": schema } } });
    let (result, seen) = answer(&params, &["white"]);
    assert_eq!(result["content"], json!({ "wine": "w" }));
    assert!(seen.contains("wine (Red | White)"), "{seen}");
}

#[test]
fn a_form_is_declined_or_left() {
    let declined = json!({ "action": "decline" });
    assert_eq!(answer(&form(), &["/decline"]).0, declined);
    assert_eq!(answer(&form(), &["3", "/decline"]).0, declined);
    let cancelled = json!({ "action": "cancel" });
    assert_eq!(answer(&form(), &[]).0, cancelled);
    assert_eq!(answer(&form(), &["3"]).0, cancelled);
}

#[test]
fn a_url_is_shown_and_never_opened_unasked() {
    let params = json!({ "mode": "url", "message": "Sign in", "url": "https://a/b" });
    let (result, seen) = answer(&params, &["y"]);
    assert_eq!(result, json!({ "action": "accept" }));
    assert!(seen.contains("https://a/b"), "{seen}");
    assert_eq!(answer(&params, &[""]).0["action"], "decline");
    assert_eq!(answer(&params, &[]).0["action"], "cancel");
}

#[test]
fn a_question_is_the_field_itself() {
    for (schema, line, value) in [
        (json!({ "type": "integer" }), "4", json!(4)),
        (json!({ "type": "number" }), "0.5", json!(0.5)),
        (json!({ "type": "string" }), "no", json!("no")),
        (json!({ "type": "boolean" }), "no", json!(false)),
        (json!({ "enum": ["a", "b"] }), "b", json!("b")),
        (json!({ "type": "integer", "default": 7 }), "", json!(7)),
    ] {
        let (result, seen) = answer(&one_field(schema), &[line]);
        let content = json!({ "action": "accept", "content": { "it": value } });
        assert_eq!(result, content, "{seen}");
        assert!(!seen.contains("[Y/n]"), "{seen}");
    }
}

#[test]
fn a_form_without_fields_is_agreed_to_in_words() {
    let params = json!({ "message": "Delete it?", "requestedSchema": { "properties": {} } });
    assert_eq!(answer(&params, &["y"]).0["action"], "accept");
    for line in ["", "n", "4"] {
        assert_eq!(answer(&params, &[line]).0["action"], "decline", "{line}");
    }
    assert_eq!(given(&params, &[("it", "y")], false).0["action"], "cancel");
}

#[test]
fn answers_can_be_given_beforehand() {
    let (result, _) = given(&form(), &[("guests", "4"), ("date", "today")], false);
    let content = json!({ "guests": 4, "date": "today", "inside": true });
    assert_eq!(result, json!({ "action": "accept", "content": content }));
    let cancelled = json!({ "action": "cancel" });
    let (result, seen) = given(&form(), &[("guests", "4")], false);
    assert_eq!(result, cancelled);
    assert!(
        seen.contains("The tool needs date (date, required)"),
        "{seen}"
    );
    assert!(seen.contains("--answer date=VALUE"), "{seen}");
    let (result, seen) = given(&form(), &[("guests", "many"), ("date", "today")], false);
    assert_eq!(result, cancelled);
    assert!(
        seen.contains("--answer guests=…: type a whole number"),
        "{seen}"
    );
    let (result, seen) = given(&form(), &[("guests", "4")], true);
    assert_eq!(result, cancelled);
    assert!(seen.contains("date (date, required)\n  > "), "{seen}");
}
