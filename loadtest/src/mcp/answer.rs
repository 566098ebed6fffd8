use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::failure::Failure;

const QUOTE_CHARS: usize = 240;

#[derive(Debug, Deserialize)]
pub(crate) struct Message<'a> {
    /// Only in responses, and in requests of the server.
    #[serde(borrow, default)]
    pub(crate) id: Option<&'a RawValue>,
    /// Only in requests and notifications.
    #[serde(borrow, default)]
    pub(crate) method: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    pub(crate) params: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub(crate) result: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub(crate) error: Option<&'a RawValue>,
}

impl<'a> Message<'a> {
    pub(crate) fn parse(text: &'a str) -> Result<Self, Failure> {
        parse(text)
    }

    pub(crate) fn is_response(&self) -> bool {
        self.method.is_none()
    }

    /// Fails if the response is an error, or answers another request.
    pub(crate) fn result_of(&self, id: u64) -> Result<&'a str, Failure> {
        let answered = self.id.map_or("no id", RawValue::get);
        if answered.parse() != Ok(id) {
            return Err(Failure::Wrong(format!(
                "request {id} was answered with id {answered}"
            )));
        }
        match (self.result, self.error) {
            (Some(result), None) => Ok(result.get()),
            (_, Some(error)) => Err(Failure::Wrong(format!("error {}", quote(error.get())))),
            (None, None) => Err(Failure::Wrong("neither result nor error".to_owned())),
        }
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ToolResult<'a> {
    #[serde(borrow)]
    content: Vec<Content<'a>>,
    #[serde(default)]
    is_error: bool,
    #[serde(borrow, default)]
    result_type: Option<Cow<'a, str>>,
}

#[derive(Deserialize)]
struct Content<'a> {
    #[serde(borrow, default)]
    text: Option<Cow<'a, str>>,
}

/// `expected` must be the text of the result.
pub(crate) fn check_text(result: &str, expected: &str) -> Result<(), Failure> {
    if text_of(result)? == expected {
        return Ok(());
    }
    let wrong = quote(result);
    Err(Failure::Wrong(format!(
        "not the text {:?}: {wrong}",
        quote(expected)
    )))
}

/// The result must be complete and successful, and have exactly one text block.
pub(crate) fn text_of(result: &str) -> Result<Cow<'_, str>, Failure> {
    let wrong = |what: &str| Failure::Wrong(format!("{what}: {}", quote(result)));
    let parsed: ToolResult<'_> =
        serde_json::from_str(result).map_err(|cause| wrong(&cause.to_string()))?;
    if parsed.is_error {
        return Err(wrong("the tool failed"));
    }
    if parsed.result_type.is_some_and(|kind| kind != "complete") {
        return Err(wrong("the result is not complete"));
    }
    let mut blocks = parsed.content.into_iter();
    match (blocks.next(), blocks.next()) {
        (Some(Content { text: Some(text) }), None) => Ok(text),
        _ => Err(wrong("not one text")),
    }
}

pub(crate) fn parse<'a, T: Deserialize<'a>>(result: &'a str) -> Result<T, Failure> {
    serde_json::from_str(result)
        .map_err(|cause| Failure::Wrong(format!("{cause} in {}", quote(result))))
}

pub(crate) fn quote(text: &str) -> String {
    text.chars().take(QUOTE_CHARS).collect()
}

#[cfg(test)]
mod tests;
