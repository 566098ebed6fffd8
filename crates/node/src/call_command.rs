//! `shoal tools` and `shoal call`: a server's tools from the command line.

use anyhow::{Context as _, anyhow};
use serde_json::{Map, Value, json};
use tokio::time::timeout;

use crate::cli::{Call, Remote, Tools};
use crate::exit::Failure;
use crate::print::print;
use crate::stdio::client::{Client, object};

/// Pages of tools that are asked for at most: a server that never ends its list is none.
const MOST_PAGES: usize = 1000;

/// Lists a server's tools.
///
/// # Errors
/// A server that cannot be reached, refuses, or takes longer than it may.
pub async fn tools(command: &Tools, token: Option<String>) -> Result<(), Failure> {
    let tools = within(&command.server, list(&command.server, token)).await?;
    let text = match command.json {
        true => pretty(&Value::Array(tools))?,
        false => table(&tools),
    };
    Ok(print(&text)?)
}

/// Calls a tool and prints what it answers.
///
/// # Errors
/// As for [`tools`]; arguments that are no JSON object; a tool that fails.
pub async fn call(command: &Call, token: Option<String>) -> Result<(), Failure> {
    let arguments = serde_json::from_str::<Map<String, Value>>(&command.arguments);
    let arguments = arguments.map_err(|error| {
        Failure::usage(format!(
            "the arguments are no JSON object such as '{{\"text\": \"hello\"}}': {error}"
        ))
    })?;
    let asked = ask(&command.server, token, &command.name, arguments);
    let result = within(&command.server, asked).await?;
    let text = match command.json {
        true => pretty(&result)?,
        false => content(&result),
    };
    print(&text)?;
    if result["isError"] == true {
        return Err(anyhow!("{} reports an error", command.name).into());
    }
    if result["resultType"] == "input_required" {
        let asks = "asks its user for something, which this command cannot answer";
        return Err(anyhow!("{} {asks}", command.name).into());
    }
    Ok(())
}

async fn list(server: &Remote, token: Option<String>) -> Result<Vec<Value>, Failure> {
    let mut client = connect(server, token).await?;
    let (mut tools, mut cursor) = (Vec::new(), Value::Null);
    for _ in 0..MOST_PAGES {
        let params = match cursor.is_null() {
            true => Map::new(),
            false => object(json!({ "cursor": cursor })),
        };
        let mut page = client.request("tools/list", params).await;
        let page = page.as_mut().map_err(|error| refused(server, error))?;
        if let Value::Array(items) = page["tools"].take() {
            tools.extend(items);
        }
        cursor = page["nextCursor"].take();
        if cursor.is_null() {
            break;
        }
    }
    client.finish().await;
    Ok(tools)
}

async fn ask(
    server: &Remote,
    token: Option<String>,
    name: &str,
    arguments: Map<String, Value>,
) -> Result<Value, Failure> {
    let mut client = connect(server, token).await?;
    let params = object(json!({ "name": name, "arguments": arguments }));
    let result = client.request("tools/call", params).await;
    client.finish().await;
    result.map_err(|error| refused(server, &error))
}

async fn connect(server: &Remote, token: Option<String>) -> Result<Client, Failure> {
    let token = server.token.clone().or(token);
    Client::connect(&server.url, token.as_deref(), server.era.map(Into::into)).await
}

fn refused(server: &Remote, error: &shoal_protocol::RpcError) -> Failure {
    anyhow!("{}: {error}", server.url).into()
}

async fn within<T>(
    server: &Remote,
    work: impl Future<Output = Result<T, Failure>>,
) -> Result<T, Failure> {
    let limit = server.timeout;
    timeout(limit, work).await.unwrap_or_else(|_| {
        let limit = humantime::format_duration(limit);
        Err(anyhow!("{} did not answer within {limit} (--timeout)", server.url).into())
    })
}

/// Names in one column, the first lines of descriptions in the next.
fn table(tools: &[Value]) -> String {
    let name = |tool: &Value| plain(tool["name"].as_str().unwrap_or_default());
    let width = tools.iter().map(|tool| name(tool).chars().count()).max();
    let width = width.unwrap_or(0);
    let line = |tool: &Value| {
        let description = tool["description"].as_str().unwrap_or_default();
        let first = plain(description.lines().next().unwrap_or_default());
        let line = format!("{:width$}  {first}", name(tool));
        format!("{}\n", line.trim_end())
    };
    tools.iter().map(line).collect()
}

/// A text of somebody else on one line, without what a terminal would obey.
fn plain(text: &str) -> String {
    let shown = |letter: char| if letter.is_control() { ' ' } else { letter };
    text.chars().map(shown).collect()
}

/// The texts of a result as they are, anything else as JSON.
fn content(result: &Value) -> String {
    let Some(blocks) = result["content"].as_array() else {
        return format!("{result}\n");
    };
    let block = |block: &Value| match (block["type"].as_str(), block["text"].as_str()) {
        (Some("text"), Some(text)) => format!("{text}\n"),
        _ => format!("{block}\n"),
    };
    blocks.iter().map(block).collect()
}

fn pretty(value: &Value) -> Result<String, Failure> {
    let mut text = serde_json::to_string_pretty(value).context("cannot print the answer")?;
    text.push('\n');
    Ok(text)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{content, table};

    #[test]
    fn tools_are_listed_in_columns() {
        let tools = [
            json!({ "name": "echo", "description": "Says it\nagain." }),
            json!({ "name": "long_job" }),
            json!({ "name": "bell\u{7}", "description": "\u{1b}[2J" }),
        ];
        assert_eq!(
            table(&tools),
            "echo      Says it\nlong_job\nbell       [2J\n"
        );
        assert_eq!(table(&[]), "");
    }

    #[test]
    fn texts_are_printed_as_they_are() {
        let result = json!({ "content": [
            { "type": "text", "text": "a\nb" },
            { "type": "image", "data": "AA==", "mimeType": "image/png" },
        ] });
        let text = content(&result);
        assert!(text.starts_with("a\nb\n{"), "{text}");
        assert!(text.contains("image/png"), "{text}");
        assert_eq!(content(&json!({ "n": 1 })), "{\"n\":1}\n");
    }
}
