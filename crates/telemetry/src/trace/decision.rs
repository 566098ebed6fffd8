//! Decides once, at the first span in Shoal, whether a trace is recorded.

use shoal_ports::matches_pattern;
use shoal_protocol::TraceContext;

use crate::config::{ParentSampling, Traces};

#[derive(Debug)]
pub(crate) struct SamplingDecision {
    follows_clients: bool,
    bound: u64,
    tools: Vec<(String, u64)>,
}

impl SamplingDecision {
    pub(crate) fn new(traces: &Traces) -> Self {
        Self {
            follows_clients: traces.parent == ParentSampling::Follow,
            bound: bound(traces.ratio),
            tools: (traces.tools.iter())
                .map(|it| (it.tool.clone(), bound(it.ratio)))
                .collect(),
        }
    }

    pub(crate) fn inherited(&self, parent: &TraceContext) -> Option<bool> {
        (self.follows_clients || !parent.is_foreign()).then(|| parent.is_sampled())
    }

    pub(crate) fn decide(&self, trace_id: u128, tool: Option<&str>) -> bool {
        let bound = tool
            .and_then(|tool| {
                (self.tools.iter()).find(|(pattern, _)| matches_pattern(pattern, tool))
            })
            .map_or(self.bound, |(_, bound)| *bound);
        place(trace_id) < bound
    }
}

/// Maps a trace id to a number as OpenTelemetry's `TraceIdRatioBased` does, so processes with the same ratio record the
/// same traces.
fn place(trace_id: u128) -> u64 {
    (trace_id as u64) >> 1
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_precision_loss,
    reason = "the ratio is checked to be 0 to 1, and a share needs no more than a float's precision"
)]
fn bound(ratio: f64) -> u64 {
    (ratio * (1_u64 << 63) as f64) as u64
}

#[cfg(test)]
mod tests {
    use shoal_protocol::TraceContext;

    use super::SamplingDecision;
    use crate::config::{ParentSampling, ToolRatio, Traces};

    const SAMPLED: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

    #[test]
    fn shares_are_kept_by_trace_id() {
        let decision = SamplingDecision::new(&Traces {
            ratio: 0.25,
            parent: ParentSampling::Follow,
            tools: [("debug*", 1.0), ("never", 0.0), ("*", 0.5)]
                .map(|(tool, ratio)| ToolRatio {
                    tool: tool.to_owned(),
                    ratio,
                })
                .into(),
            ..Traces::default()
        });
        let ids = (0..1_000_u128).map(|n| n * 18_446_744_073_709_551 + 1_000);
        let count = |tool: Option<&str>| {
            (ids.clone())
                .filter(|id| decision.decide(*id, tool))
                .count()
        };
        assert_eq!(count(None), 250);
        assert_eq!(count(Some("debug_all")), 1_000);
        assert_eq!(count(Some("never")), 0);
        assert_eq!(count(Some("other")), 500);
        // A smaller ratio records a subset.
        assert!(
            (ids.clone())
                .filter(|id| decision.decide(*id, None))
                .all(|id| decision.decide(id, Some("other")))
        );
    }

    #[test]
    fn a_parents_decision_holds_unless_it_is_a_clients_and_ignored() {
        let foreign = TraceContext::parse(SAMPLED, None).expect("good");
        let own = TraceContext::parse_trusted(SAMPLED, None).expect("good");
        for (parent, of_foreign) in [
            (ParentSampling::Follow, Some(true)),
            (ParentSampling::Ignore, None),
        ] {
            let decision = SamplingDecision::new(&Traces {
                parent,
                ..Traces::default()
            });
            assert_eq!(decision.inherited(&foreign), of_foreign);
            assert_eq!(decision.inherited(&own), Some(true));
        }
    }
}
