use shoal_ports::{Call, CallOutcome};
use shoal_protocol::Method;
use shoal_telemetry::metrics::{self, CountedOutcome, Failure, Operation, Transport, metrics};
use tokio::time::Instant;

pub(super) struct Measure<'a> {
    pool: &'a str,
    call: &'a Call,
    transport: Transport,
    began: Option<Instant>,
}

impl<'a> Measure<'a> {
    pub(super) fn begin(pool: &'a str, call: &'a Call, transport: Transport) -> Self {
        Self {
            pool,
            call,
            transport,
            began: metrics::enabled().then(Instant::now),
        }
    }

    /// A stopped call ends with the stop, even if its tool needs longer.
    pub(super) fn end(&self, outcome: &CallOutcome) {
        let Some(began) = self.began else {
            return;
        };
        let took = began.elapsed();
        let failure = Failure::of(outcome);
        let counted = CountedOutcome::with(outcome, failure);
        metrics().workers.ran(took, self.pool, counted);
        let Call { method, params, .. } = self.call;
        let name = || params.as_ref()?.member("name")?.string();
        let name = matches!(method, Method::ToolsCall | Method::PromptsGet).then(name);
        let name = name.flatten();
        let of = |wanted| name.as_deref().filter(|_| *method == wanted);
        let operation = Operation {
            tool: of(Method::ToolsCall),
            prompt: of(Method::PromptsGet),
            failure,
            transport: self.transport,
            http: None,
            ..Operation::new(method.as_str())
        };
        metrics().mcp.asked(took, &operation);
    }
}
