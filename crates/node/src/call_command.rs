//! `shoal tools`, `shoal call` and `shoal tasks`: a server's tools from the command line.

mod listing;
mod stats;
mod task;

use serde_json::{Map, Value, json};

use crate::cli::{Call, Remote, Tools};
use crate::exit::{Code, Failure};
use crate::print::{Output, err, json, print};
use crate::status_command::ask;
use crate::stdio::client::{BridgeClient, failed, object};
use crate::terminal::Terminal;

pub use task::tasks;

/// Maximum pages of a list, because some servers never end a list.
const MOST_PAGES: usize = 1000;

/// Lists a server's tools.
///
/// # Errors
/// The server cannot be reached, refuses, or exceeds the timeout.
pub async fn tools(command: &Tools, token: Option<String>) -> Result<(), Failure> {
    for (is_wanted, member) in [(command.left_out, "left_out"), (command.cut, "cut")] {
        if is_wanted {
            return of_pools(command, member).await;
        }
    }
    let mut client = connect(&command.server, token, &[]).await?;
    let tools = list(&mut client, &command.server).await;
    client.finish().await;
    let tools = tools?;
    let text = match command.output {
        Output::Json if command.stats => json(&stats::as_json(&tools))?,
        Output::Text if command.stats => stats::of(&tools),
        Output::Json => json(&json!({ "tools": tools }))?,
        Output::Text => listing::of(&tools),
    };
    print(&text)?;
    if tools.is_empty() {
        err(
            "shoal: the server lists no tools for this caller. Check the rules ([policy]) and the tools that pools leave out \
             ([pools.<name>.tools]) with `shoal config show`, and the pools with `shoal status`\n",
        );
    }
    Ok(())
}

async fn of_pools(command: &Tools, member: &str) -> Result<(), Failure> {
    let (_, status) = ask(&command.admin, "/status").await?;
    let pools = status["pools"].as_array().into_iter().flatten();
    let told: Map<String, Value> = pools
        .filter(|pool| pool[member].as_array().is_some_and(|all| !all.is_empty()))
        .filter_map(|pool| Some((pool["name"].as_str()?.to_owned(), pool[member].clone())))
        .collect();
    let text = match command.output {
        Output::Json => json(&json!({ member: told }))?,
        Output::Text => listing::of_pools(&told),
    };
    Ok(print(&text)?)
}

/// Calls a tool and prints its result. At a terminal, asks the user the tool's questions.
///
/// # Errors
/// As for [`tools`]; also for invalid arguments and errors of the tool.
pub async fn call(command: &Call, token: Option<String>) -> Result<(), Failure> {
    let arguments = serde_json::from_str::<Map<String, Value>>(&command.arguments);
    let arguments = arguments.map_err(|error| {
        Failure::usage(format!(
            "the arguments are no JSON object such as '{{\"text\": \"hello\"}}': {error}"
        ))
    })?;
    if command.task {
        return task::call(command, arguments, token).await;
    }
    let mut client = connect(&command.server, token, &command.answer).await?;
    let params = object(json!({ "name": command.name, "arguments": arguments }));
    let result = tokio::select! {
        result = client.request("tools/call", params) => Some(result),
        _ = tokio::signal::ctrl_c() => None,
    };
    if result.is_none() {
        client.cancel("its user has interrupted it").await;
    }
    client.finish().await;
    let interrupted = || Failure::new(Code::Interrupted, "the call was taken back");
    let result = result.ok_or_else(interrupted)?;
    let result = result.map_err(|error| failed(&command.server.url, &error))?;
    show(&command.name, &result, command.output)
}

fn show(tool: &str, result: &Value, output: Output) -> Result<(), Failure> {
    let text = match output {
        Output::Json => json(result)?,
        Output::Text => content(result),
    };
    print(&text)?;
    let reason = match () {
        () if result["isError"] == true && names_elicitation(result) => {
            "reports an error: if it needs an answer, run this in a terminal, or use --answer NAME=VALUE"
        }
        () if result["isError"] == true => "reports an error",
        () if result["resultType"] == "input_required" => {
            "asks for something that cannot be answered here: run this in a terminal, or use --answer NAME=VALUE"
        }
        () => return Ok(()),
    };
    Err(Failure::shown(format!("{tool} {reason}")))
}

/// Whether the result mentions elicitation. In a tool's error, this suggests that the tool could not ask the user.
fn names_elicitation(result: &Value) -> bool {
    let blocks = result["content"].as_array().into_iter().flatten();
    let mut texts = blocks.filter_map(|block| block["text"].as_str());
    texts.any(|text| text.to_lowercase().contains("elicitation"))
}

async fn list(client: &mut BridgeClient, server: &Remote) -> Result<Vec<Value>, Failure> {
    let (mut tools, mut cursor) = (Vec::new(), Value::Null);
    for _ in 0..MOST_PAGES {
        let params = match cursor.is_null() {
            true => Map::new(),
            false => object(json!({ "cursor": cursor })),
        };
        let page = client.request("tools/list", params).await;
        let mut page = page.map_err(|error| failed(&server.url, &error))?;
        if let Value::Array(items) = page["tools"].take() {
            tools.extend(items);
        }
        cursor = page["nextCursor"].take();
        if cursor.is_null() {
            break;
        }
    }
    Ok(tools)
}

async fn connect(
    server: &Remote,
    token: Option<String>,
    answers: &[(String, String)],
) -> Result<BridgeClient, Failure> {
    let token = server.token.clone().or(token);
    let era = server.era.map(Into::into);
    let person = Box::new(Terminal::of_process(answers));
    BridgeClient::connect(&server.url, token.as_deref(), era, person, server.timeout).await
}

fn content(result: &Value) -> String {
    let blocks = match result["content"].as_array() {
        Some(blocks) if blocks.is_empty() && result["structuredContent"].is_object() => {
            return format!("{}\n", result["structuredContent"]);
        }
        Some(blocks) => blocks,
        None => return format!("{result}\n"),
    };
    let block = |block: &Value| match (block["type"].as_str(), block["text"].as_str()) {
        (Some("text"), Some(text)) => format!("{text}\n"),
        _ => format!("{block}\n"),
    };
    blocks.iter().map(block).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::content;

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
        let structured = json!({ "content": [], "structuredContent": { "n": 1 } });
        assert_eq!(content(&structured), "{\"n\":1}\n");
    }
}
