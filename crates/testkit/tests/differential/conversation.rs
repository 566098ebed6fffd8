use std::fmt;
use std::net::SocketAddr;
use std::time::Duration;

use rand::rngs::StdRng;
use tokio::time::sleep;

use crate::answer::Answer;
use crate::pick::one;
use crate::shape::Shape;

const REVISIONS: [&str; 6] = [
    "2025-11-25",
    "2025-11-25",
    "2025-06-18",
    "2025-03-26",
    "2024-11-05",
    "2099-01-01",
];

const PATIENCE: usize = 40;
const AGAIN: Duration = Duration::from_millis(250);

pub(crate) struct Conversation {
    number: u64,
    random: StdRng,
    servers: [SocketAddr; 2],
    sessions: [String; 2],
    events: [String; 2],
}

pub(crate) struct Found {
    pub(crate) statuses: Vec<u16>,
    pub(crate) differences: Vec<Difference>,
}

pub(crate) struct Difference {
    conversation: u64,
    shape: Shape,
    answers: [String; 2],
}

impl Conversation {
    pub(crate) fn new(number: u64, random: StdRng, servers: [SocketAddr; 2]) -> Self {
        Self {
            number,
            random,
            servers,
            sessions: [String::new(), String::new()],
            events: ["0-0-0".to_owned(), "0-0-0".to_owned()],
        }
    }

    pub(crate) async fn hold(mut self, length: usize) -> Found {
        let (mut statuses, mut differences) = (Vec::new(), Vec::new());
        let [first, second] = self.ask(&self.opening()).await;
        statuses.push(first.status);
        self.sessions = [&first, &second].map(|answer| {
            answer
                .header("mcp-session-id")
                .unwrap_or_default()
                .to_owned()
        });
        self.compare(self.opening(), [&first, &second], &mut differences);
        self.ask(&self.initialized()).await;
        for _ in 0..length {
            let shape = Shape::random(&mut self.random);
            let answers = self.ask(&shape).await;
            statuses.push(answers[0].status);
            for (event, answer) in self.events.iter_mut().zip(&answers) {
                if let Some(id) = answer.event_id() {
                    id.clone_into(event);
                }
            }
            self.compare(shape, [&answers[0], &answers[1]], &mut differences);
        }
        Found {
            statuses,
            differences,
        }
    }

    async fn ask(&self, shape: &Shape) -> [Answer; 2] {
        let ask = async |at: usize| {
            let request = shape.bytes(&self.sessions[at], &self.events[at]);
            let mut answer = Answer::to(self.servers[at], &request).await;
            // 503 means that a busy server did not run the request.
            for _ in 0..PATIENCE {
                if answer.status != 503 {
                    break;
                }
                sleep(AGAIN).await;
                answer = Answer::to(self.servers[at], &request).await;
            }
            answer
        };
        let (first, second) = tokio::join!(ask(0), ask(1));
        [first, second]
    }

    fn compare(&self, shape: Shape, answers: [&Answer; 2], differences: &mut Vec<Difference>) {
        // Whether an answer is a stream depends on timing.
        let [one, other] = answers;
        if one.is_stream() != other.is_stream()
            && one.status == other.status
            && one.messages() == other.messages()
        {
            return;
        }
        let is_batch = shape.body.starts_with('[');
        let answers = [0, 1].map(|at| answers[at].normal(&self.sessions[at], is_batch));
        if answers[0] != answers[1] {
            differences.push(Difference {
                conversation: self.number,
                shape,
                answers,
            });
        }
    }

    fn opening(&self) -> Shape {
        let revision = one(&mut self.random.clone(), &REVISIONS);
        let body = format!(
            r#"{{"jsonrpc":"2.0","id":"open","method":"initialize","params":{{"protocolVersion":"{revision}","capabilities":{{}},"clientInfo":{{"name":"differential","version":"1"}}}}}}"#
        );
        post("", body)
    }

    fn initialized(&self) -> Shape {
        let body = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
        post("Mcp-Session-Id: {session}\r\n", body.to_owned())
    }
}

fn post(lines: &str, body: String) -> Shape {
    let head = format!(
        "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n\
         Accept: application/json, text/event-stream\r\n{lines}"
    );
    Shape {
        method: "POST",
        head,
        body,
    }
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let body: String = self.shape.body.chars().take(600).collect();
        write!(
            f,
            "--- conversation {}\n{}\n{body}\n--- one process\n{}\n--- cluster\n{}",
            self.conversation,
            self.shape.head.replace("\r\n", "\n"),
            self.answers[0],
            self.answers[1]
        )
    }
}
