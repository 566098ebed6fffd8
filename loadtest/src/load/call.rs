mod ask;
mod progress;
mod task;

pub(super) use progress::{Job, Watch, start};

use http::HeaderValue;

use super::mix::Kind;
use crate::drive::text;
use crate::failure::Failure;
use crate::mcp::answer::{check_text, text_of};
use crate::mcp::client::Client;

const SHORT: usize = 32;

#[derive(Debug, Clone)]
pub(crate) struct Echo {
    pub(crate) tool: String,
    pub(crate) argument: String,
    pub(crate) prefix: String,
}

pub(super) struct Caller {
    pub(super) client: Client,
    /// Unique in the run.
    number: usize,
    calls: u64,
    counted: u64,
}

impl Caller {
    pub(super) fn new(client: Client, number: usize) -> Self {
        Self {
            client,
            number,
            calls: 0,
            counted: 0,
        }
    }

    /// After an error, the session's state may be outdated.
    pub(super) async fn call(&mut self, kind: Kind, echo: &Echo) -> Result<(), Failure> {
        self.calls += 1;
        match kind {
            Kind::Echo => self.echo(&echo.tool, echo, SHORT).await,
            Kind::Payload(bytes) => self.echo(&echo.tool, echo, bytes).await,
            Kind::Journaled => {
                let plain = Echo {
                    tool: "echo_once".to_owned(),
                    argument: "text".to_owned(),
                    prefix: String::new(),
                };
                self.echo(&plain.tool, &plain, SHORT).await
            }
            Kind::Progress(steps) => progress::call(&mut self.client, steps).await,
            Kind::Elicitation => {
                let restaurant = text(self.number, self.calls, SHORT);
                ask::call(&mut self.client, &restaurant, self.calls).await
            }
            Kind::Task => {
                let text = text(self.number, self.calls, SHORT);
                task::call(&mut self.client, echo, &text).await
            }
            Kind::Count => self.count().await,
            Kind::Update => {
                let tool = HeaderValue::from_static("increment_counter");
                let params = r#""name":"increment_counter","arguments":{}"#;
                self.tool(&tool, params, |result| {
                    text_of(result)?
                        .parse()
                        .map(|_: i64| ())
                        .map_err(|_| Failure::Wrong("the counter is no number".to_owned()))
                })
                .await
            }
        }
    }

    async fn echo(&mut self, tool: &str, echo: &Echo, bytes: usize) -> Result<(), Failure> {
        let text = text(self.number, self.calls, bytes);
        let params = format!(
            r#""name":"{tool}","arguments":{{"{}":"{text}"}}"#,
            echo.argument
        );
        let expected = format!("{}{text}", echo.prefix);
        let name = HeaderValue::from_str(tool)
            .map_err(|_| Failure::Wrong(format!("{tool} is no header")))?;
        self.tool(&name, &params, |result| check_text(result, &expected))
            .await
    }

    async fn count(&mut self) -> Result<(), Failure> {
        self.counted += 1;
        let expected = self.counted.to_string();
        let tool = HeaderValue::from_static("count_up");
        let params = r#""name":"count_up","arguments":{}"#;
        self.tool(&tool, params, |result| check_text(result, &expected))
            .await
    }

    async fn tool<T>(
        &mut self,
        name: &HeaderValue,
        params: &str,
        check: impl FnOnce(&str) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        self.client
            .request("tools/call", Some(name), params, check)
            .await
    }
}
