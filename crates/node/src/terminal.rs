//! Whoever sits at the terminal: sees how far a call is, and is asked what its tool wants to know. Answers may be given beforehand.

mod elicitation;
mod progress;

use std::io::{self, BufRead as _, IsTerminal as _};

use async_trait::async_trait;
use serde_json::{Value, json};

use crate::print::{err, plain};
use crate::stdio::client::ClientHandler;
use elicitation::{Answers, Person};

/// Back to the beginning of the line, and all of it away.
const CLEAR: &str = "\r\x1b[K";

/// The terminal of this process. What is shown there goes to standard error: standard output carries the result.
pub(crate) struct Terminal {
    /// Whether somebody sees it.
    shows: bool,
    /// Whether somebody can answer too.
    asks: bool,
    /// What need not be asked.
    answers: Answers,
    /// Whether a progress bar stands there.
    drawn: bool,
}

impl Terminal {
    /// What standard input and standard error are, and what was answered already.
    pub(crate) fn of_process(answers: &[(String, String)]) -> Self {
        let shows = io::stderr().is_terminal();
        Self {
            shows,
            asks: shows && io::stdin().is_terminal(),
            answers: answers.iter().cloned().collect(),
            drawn: false,
        }
    }

    fn clear(&mut self) {
        if std::mem::take(&mut self.drawn) {
            err(CLEAR);
        }
    }
}

#[async_trait]
impl ClientHandler for Terminal {
    fn capabilities(&self) -> Value {
        match (self.asks, self.answers.is_empty()) {
            (true, _) => json!({ "elicitation": { "form": {}, "url": {} } }),
            (false, false) => json!({ "elicitation": { "form": {} } }),
            (false, true) => json!({}),
        }
    }

    fn wants_progress(&self) -> bool {
        self.shows
    }

    fn progress(&mut self, params: &Value) {
        if self.shows {
            err(&format!("{CLEAR}{}", progress::line(params)));
            self.drawn = true;
        }
    }

    /// Also where nobody sits there: the line is all that is known of a task.
    fn tell(&mut self, line: &str) {
        self.clear();
        err(&format!("{}\n", plain(line)));
    }

    async fn answer(&mut self, method: &str, params: &Value) -> Option<Value> {
        let can_answer = self.asks || !self.answers.is_empty();
        if method != "elicitation/create" || !can_answer {
            return None;
        }
        self.clear();
        let (params, answers) = (params.clone(), self.answers.clone());
        let mut here = Here(self.asks);
        let asked =
            tokio::task::spawn_blocking(move || elicitation::ask(&params, &answers, &mut here));
        // It fails only with the runtime.
        asked.await.ok()
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        self.clear();
    }
}

/// The person at this terminal, if somebody can answer there.
struct Here(bool);

impl Person for Here {
    fn is_there(&self) -> bool {
        self.0
    }

    fn tell(&mut self, line: &str) {
        err(&format!("{}\n", plain(line)));
    }

    fn ask(&mut self, question: &str) -> Option<String> {
        err(&plain(question));
        let mut line = String::new();
        match io::stdin().lock().read_line(&mut line) {
            Ok(0) | Err(_) => {
                err("\n");
                None
            }
            Ok(_) => Some(line.trim().to_owned()),
        }
    }
}
