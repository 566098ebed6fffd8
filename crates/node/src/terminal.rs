//! Whoever sits at the terminal: sees how far a call is, and is asked what its tool wants to know.

mod elicitation;
mod progress;

use std::io::{self, BufRead as _, IsTerminal as _, Write as _};

use async_trait::async_trait;
use serde_json::{Value, json};

use crate::print::plain;
use crate::stdio::client::ClientHandler;
use elicitation::Person;

/// Back to the beginning of the line, and all of it away.
const CLEAR: &str = "\r\x1b[K";

/// The terminal of this process. What is shown there goes to standard error: standard output carries the result.
pub(crate) struct Terminal {
    /// Whether somebody sees it.
    shows: bool,
    /// Whether somebody can answer too.
    asks: bool,
    /// Whether a progress bar stands there.
    drawn: bool,
}

impl Terminal {
    /// What standard input and standard error are.
    pub(crate) fn of_process() -> Self {
        let shows = io::stderr().is_terminal();
        Self {
            shows,
            asks: shows && io::stdin().is_terminal(),
            drawn: false,
        }
    }

    fn clear(&mut self) {
        if std::mem::take(&mut self.drawn) {
            show(CLEAR);
        }
    }
}

#[async_trait]
impl ClientHandler for Terminal {
    fn capabilities(&self) -> Value {
        match self.asks {
            true => json!({ "elicitation": { "form": {}, "url": {} } }),
            false => json!({}),
        }
    }

    fn wants_progress(&self) -> bool {
        self.shows
    }

    fn progress(&mut self, params: &Value) {
        if self.shows {
            show(&format!("{CLEAR}{}", progress::line(params)));
            self.drawn = true;
        }
    }

    /// Also where nobody sits there: the line is all that is known of a task.
    fn tell(&mut self, line: &str) {
        self.clear();
        show(&format!("{}\n", plain(line)));
    }

    async fn answer(&mut self, method: &str, params: &Value) -> Option<Value> {
        if method != "elicitation/create" || !self.asks {
            return None;
        }
        self.clear();
        let params = params.clone();
        let asked = tokio::task::spawn_blocking(move || elicitation::ask(&params, &mut Here));
        // It fails only with the runtime.
        asked.await.ok()
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        self.clear();
    }
}

/// The person at this terminal.
struct Here;

impl Person for Here {
    fn tell(&mut self, line: &str) {
        show(&format!("{line}\n"));
    }

    fn ask(&mut self, question: &str) -> Option<String> {
        show(question);
        let mut line = String::new();
        match io::stdin().lock().read_line(&mut line) {
            Ok(0) | Err(_) => {
                show("\n");
                None
            }
            Ok(_) => Some(line.trim().to_owned()),
        }
    }
}

fn show(text: &str) {
    let mut terminal = io::stderr().lock();
    // A terminal that is gone shows nothing.
    let _ = terminal
        .write_all(text.as_bytes())
        .and_then(|()| terminal.flush());
}
