use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use http::HeaderValue;
use tokio::task::JoinSet;

use super::tally::{Phase, Tally};
use super::{Call, Plan, task};
use crate::connection::Goodbye;
use crate::failure::Failure;
use crate::mcp::answer::check_text;
use crate::mcp::client::Client;
use crate::mcp::{Mode, legacy, modern};
use crate::target::Target;

const CALL_TIMEOUT: Duration = Duration::from_secs(30);

const RECONNECT_PAUSE: Duration = Duration::from_millis(50);

pub(super) struct Session {
    number: usize,
    target: Target,
    mode: Mode,
    call: Call,
    tool: HeaderValue,
    client: Option<Client>,
    tally: Arc<Tally>,
    calls: u64,
}

/// Fails if a session cannot be opened: the load would be too small.
pub(super) async fn open_all(
    plan: &Plan,
    target: &Target,
    tally: &Arc<Tally>,
) -> anyhow::Result<Vec<Session>> {
    let tool = HeaderValue::from_str(&plan.call.tool).context("the tool's name is no header")?;
    let mut opening = JoinSet::new();
    for number in 0..plan.sessions {
        let session = Session {
            number,
            target: target.clone(),
            mode: plan.mode,
            call: plan.call.clone(),
            tool: tool.clone(),
            client: None,
            tally: Arc::clone(tally),
            calls: 0,
        };
        opening.spawn(session.open());
    }
    let mut sessions = Vec::with_capacity(plan.sessions);
    while let Some(opened) = opening.join_next().await {
        let session =
            opened?.with_context(|| format!("could not open a session at {}", plan.url))?;
        ensure!(
            !(plan.stateless && session.has_id()),
            "the server keeps sessions: {}",
            plan.url
        );
        sessions.push(session);
    }
    Ok(sessions)
}

impl Session {
    async fn open(mut self) -> Result<Self, Failure> {
        self.client = Some(self.connect().await?);
        Ok(self)
    }

    fn has_id(&self) -> bool {
        let session = self.client.as_ref().and_then(Client::session);
        session.is_some_and(legacy::Session::has_id)
    }

    async fn connect(&self) -> Result<Client, Failure> {
        let able = if self.call.as_task {
            modern::TASKS
        } else {
            "{}"
        };
        Client::open_able(&self.target, self.mode, Goodbye::Finish, able).await
    }

    pub(super) async fn run(mut self) {
        while !self.tally.is_in(Phase::Stop) {
            let measured = self.tally.is_in(Phase::Measure);
            let began = Instant::now();
            let outcome = match tokio::time::timeout(CALL_TIMEOUT, self.call()).await {
                Ok(outcome) => outcome,
                Err(_) => Err(Failure::Transport("the call took too long".to_owned())),
            };
            match outcome {
                Ok(()) => self.tally.answered(measured.then(|| began.elapsed())),
                Err(failure) => {
                    self.tally.refused(&failure);
                    self.client = None;
                    tokio::time::sleep(RECONNECT_PAUSE).await;
                }
            }
        }
    }

    async fn call(&mut self) -> Result<(), Failure> {
        if self.client.is_none() {
            self.client = Some(self.connect().await?);
        }
        let client = self.client.as_mut().expect("connected above");
        self.calls += 1;
        if let Some(progress) = &self.call.progress {
            return progress.call(client, &self.tool, self.calls).await;
        }
        let text = text(self.number, self.calls, self.call.text_bytes);
        let params = format!(
            r#""name":"{}","arguments":{{"{}":"{text}"}}"#,
            self.call.tool, self.call.argument
        );
        let expected = format!("{}{text}", self.call.answer_prefix);
        if self.call.as_task {
            return task::call(client, &self.tool, &params, &expected).await;
        }
        client
            .request("tools/call", Some(&self.tool), &params, |result| {
                check_text(result, &expected)
            })
            .await
    }
}

const ALPHABET: &str = "abcdefghijklmnopqrstuvwxyz";

/// The text is unique in this run, as far as `bytes` permits.
pub(crate) fn text(session: usize, call: u64, bytes: usize) -> String {
    let mut text = format!("{call:x}.{session:x}.");
    text.truncate(bytes);
    while text.len() < bytes {
        let at = text.len() % ALPHABET.len();
        let end = ALPHABET.len().min(at + bytes - text.len());
        text.push_str(&ALPHABET[at..end]);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::text;

    #[test]
    fn texts_have_the_length_asked_for_and_differ() {
        assert_eq!(text(3, 255, 32).len(), 32);
        assert_eq!(text(3, 255, 2).len(), 2);
        assert_ne!(text(3, 255, 32), text(4, 255, 32));
        assert_ne!(text(3, 255, 32), text(3, 256, 32));
    }
}
