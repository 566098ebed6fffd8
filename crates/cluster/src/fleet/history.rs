use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use shoal_ports::{NodeId, NodeReport, Remembered, Step};

use super::NodeAnswer;

/// Seconds after which the rates of a lost node are forgotten.
const SHOWN_S: u64 = 15 * 60;
const NODES: usize = 256;
const TOLD: usize = 8;

/// The latest rates of each node, also after its loss. A cheap handle.
#[derive(Clone, Default)]
pub struct History(Arc<Mutex<HashMap<NodeId, Vec<Step>>>>);

impl History {
    /// Returns the rates of nodes that are not `present`, the most recently lost first.
    pub fn lost(&self, present: impl Fn(&NodeId) -> bool) -> Vec<Remembered> {
        let known = self.0.lock();
        let lost = known.iter().filter(|(node, _)| !present(node));
        let lost = lost.map(|(node, steps)| Remembered {
            node: node.to_string(),
            steps: steps.clone(),
        });
        let mut lost: Vec<Remembered> = lost.collect();
        lost.sort_by_key(|lost| std::cmp::Reverse(last(&lost.steps)));
        lost.truncate(TOLD);
        lost
    }

    pub(super) fn note(&self, answers: &[NodeAnswer<NodeReport>]) {
        let mut known = self.0.lock();
        for (node, report) in told(answers) {
            known.insert(node.clone(), report.steps.clone());
        }
        for (_, report) in told(answers) {
            for Remembered { node, steps } in &report.remembered {
                let node = NodeId::new(node.as_str());
                if known.get(&node).map_or(0, |steps| last(steps)) < last(steps) {
                    known.insert(node, steps.clone());
                }
            }
        }
        forget(&mut known);
    }

    pub(super) fn of_others(
        &self,
        answers: &[NodeAnswer<NodeReport>],
    ) -> HashMap<NodeId, Vec<Step>> {
        let mut others = self.0.lock().clone();
        for (node, _) in told(answers) {
            others.remove(node);
        }
        others
    }
}

fn told(answers: &[NodeAnswer<NodeReport>]) -> impl Iterator<Item = (&NodeId, &NodeReport)> {
    let reports = answers.iter();
    reports.filter_map(|answer| Some((&answer.node, answer.said.as_ref().ok()?)))
}

fn forget(known: &mut HashMap<NodeId, Vec<Step>>) {
    let newest = known.values().map(|steps| last(steps)).max();
    let oldest = newest.unwrap_or_default().saturating_sub(SHOWN_S);
    known.retain(|_, steps| !steps.is_empty() && last(steps) >= oldest);
    while known.len() > NODES {
        let first = known.iter().min_by_key(|(_, steps)| last(steps));
        let Some(first) = first.map(|(node, _)| node.clone()) else {
            break;
        };
        known.remove(&first);
    }
}

pub(super) fn last(steps: &[Step]) -> u64 {
    steps.last().map_or(0, |step| step.at)
}
