use std::time::Duration;

use serde_json::json;

use crate::check::{Ledger, Outage, Rules, Verdict, Violation, check};
use crate::history::{Answer, Channel, Ended, Entry, History, Message, Step, Tool, Work};

/// A history under construction, in which each step takes a second.
#[derive(Clone)]
pub(super) struct Story(pub(super) History);

pub(super) const NONCE: &str = "n";

impl Story {
    pub(super) fn begin() -> Self {
        let session = "s".to_owned();
        Self(History::default())
            .then(Step::Opening)
            .then(Step::Opened { session })
    }

    pub(super) fn then(mut self, step: Step) -> Self {
        let at = Duration::from_secs(self.0.entries.len() as u64);
        self.0.entries.push(Entry { at, step });
        self
    }

    pub(super) fn calls(self, tool: Tool) -> Self {
        self.requests(1, tool)
    }

    pub(super) fn requests(self, request: u64, tool: Tool) -> Self {
        let nonce = NONCE.to_owned();
        let work = Work {
            call: 1,
            tool,
            nonce,
            steps: 3,
            ms: 1,
        };
        let session = "s".to_owned();
        self.then(Step::Sent {
            request,
            session,
            work,
        })
    }

    pub(super) fn event(self, sequence: u64, message: Message) -> Self {
        self.receives(Some(&format!("a-1-{sequence:x}")), message)
    }

    pub(super) fn receives(self, id: Option<&str>, message: Message) -> Self {
        self.then(Step::Received {
            channel: Channel::Request(1),
            id: id.map(str::to_owned),
            message,
        })
    }

    pub(super) fn primed(self) -> Self {
        self.event(0, Message::Prime)
    }

    pub(super) fn step(self, sequence: u64, value: u64) -> Self {
        self.event(sequence, Message::Progress { token: 1, value })
    }

    pub(super) fn result(self, sequence: u64) -> Self {
        self.event(sequence, result(NONCE))
    }

    pub(super) fn ended(self, how: Ended) -> Self {
        self.then(Step::Ended {
            channel: Channel::Request(1),
            how,
            tag: "t".to_owned(),
            answered: false,
            cause: String::new(),
        })
    }

    pub(super) fn refused(self, status: u16) -> Self {
        self.then(Step::Refused {
            channel: Channel::Request(1),
            status,
            code: None,
            message: String::new(),
        })
    }

    pub(super) fn forgotten(self) -> Self {
        self.then(Step::Forgotten {
            session: "s".to_owned(),
            channel: Channel::Request(1),
        })
    }

    pub(super) fn told_later(self) -> Self {
        self.then(Step::Forgotten {
            session: "s".to_owned(),
            channel: Channel::Standalone,
        })
    }

    pub(super) fn judged(self, executed: &[&str], rules: &Rules) -> Verdict {
        let ledger: Ledger = executed.iter().copied().collect();
        check(&[self.0], &ledger, rules)
    }

    pub(super) fn shows(self, executed: &[&str], violation: Violation) {
        self.shows_under(executed, &Rules::default(), violation);
    }

    pub(super) fn shows_under(self, executed: &[&str], rules: &Rules, violation: Violation) {
        let verdict = self.judged(executed, rules);
        let found: Vec<_> = verdict.findings.iter().map(|f| f.violation).collect();
        assert_eq!(found, [violation], "{verdict:#?}");
    }

    pub(super) fn shows_nothing(self, executed: &[&str]) {
        self.shows_nothing_under(executed, &Rules::default());
    }

    pub(super) fn shows_nothing_under(self, executed: &[&str], rules: &Rules) {
        let verdict = self.judged(executed, rules);
        assert!(verdict.is_clean(), "{verdict:#?}");
    }
}

pub(super) fn result(text: &str) -> Message {
    let text = text.to_owned();
    answer(Answer::Result {
        text,
        failed: false,
    })
}

pub(super) fn error(code: i64) -> Message {
    let message = String::new();
    answer(Answer::Error { code, message })
}

pub(super) fn answer(answer: Answer) -> Message {
    Message::Response { request: 1, answer }
}

pub(super) fn question() -> Message {
    Message::Question {
        id: json!(7),
        text: NONCE.to_owned(),
    }
}

pub(super) fn edge_killed() -> Rules {
    Rules {
        outages: vec![Outage {
            member: "e".to_owned(),
            from: Duration::ZERO,
            until: Duration::from_secs(60),
        }],
        broke_at: [("t".to_owned(), "e".to_owned())].into(),
        ..Rules::default()
    }
}
