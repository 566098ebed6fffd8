use std::collections::HashMap;
use std::time::Duration;

use shoal_ports::WorkerId;
use tokio::time::Instant;

/// Longer than any call waits.
const REMEMBERED: Duration = Duration::from_secs(600);
const MOST: usize = 1024;

#[derive(Default)]
pub(crate) struct Departed(HashMap<WorkerId, Instant>);

impl Departed {
    pub(crate) fn left(&mut self, worker: &WorkerId) {
        let now = Instant::now();
        self.0.retain(|_, at| now.duration_since(*at) < REMEMBERED);
        if self.0.len() >= MOST {
            let first = self.0.iter().min_by_key(|(_, at)| **at);
            if let Some(first) = first.map(|(worker, _)| worker.clone()) {
                self.0.remove(&first);
            }
        }
        self.0.insert(worker.clone(), now);
    }

    pub(crate) fn came(&mut self, worker: &WorkerId) {
        self.0.remove(worker);
    }

    pub(crate) fn has(&self, worker: &WorkerId) -> bool {
        self.0.contains_key(worker)
    }
}

#[cfg(test)]
mod tests {
    use super::{Departed, MOST, REMEMBERED};
    use shoal_ports::WorkerId;

    #[tokio::test(start_paused = true)]
    async fn few_are_remembered_and_not_for_ever() {
        let mut departed = Departed::default();
        let name = |at: usize| WorkerId::new(format!("w{at}"));
        for at in 0..MOST + 5 {
            departed.left(&name(at));
            tokio::time::advance(REMEMBERED / (MOST as u32 * 4)).await;
        }
        assert_eq!(departed.0.len(), MOST);
        assert!(!departed.has(&name(0)) && departed.has(&name(MOST)));
        departed.came(&name(MOST));
        assert!(!departed.has(&name(MOST)));
        tokio::time::advance(REMEMBERED).await;
        departed.left(&name(0));
        assert_eq!(departed.0.len(), 1);
    }
}
