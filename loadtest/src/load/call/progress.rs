//! Every step must come once and in order, then the result.

use http::HeaderValue;

use crate::connection::Reply;
use crate::failure::Failure;
use crate::mcp::client::Client;
use crate::mcp::sse::Event;
use crate::resume::check::{CallCheck, SeenIds};
use crate::resume::violation::{Finding, Violation};

pub(in crate::load) struct Job {
    pub(in crate::load) reply: Reply,
    pub(in crate::load) watch: Watch,
}

pub(in crate::load) struct Watch {
    check: CallCheck,
    ids: SeenIds,
}

pub(super) async fn call(client: &mut Client, steps: usize) -> Result<(), Failure> {
    let Job {
        mut reply,
        mut watch,
    } = start(client, steps).await?;
    while let Some(event) = reply.next().await? {
        watch.take(&event)?;
    }
    client.give_back(reply);
    watch.finish()
}

pub(in crate::load) async fn start(client: &mut Client, steps: usize) -> Result<Job, Failure> {
    let id = client.next_id();
    let token = format!("job-{id}");
    let tool = HeaderValue::from_static("long_job");
    let params = format!(r#""name":"long_job","arguments":{{"steps":{steps},"interval_ms":0}}"#);
    let meta = format!(r#""progressToken":"{token}""#);
    let reply = client
        .start_with(id, "tools/call", Some(&tool), &params, &meta)
        .await?;
    let text = format!("done after {steps} steps");
    Ok(Job {
        reply,
        watch: Watch {
            check: CallCheck::new(id, token, steps, Some(text)),
            ids: SeenIds::default(),
        },
    })
}

impl Watch {
    pub(in crate::load) fn take(&mut self, event: &Event) -> Result<(), Failure> {
        if let Some(id) = &event.id
            && !self.ids.insert(id)
        {
            return Err(Failure::Wrong(format!("event id {id} came twice")));
        }
        if !event.data.is_empty() {
            self.check.message(&event.data);
        }
        Ok(())
    }

    pub(in crate::load) fn is_answered(&self) -> bool {
        self.check.is_answered()
    }

    pub(in crate::load) fn finish(self) -> Result<(), Failure> {
        verdict(&self.check.finish())
    }

    /// The stream was cut before its response, so missing messages do not count.
    pub(in crate::load) fn finish_cut(self) -> Result<(), Failure> {
        let mut findings = self.check.finish();
        findings.retain(|finding| {
            !matches!(
                finding.violation,
                Violation::Lost | Violation::MissingAnswer
            )
        });
        verdict(&findings)
    }
}

fn verdict(findings: &[Finding]) -> Result<(), Failure> {
    let Some(first) = findings.first() else {
        return Ok(());
    };
    let (kind, what, count) = (first.violation, &first.detail, findings.len());
    Err(Failure::Wrong(format!(
        "{kind:?} ({count} findings in the call), first: {what}"
    )))
}
