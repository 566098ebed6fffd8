use std::collections::VecDeque;
use std::sync::Arc;

use parking_lot::Mutex;
use shoal_protocol::shown;
use tokio::sync::Notify;

const LINES: usize = 12;
const LINE: usize = 500;

/// A server's last stderr lines, which may hold secrets. Clones share the lines.
#[derive(Clone, Default)]
pub(crate) struct LastWords(Arc<(Mutex<VecDeque<String>>, Notify)>);

impl LastWords {
    pub(crate) fn push(&self, line: &str) {
        let mut lines = self.0.0.lock();
        if lines.len() == LINES {
            lines.pop_front();
        }
        lines.push_back(shown(&line.replace('\t', "    "), LINE));
        self.0.1.notify_waiters();
    }

    pub(crate) async fn more(&self) {
        self.0.1.notified().await;
    }

    pub(crate) fn lines(&self) -> Vec<String> {
        self.0.0.lock().iter().cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::{LINE, LINES, LastWords};

    #[test]
    fn the_last_lines_are_kept_short_and_without_what_a_terminal_would_obey() {
        let words = LastWords::default();
        for number in 0..100 {
            words.push(&format!("\tline {number}\u{1b}[2J"));
        }
        words.push(&"x".repeat(10 * LINE));
        let lines = words.lines();
        assert_eq!(lines.len(), LINES);
        assert_eq!(lines[LINES - 2], "    line 99[2J");
        assert_eq!(lines[LINES - 1].chars().count(), LINE);
    }
}
