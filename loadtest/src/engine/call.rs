mod ask;
mod modern_task;

pub(crate) use modern_task::POLL_INTERVAL_MS;

use super::mix::Kind;
use crate::failure::Failure;
use crate::mcp::answer::text_of;
use crate::mcp::client::Client;
use crate::mcp::tools;

const SHORT: usize = 32;

#[derive(Debug, Clone)]
pub(crate) struct Echo {
    pub(crate) tool: String,
    pub(crate) argument: String,
    pub(crate) prefix: String,
}

impl Echo {
    pub(crate) fn by(tool: &str) -> Self {
        Self {
            tool: tool.to_owned(),
            argument: "text".to_owned(),
            prefix: String::new(),
        }
    }

    /// Returns the arguments of a call, and the expected text of the answer.
    fn call(&self, text: &str) -> (String, String) {
        let Self {
            argument, prefix, ..
        } = self;
        let arguments = format!(r#"{{"{argument}":"{text}"}}"#);
        (arguments, format!("{prefix}{text}"))
    }
}

pub(crate) struct Caller {
    pub(crate) client: Client,
    /// Unique in the run.
    number: usize,
    calls: u64,
    counted: u64,
}

impl Caller {
    pub(crate) fn new(client: Client, number: usize) -> Self {
        Self {
            client,
            number,
            calls: 0,
            counted: 0,
        }
    }

    /// After an error, do not use the session again, because its state may be outdated.
    pub(crate) async fn call(&mut self, kind: Kind, echo: &Echo) -> Result<(), Failure> {
        self.calls += 1;
        match kind {
            Kind::Echo => self.echo(echo, SHORT).await,
            Kind::Payload(bytes) => self.echo(echo, bytes).await,
            Kind::Journaled => self.echo(&Echo::by("echo_once"), SHORT).await,
            Kind::Progress(job) => job.call(&mut self.client).await,
            Kind::Elicitation => {
                let restaurant = text(self.number, self.calls, SHORT);
                ask::call(&mut self.client, &restaurant, self.calls).await
            }
            Kind::Task => {
                let text = text(self.number, self.calls, SHORT);
                modern_task::call(&mut self.client, echo, &text).await
            }
            Kind::Count => self.count().await,
            Kind::Update => {
                let wrong = |_| Failure::Wrong("the counter is no number".to_owned());
                let check = |result: &str| text_of(result)?.parse::<i64>().map_err(wrong);
                let called = self.client.call("increment_counter", "{}", check).await;
                called.map(drop)
            }
        }
    }

    async fn echo(&mut self, echo: &Echo, bytes: usize) -> Result<(), Failure> {
        let (arguments, expected) = echo.call(&text(self.number, self.calls, bytes));
        tools::call(&mut self.client, &echo.tool, &arguments, &expected).await
    }

    /// The answer is right only if each earlier call was executed exactly once.
    async fn count(&mut self) -> Result<(), Failure> {
        let next = self.counted + 1;
        tools::call(&mut self.client, "count_up", "{}", &next.to_string()).await?;
        self.counted = next;
        Ok(())
    }
}

const ALPHABET: &str = "abcdefghijklmnopqrstuvwxyz";

/// Returns a text that is unique in this run, as far as `bytes` permits.
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
