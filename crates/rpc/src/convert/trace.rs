use shoal_protocol::TraceContext;

use crate::proto::types::v1 as wire;

pub(crate) fn trace_out(trace: Option<&TraceContext>) -> Option<wire::Trace> {
    trace.map(|trace| wire::Trace {
        parent: trace.to_traceparent(),
        state: trace.tracestate().map(str::to_owned),
    })
}

pub(crate) fn trace_in(trace: Option<wire::Trace>) -> Option<TraceContext> {
    let trace = trace?;
    TraceContext::parse_trusted(&trace.parent, trace.state.as_deref())
}
