//! What nodes told of their rates, kept for a while after they are lost: what was done was done.

use std::collections::HashMap;

use shoal_ports::{NodeId, NodeReport, Step};

use super::Answer;

/// How long the steps of a lost node are of interest, in seconds: what is shown goes no further back.
const SHOWN_S: u64 = 15 * 60;
/// Lost nodes that are remembered.
const LOST: usize = 256;

/// The steps that each node told of last.
#[derive(Default)]
pub(super) struct History(HashMap<NodeId, Vec<Step>>);

impl History {
    /// Notes what nodes told; the steps of those that did not answer.
    pub(super) fn note(&mut self, answers: &[Answer<NodeReport>]) -> Vec<Step> {
        let told = |answer: &Answer<NodeReport>| {
            let report = answer.said.as_ref().ok()?;
            Some((answer.node.clone(), report.steps.clone()))
        };
        let told: HashMap<NodeId, Vec<Step>> = answers.iter().filter_map(told).collect();
        let newest = told.values().filter_map(|steps| last(steps)).max();
        let oldest = newest.unwrap_or_default().saturating_sub(SHOWN_S);
        self.0.retain(|node, steps| {
            !told.contains_key(node) && last(steps).is_some_and(|at| at >= oldest)
        });
        while self.0.len() > LOST {
            let first = self.0.iter().min_by_key(|(_, steps)| last(steps));
            let Some(first) = first.map(|(node, _)| node.clone()) else {
                break;
            };
            self.0.remove(&first);
        }
        let lost = self.0.values().flatten().cloned().collect();
        self.0.extend(told);
        lost
    }
}

fn last(steps: &[Step]) -> Option<u64> {
    Some(steps.last()?.at)
}
