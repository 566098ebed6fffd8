//! The checks of the demo server. Clients in other languages have the same checks in the same
//! order, also in one file, so that readers can compare them.
#![expect(
    deprecated,
    reason = "subscriptions and logging of older revisions are to be checked"
)]

use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use base64::{Engine, prelude::BASE64_STANDARD};
use rmcp::{
    RoleClient, ServiceError,
    model::{
        CallToolRequestParams, CallToolResult, ClientRequest, ContentBlock, ElicitResult,
        ElicitationAction, ErrorCode, GetPromptRequestParams, JsonObject, LoggingLevel,
        PingRequest, ReadResourceRequestParams, RequestMetaObject, ResourceContents,
        ServerNotification, SetLevelRequestParams, SubscribeRequestParams, SubscriptionFilter,
        UnsubscribeRequestParams,
    },
    service::{RunningService, Subscription},
};
use serde_json::{Value, json};
use tokio::{
    task::JoinSet,
    time::{sleep, timeout},
};

use crate::{
    harness::{Runner, Skip, contains, equal, includes},
    peer::{Peer, ROOTS, SAMPLED},
};

const TOOLS: &[&str] = &[
    "echo",
    "add",
    "long_job",
    "book_table",
    "connect_account",
    "summarize",
    "list_roots",
    "increment_counter",
    "toggle_bonus_tool",
    "write_log",
    "fail",
];
const COUNTER: &str = "demo://counter";
/// How long to listen for a message that must not come.
const QUIET_TIME: Duration = Duration::from_millis(300);

pub struct Demo {
    pub client: RunningService<RoleClient, Peer>,
    pub peer: Peer,
    /// Whether the client uses 2026-07-28.
    pub modern: bool,
}

impl Demo {
    pub async fn run(&self, runner: &mut Runner) {
        runner.run("list_tools", self.list_tools()).await;
        runner.run("echo", self.echo()).await;
        runner
            .run("structured_content", self.structured_content())
            .await;
        runner.run("progress", self.progress()).await;
        runner.run("sampling", self.sampling()).await;
        runner
            .run("elicit_form_accept", self.elicit_form_accept())
            .await;
        runner
            .run(
                "elicit_form_decline",
                self.refuse(ElicitationAction::Decline, "declined"),
            )
            .await;
        runner
            .run(
                "elicit_form_cancel",
                self.refuse(ElicitationAction::Cancel, "cancelled"),
            )
            .await;
        runner.run("elicit_url", self.elicit_url()).await;
        runner.run("roots", self.roots()).await;
        runner.run("list_resources", self.list_resources()).await;
        runner.run("read_resource", self.read_resource()).await;
        runner.run("read_blob", self.read_blob()).await;
        runner.run("read_template", self.read_template()).await;
        runner
            .run("unknown_resource", self.unknown_resource())
            .await;
        runner.run("subscription", self.subscription()).await;
        runner.run("unsubscribed", self.unsubscribed()).await;
        runner
            .run("tools_list_changed", self.tools_list_changed())
            .await;
        runner.run("list_prompts", self.list_prompts()).await;
        runner.run("get_prompt", self.get_prompt()).await;
        runner.run("completion", self.completion()).await;
        runner.run("logging", self.logging()).await;
        runner.run("cancel", self.cancel()).await;
        runner.run("tool_error", self.tool_error()).await;
        runner.run("bad_arguments", self.bad_arguments()).await;
        runner.run("unknown_tool", self.unknown_tool()).await;
        runner
            .run("concurrent_calls", self.concurrent_calls())
            .await;
        runner.run("ping", self.ping()).await;
    }

    async fn list_tools(&self) -> Result<()> {
        includes("tools", &self.tool_names().await?, TOOLS)
    }

    async fn echo(&self) -> Result<()> {
        let text = self.text("echo", json!({ "text": "héllo 🌊" })).await?;
        equal("text", text.as_str(), "héllo 🌊")
    }

    async fn structured_content(&self) -> Result<()> {
        let result = self
            .client
            .call_tool(call("add", json!({ "a": 2, "b": 40 }))?)
            .await?;
        let sum = result.structured_content.context("no structured content")?["sum"].as_f64();
        equal("sum", sum, Some(42.0))
    }

    async fn progress(&self) -> Result<()> {
        self.peer.state().progress.clear();
        // The SDK adds a progress token to every request.
        let text = self
            .text("long_job", json!({ "steps": 5, "interval_ms": 20 }))
            .await?;
        equal("text", text.as_str(), "done after 5 steps")?;
        // Notifications and results are handled concurrently, so the last notification may come late.
        self.peer
            .wait_for("all progress", |state| state.progress.len() >= 5)
            .await?;
        equal(
            "progress",
            self.peer.state().progress.clone(),
            vec![1.0, 2.0, 3.0, 4.0, 5.0],
        )
    }

    async fn sampling(&self) -> Result<()> {
        let text = self
            .text("summarize", json!({ "text": "a long story" }))
            .await?;
        equal("text", text, format!("summary: {SAMPLED}"))?;
        let asked = serde_json::to_string(&self.peer.state().samples)?;
        contains(&asked, "a long story")
    }

    async fn elicit_form_accept(&self) -> Result<()> {
        let answer = json!({ "guests": 4, "date": "2026-08-01" });
        self.peer.state().form_answer =
            ElicitResult::new(ElicitationAction::Accept).with_content(answer);
        let text = self
            .text("book_table", json!({ "restaurant": "Chez Nous" }))
            .await?;
        equal(
            "text",
            text.as_str(),
            "booked Chez Nous for 4 on 2026-08-01",
        )?;
        let form = self.peer.state().forms.last().context("no form")?["properties"].clone();
        ensure!(
            form["guests"].is_object() && form["date"].is_object(),
            "odd form {form}"
        );
        Ok(())
    }

    async fn refuse(&self, action: ElicitationAction, outcome: &str) -> Result<()> {
        self.peer.state().form_answer = ElicitResult::new(action);
        let text = self
            .text("book_table", json!({ "restaurant": "Chez Nous" }))
            .await?;
        equal("text", text, format!("not booked: {outcome}"))
    }

    async fn elicit_url(&self) -> Result<()> {
        self.text("connect_account", json!({ "service": "calendar" }))
            .await?;
        let urls = self.peer.state().urls.clone();
        equal("URL elicitations", urls.len(), 1)?;
        contains(&urls[0], "calendar")
    }

    async fn roots(&self) -> Result<()> {
        equal(
            "roots",
            self.text("list_roots", json!({})).await?,
            ROOTS.join("\n"),
        )
    }

    async fn list_resources(&self) -> Result<()> {
        let resources = self.client.list_all_resources().await?;
        let uris: Vec<_> = resources.into_iter().map(|resource| resource.uri).collect();
        includes(
            "resources",
            &uris,
            &["demo://readme", COUNTER, "demo://logo"],
        )
    }

    async fn read_resource(&self) -> Result<()> {
        contains(&self.read_text("demo://readme").await?, "demo")
    }

    async fn read_blob(&self) -> Result<()> {
        let ResourceContents::BlobResourceContents {
            mime_type, blob, ..
        } = self.read("demo://logo").await?
        else {
            bail!("not a blob");
        };
        equal("type", mime_type.as_deref(), Some("image/png"))?;
        ensure!(
            BASE64_STANDARD.decode(blob)?.starts_with(b"\x89PNG"),
            "not a PNG"
        );
        Ok(())
    }

    async fn read_template(&self) -> Result<()> {
        let templates = self.client.list_all_resource_templates().await?;
        let uris: Vec<_> = templates
            .into_iter()
            .map(|template| template.uri_template)
            .collect();
        includes("templates", &uris, &["demo://greeting/{name}"])?;
        contains(&self.read_text("demo://greeting/Ada").await?, "Ada")
    }

    async fn unknown_resource(&self) -> Result<()> {
        let code = if self.modern {
            ErrorCode::INVALID_PARAMS
        } else {
            ErrorCode::RESOURCE_NOT_FOUND
        };
        let params = ReadResourceRequestParams::new("demo://nowhere");
        has_code(self.client.read_resource(params).await, code)
    }

    async fn subscription(&self) -> Result<()> {
        let before = self.count().await?;
        if self.modern {
            let filter = SubscriptionFilter::builder()
                .resource_subscription(COUNTER)
                .build();
            let mut events = self.client.listen(filter).await?;
            self.text("increment_counter", json!({})).await?;
            match next(&mut events).await? {
                ServerNotification::ResourceUpdatedNotification(update) => {
                    equal("URI", update.params.uri.as_str(), COUNTER)?;
                }
                other => bail!("odd event {other:?}"),
            }
            events.cancel().await?;
        } else {
            self.peer.state().updated.clear();
            self.client
                .subscribe(SubscribeRequestParams::new(COUNTER))
                .await?;
            self.text("increment_counter", json!({})).await?;
            let updated = |uris: &[String]| uris.iter().any(|uri| uri == COUNTER);
            self.peer
                .wait_for("the update", |state| updated(&state.updated))
                .await?;
            self.client
                .unsubscribe(UnsubscribeRequestParams::new(COUNTER))
                .await?;
        }
        equal("counter", self.count().await?, before + 1)
    }

    async fn unsubscribed(&self) -> Result<()> {
        self.peer.state().updated.clear();
        self.text("increment_counter", json!({})).await?;
        sleep(QUIET_TIME).await;
        equal(
            "updates after unsubscribing",
            self.peer.state().updated.len(),
            0,
        )
    }

    async fn tools_list_changed(&self) -> Result<()> {
        let before = self.tool_names().await?;
        let seen = self.peer.state().tool_list_changes;
        let mut events = None;
        if self.modern {
            let filter = SubscriptionFilter::builder().tools_list_changed().build();
            events = Some(self.client.listen(filter).await?);
        }
        self.text("toggle_bonus_tool", json!({})).await?;
        let changed = async {
            match &mut events {
                Some(events) => match next(events).await? {
                    ServerNotification::ToolListChangedNotification(_) => {}
                    other => bail!("odd event {other:?}"),
                },
                None => {
                    let changed = |list_changes| list_changes > seen;
                    self.peer
                        .wait_for("the change", |state| changed(state.tool_list_changes))
                        .await?;
                }
            }
            let after = self.tool_names().await?;
            equal(
                "tools that came or went",
                after.len().abs_diff(before.len()),
                1,
            )
        };
        let changed = changed.await;
        self.text("toggle_bonus_tool", json!({})).await?;
        changed
    }

    async fn list_prompts(&self) -> Result<()> {
        let prompts = self.client.list_all_prompts().await?;
        let names: Vec<_> = prompts.into_iter().map(|prompt| prompt.name).collect();
        includes("prompts", &names, &["greet", "code_review"])
    }

    async fn get_prompt(&self) -> Result<()> {
        let arguments = object(json!({ "name": "Ada", "language": "French" }))?;
        let params = GetPromptRequestParams::new("greet").with_arguments(arguments);
        let prompt = self.client.get_prompt(params).await?;
        let message = prompt.messages.first().context("no messages")?;
        let ContentBlock::Text(content) = &message.content else {
            bail!("not a text: {message:?}");
        };
        contains(&content.text, "Ada")?;
        contains(&content.text, "French")
    }

    async fn completion(&self) -> Result<()> {
        let values = self
            .client
            .complete_prompt_simple("greet", "language", "G")
            .await?;
        includes("values", &values, &["German"])?;
        ensure!(
            !values.iter().any(|value| value == "French"),
            "the prefix was ignored"
        );
        Ok(())
    }

    async fn logging(&self) -> Result<()> {
        if !self.modern {
            self.client
                .set_level(SetLevelRequestParams::new(LoggingLevel::Info))
                .await?;
        }
        self.peer.state().logs.clear();
        for (level, message) in [("debug", "too quiet"), ("warning", "loud enough")] {
            let mut params = call("write_log", json!({ "level": level, "message": message }))?;
            if self.modern {
                let mut meta = RequestMetaObject::new();
                meta.set_log_level(LoggingLevel::Info);
                params.meta = Some(meta);
            }
            text_of(&self.client.call_tool(params).await?)?;
        }
        self.peer
            .wait_for("the message", |state| !state.logs.is_empty())
            .await?;
        let logs = self.peer.state().logs.clone();
        let got: Vec<_> = logs
            .iter()
            .map(|log| (log.level, log.data.as_str()))
            .collect();
        equal(
            "messages",
            got,
            vec![(LoggingLevel::Warning, Some("loud enough"))],
        )
    }

    async fn cancel(&self) -> Result<()> {
        // The SDK cancels a request whose future is dropped.
        let job = call("long_job", json!({ "steps": 1000, "interval_ms": 100 }))?;
        let ended = timeout(Duration::from_millis(300), self.client.call_tool(job)).await;
        ensure!(
            ended.is_err(),
            "the job ended before it was cancelled: {ended:?}"
        );
        let text = self.text("echo", json!({ "text": "still here" })).await?;
        equal("text", text.as_str(), "still here")
    }

    async fn tool_error(&self) -> Result<()> {
        let result = self
            .client
            .call_tool(call("fail", json!({ "message": "it broke" }))?)
            .await?;
        equal("isError", result.is_error, Some(true))?;
        contains(&serde_json::to_string(&result.content)?, "it broke")
    }

    async fn bad_arguments(&self) -> Result<()> {
        let result = self
            .client
            .call_tool(call("add", json!({ "a": "two", "b": 40 }))?)
            .await?;
        equal("isError", result.is_error, Some(true))
    }

    async fn unknown_tool(&self) -> Result<()> {
        let result = self
            .client
            .call_tool(call("no_such_tool", json!({}))?)
            .await;
        has_code(result, ErrorCode::INVALID_PARAMS)
    }

    async fn concurrent_calls(&self) -> Result<()> {
        let mut calls = JoinSet::new();
        for number in 0..20 {
            let peer = self.client.peer().clone();
            calls.spawn(async move {
                let message = format!("call {number}");
                let result = peer
                    .call_tool(call("echo", json!({ "text": message }))?)
                    .await?;
                equal("text", text_of(&result)?, message)
            });
        }
        while let Some(answer) = calls.join_next().await {
            answer??;
        }
        Ok(())
    }

    async fn ping(&self) -> Result<()> {
        if self.modern {
            return Err(Skip("2026-07-28 has no ping").into());
        }
        self.client
            .send_request(ClientRequest::PingRequest(PingRequest::default()))
            .await?;
        Ok(())
    }

    async fn text(&self, tool: &'static str, arguments: Value) -> Result<String> {
        let result = self
            .client
            .call_tool(call(tool, arguments)?)
            .await
            .context(tool)?;
        text_of(&result).context(tool)
    }

    async fn tool_names(&self) -> Result<Vec<String>> {
        let tools = self.client.list_all_tools().await?;
        Ok(tools
            .into_iter()
            .map(|tool| tool.name.into_owned())
            .collect())
    }

    async fn read(&self, uri: &str) -> Result<ResourceContents> {
        let result = self
            .client
            .read_resource(ReadResourceRequestParams::new(uri))
            .await?;
        result.contents.into_iter().next().context("no contents")
    }

    async fn read_text(&self, uri: &str) -> Result<String> {
        match self.read(uri).await? {
            ResourceContents::TextResourceContents { text, .. } => Ok(text),
            other => bail!("not a text: {other:?}"),
        }
    }

    async fn count(&self) -> Result<i64> {
        let counter = self.read_text(COUNTER).await?;
        let digits: String = counter
            .chars()
            .filter(|c| c.is_ascii_digit() || *c == '-')
            .collect();
        digits
            .parse()
            .with_context(|| format!("odd counter {counter:?}"))
    }
}

async fn next(events: &mut Subscription) -> Result<ServerNotification> {
    let event = timeout(Duration::from_secs(10), events.next())
        .await
        .context("no event")?;
    event?.context("the subscription has ended")
}

fn call(tool: &'static str, arguments: Value) -> Result<CallToolRequestParams> {
    Ok(CallToolRequestParams::new(tool).with_arguments(object(arguments)?))
}

fn object(value: Value) -> Result<JsonObject> {
    match value {
        Value::Object(object) => Ok(object),
        other => bail!("{other} is not an object"),
    }
}

fn text_of(result: &CallToolResult) -> Result<String> {
    let texts = result.content.iter().filter_map(|block| match block {
        ContentBlock::Text(content) => Some(content.text.as_str()),
        _ => None,
    });
    let text = texts.collect::<Vec<_>>().join("\n");
    ensure!(result.is_error != Some(true), "the tool failed: {text}");
    Ok(text)
}

fn has_code<T>(result: Result<T, ServiceError>, code: ErrorCode) -> Result<()> {
    match result {
        Err(ServiceError::McpError(error)) => equal("error code", error.code, code),
        Err(other) => bail!("expected error {code:?}, got {other}"),
        Ok(_) => bail!("expected error {code:?}, but it succeeded"),
    }
}
