use serde_json::{Map, Value, json};

use super::{connect, content, show};
use crate::cli::{Call, Era, OneTask, Remote, Tasks};
use crate::exit::{Code, Failure};
use crate::print::{Output, json, plain, print};
use crate::stdio::client::{BridgeClient, ClientError, FollowedTask, as_error, failed, object};

/// An interrupt cancels the task.
pub(super) async fn call(
    command: &Call,
    arguments: Map<String, Value>,
    token: Option<String>,
) -> Result<(), Failure> {
    let mut client = connect_with_tasks(&command.server, token, &command.answer).await?;
    let mut id = None;
    let done = tokio::select! {
        done = run(&mut client, command, arguments, &mut id) => Some(done),
        _ = tokio::signal::ctrl_c() => None,
    };
    let done = match done {
        Some(done) => done,
        None => Err(interrupt(&mut client, id.as_deref()).await),
    };
    client.finish().await;
    done
}

/// Runs `shoal tasks …`.
///
/// # Errors
/// As for a call; also if the task does not exist.
pub async fn tasks(command: &Tasks, token: Option<String>) -> Result<(), Failure> {
    let about = command.task();
    let mut client = connect_with_tasks(&about.server, token, &[]).await?;
    let done = match command {
        Tasks::Get(_) => get(&mut client, about).await,
        Tasks::Cancel(_) => cancel(&mut client, about).await,
        Tasks::Watch(_) => {
            let name = format!("task {}", about.id);
            follow(&mut client, &about.server, &about.id, &name, about.output).await
        }
    };
    client.finish().await;
    done
}

async fn connect_with_tasks(
    server: &Remote,
    token: Option<String>,
    answers: &[(String, String)],
) -> Result<BridgeClient, Failure> {
    if server.era == Some(Era::Legacy) {
        let none = "--era legacy has no such tasks: they came with the modern one";
        return Err(Failure::usage(none));
    }
    let mut client = connect(server, token, answers).await?;
    if client.declare_tasks() {
        return Ok(client);
    }
    client.finish().await;
    let none = format!(
        "{}: the server does not offer tasks (io.modelcontextprotocol/tasks)",
        server.url
    );
    Err(Failure::new(Code::Refused, none))
}

async fn run(
    client: &mut BridgeClient,
    command: &Call,
    arguments: Map<String, Value>,
    id: &mut Option<String>,
) -> Result<(), Failure> {
    let server = &command.server;
    let params = object(json!({ "name": command.name, "arguments": arguments }));
    let answer = client.request("tools/call", params).await;
    let answer = answer.map_err(|error| failed(&server.url, &error))?;
    let task = answer["taskId"].as_str();
    let Some(task) = task.filter(|_| answer["resultType"] == "task") else {
        return show(&command.name, &answer, command.output);
    };
    let task = id.insert(task.to_owned());
    if command.detach {
        let text = match command.output {
            Output::Json => json(&answer)?,
            Output::Text => format!("{}\n", plain(task)),
        };
        return Ok(print(&text)?);
    }
    client.tell(&format!("task {task}"));
    follow(client, server, task, &command.name, command.output).await
}

async fn follow(
    client: &mut BridgeClient,
    server: &Remote,
    id: &str,
    name: &str,
    output: Output,
) -> Result<(), Failure> {
    let followed = client.follow(id).await;
    let goes_on = |failure: &dyn std::fmt::Display| {
        format!("{failure}; the task {id} may go on: `shoal tasks watch` waits for it again")
    };
    let task = match followed {
        Ok(FollowedTask::Ended(task)) => task,
        Ok(FollowedTask::Asks) => {
            let asks = format!("{name} asks for something that cannot be answered here");
            let advice = "`shoal tasks watch` at a terminal answers forms and URLs, `shoal tasks cancel` stops it";
            let message = format!("{asks}; the task {id} waits for it: {advice}");
            return Err(Failure::new(Code::Tool, message));
        }
        Err(error @ ClientError::TimedOut) => {
            let failure = failed(&server.url, &error);
            return Err(Failure::new(Code::TimedOut, goes_on(&failure)));
        }
        Err(error @ ClientError::Lost { .. }) => {
            let failure = failed(&server.url, &error);
            return Err(Failure::new(Code::Unreachable, goes_on(&failure)));
        }
        Err(error) => return Err(failed(&server.url, &error)),
    };
    match task["status"].as_str() {
        Some("completed") => show(name, &task["result"], output),
        Some("cancelled") => Err(Failure::new(Code::Failed, format!("{name} was cancelled"))),
        _ => {
            let error = ClientError::Refused(as_error(&task["error"]));
            Err(failed(&server.url, &error))
        }
    }
}

async fn interrupt(client: &mut BridgeClient, task: Option<&str>) -> Failure {
    let Some(task) = task else {
        client.cancel("its user has interrupted it").await;
        return Failure::new(Code::Interrupted, "the call was taken back");
    };
    let message = match client.cancel_task(task).await {
        Ok(()) => format!("the task {task} was asked to stop"),
        Err(error) => format!("the task {task} may go on, it could not be asked to stop: {error}"),
    };
    Failure::new(Code::Interrupted, message)
}

async fn get(client: &mut BridgeClient, about: &OneTask) -> Result<(), Failure> {
    let task = client.about_task("tasks/get", &about.id).await;
    let task = task.map_err(|error| failed(&about.server.url, &error))?;
    let text = match about.output {
        Output::Json => json(&task)?,
        Output::Text => described(&task),
    };
    Ok(print(&text)?)
}

async fn cancel(client: &mut BridgeClient, about: &OneTask) -> Result<(), Failure> {
    let answer = client.about_task("tasks/cancel", &about.id).await;
    let answer = answer.map_err(|error| failed(&about.server.url, &error))?;
    let text = match about.output {
        Output::Json => json(&answer)?,
        Output::Text => format!("{} was asked to stop\n", plain(&about.id)),
    };
    Ok(print(&text)?)
}

fn described(task: &Value) -> String {
    let mut text = String::new();
    let mut line = |what: &str, said: Option<&str>| {
        if let Some(said) = said {
            text.push_str(&format!("{what:8} {}\n", plain(said)));
        }
    };
    line("task", task["taskId"].as_str());
    line("status", task["status"].as_str());
    line("created", task["createdAt"].as_str());
    line("changed", task["lastUpdatedAt"].as_str());
    for request in task["inputRequests"].as_object().into_iter().flatten() {
        let (_, request) = request;
        let message = request["params"]["message"].as_str();
        line("asks", message.or(request["method"].as_str()));
    }
    line("error", task["error"]["message"].as_str());
    if task["result"].is_object() {
        text.push_str(&content(&task["result"]));
    }
    text
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::described;

    #[test]
    fn a_task_is_described_without_what_a_terminal_would_obey() {
        let task = json!({
            "taskId": "t", "status": "input_required", "createdAt": "2026-07-28T00:00:00Z",
            "inputRequests": {
                "1": { "method": "elicitation/create", "params": { "message": "How\u{1b}[2J many?" } },
                "2": { "method": "roots/list" },
            },
        });
        let expected = "task     t\nstatus   input_required\ncreated  2026-07-28T00:00:00Z\n\
                        asks     How [2J many?\nasks     roots/list\n";
        assert_eq!(described(&task), expected);
        let done = json!({ "status": "completed", "result": { "content": [{ "type": "text", "text": "4" }] } });
        assert_eq!(described(&done), "status   completed\n4\n");
        let failed = json!({ "status": "failed", "error": { "code": 50002, "message": "lost" } });
        assert_eq!(described(&failed), "status   failed\nerror    lost\n");
    }
}
