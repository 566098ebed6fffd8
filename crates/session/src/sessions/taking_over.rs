use shoal_ports::{GatewayError, SessionRef};
use shoal_protocol::TraceContext;
use shoal_telemetry::metrics::{self, TakeOver, metrics};
use shoal_telemetry::trace::{self, Span, attributes as key, names};
use tokio::time::Instant;

/// One take-over of a session. The calls that it resumes share its span.
pub(crate) struct TakingOver {
    since: Option<Instant>,
    outcome: TakeOver,
    span: Span,
}

impl TakingOver {
    pub(super) fn begin(to: &SessionRef) -> Self {
        let span = trace::internal(names::SESSION_TAKE_OVER)
            .parent(to.trace.as_ref())
            .start_with(|set| {
                set.set(key::MCP_SESSION_ID, to.session.as_str())
                    .set(key::ROLE, "session");
            });
        Self {
            since: metrics::enabled().then(Instant::now),
            outcome: TakeOver::Failed,
            span,
        }
    }

    pub(super) fn is_traced(&self) -> bool {
        self.span.is_recording()
    }

    pub(super) fn found(&mut self, brought: &TraceContext) {
        self.span.add_link(brought);
    }

    pub(super) fn done(&mut self, epoch: u64, calls: usize) {
        self.outcome = TakeOver::Done;
        let number = |number: u64| i64::try_from(number).unwrap_or(i64::MAX);
        self.span.set(key::EPOCH, number(epoch));
        self.span.set(key::CALLS, number(calls as u64));
    }

    pub(super) fn failed(&mut self, error: &GatewayError) {
        if matches!(error, GatewayError::Moved { .. }) {
            self.outcome = TakeOver::Lost;
        } else {
            self.span
                .record_error_with(TakeOver::Failed.as_str(), &error.to_string());
        }
    }
}

impl Drop for TakingOver {
    fn drop(&mut self) {
        self.span.set(key::OUTCOME, self.outcome.as_str());
        if let Some(since) = self.since {
            (metrics().sessions).taken_over(since.elapsed(), self.outcome);
        }
    }
}
