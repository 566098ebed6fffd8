use http::HeaderValue;
use serde::Deserialize;

use crate::failure::Failure;
use crate::mcp::answer::{Message, check_text, quote};
use crate::mcp::client::Client;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Progress {
    pub(crate) steps: u32,
    pub(crate) interval_ms: u32,
}

impl Progress {
    /// Each progress report must come once and in order. `token` must be unique for the client.
    pub(super) async fn call(
        &self,
        client: &mut Client,
        tool: &HeaderValue,
        token: u64,
    ) -> Result<(), Failure> {
        let Self { steps, interval_ms } = *self;
        let params = format!(
            r#""name":"long_job","arguments":{{"steps":{steps},"interval_ms":{interval_ms}}},"_meta":{{"progressToken":{token}}}"#
        );
        let mut reported = 0;
        let watch = |message: &Message<'_>| {
            let step = step_of(message, token)?;
            reported += 1;
            if step == f64::from(reported) {
                Ok(())
            } else {
                Err(Failure::Wrong(format!(
                    "step {step} in place of {reported}"
                )))
            }
        };
        let expected = format!("done after {steps} steps");
        client
            .request_watched("tools/call", Some(tool), &params, watch, |result| {
                check_text(result, &expected)
            })
            .await?;
        if reported == steps {
            Ok(())
        } else {
            Err(Failure::Wrong(format!(
                "{reported} of {steps} steps were reported"
            )))
        }
    }
}

fn step_of(message: &Message<'_>, token: u64) -> Result<f64, Failure> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Report {
        progress_token: u64,
        progress: f64,
    }
    let wrong = |what: &str| Failure::Wrong(format!("{what} among the reports of call {token}"));
    if message.method.as_deref() != Some("notifications/progress") {
        return Err(wrong(message.method.as_deref().unwrap_or("no method")));
    }
    let params = message.params.ok_or_else(|| wrong("no parameters"))?.get();
    let report: Report = serde_json::from_str(params).map_err(|_| wrong(&quote(params)))?;
    if report.progress_token == token {
        Ok(report.progress)
    } else {
        Err(wrong(&quote(params)))
    }
}

#[cfg(test)]
mod tests {
    use super::step_of;
    use crate::mcp::answer::Message;

    fn step(text: &str) -> Option<f64> {
        step_of(&Message::parse(text).unwrap(), 7).ok()
    }

    #[test]
    fn only_progress_of_the_call_itself_counts() {
        let report = |token: &str, method: &str| {
            format!(
                r#"{{"method":"notifications/{method}","params":{{"progressToken":{token},"progress":3.0,"total":10}}}}"#
            )
        };
        assert_eq!(step(&report("7", "progress")), Some(3.0));
        assert_eq!(step(&report("8", "progress")), None);
        assert_eq!(step(&report("7", "message")), None);
        assert_eq!(step(r#"{"method":"notifications/progress"}"#), None);
    }
}
