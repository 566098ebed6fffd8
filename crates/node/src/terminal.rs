//! Shows progress, and asks the tool's questions unless the command line answers them.

mod elicitation;
mod progress;

use std::io::{self, BufRead as _, IsTerminal as _};

use async_trait::async_trait;
use serde_json::{Value, json};

use crate::print::{err, plain};
use crate::stdio::client::ClientHandler;
use elicitation::{FormAnswers, Person};

const CLEAR: &str = "\r\x1b[K";

/// Prints to standard error, because standard output carries the result.
pub(crate) struct Terminal {
    shows: bool,
    asks: bool,
    answers: FormAnswers,
    drawn: bool,
}

impl Terminal {
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

    /// Prints a line even if standard error is no terminal, because a running task shows nothing else.
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
        asked.await.ok()
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        self.clear();
    }
}

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
