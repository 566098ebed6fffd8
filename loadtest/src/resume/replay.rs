//! A finished stream must be unchanged when a client requests it again.

use std::time::Duration;

use tokio::time::{Instant, timeout_at};

use super::chance::Chance;
use super::session::Session;
use crate::connection::Reply;
use crate::mcp::check::{CallCheck, digest};
use crate::mcp::violation::Violation;

const REPLAY_TIMEOUT: Duration = Duration::from_secs(10);

/// Requests the stream again after a random event, and compares it with `record`.
pub(super) async fn replay(
    session: &Session,
    chance: &mut Chance,
    record: &[(String, u64)],
    check: &mut CallCheck,
) {
    if record.len() < 2 {
        return;
    }
    let from = chance.index(record.len() - 1);
    let after = &record[from].0;
    let deadline = Instant::now() + REPLAY_TIMEOUT;
    let mut reply = match session.listen(Some(after), chance, deadline).await {
        Ok(reply) => reply,
        Err(failure) => {
            let detail = format!("replay after event {after}: {failure}");
            return check.find(Violation::RefusedResume, detail);
        }
    };
    session.tally.count(|counts| counts.replays += 1);
    // Empty events only prime a stream.
    let empty = digest("");
    for expected in record[from + 1..].iter().filter(|(_, data)| *data != empty) {
        let came = next(&mut reply, deadline).await;
        if came.as_ref() != Some(expected) {
            let came = came.map_or("nothing".to_owned(), |(id, _)| format!("event {id}"));
            let detail = format!(
                "replay after {after}: {came} instead of event {}",
                expected.0
            );
            return check.find(Violation::WrongReplay, detail);
        }
    }
}

/// `None` if no event with data comes in time.
async fn next(reply: &mut Reply, deadline: Instant) -> Option<(String, u64)> {
    loop {
        let event = timeout_at(deadline, reply.next()).await.ok()?.ok()??;
        if !event.data.is_empty() {
            return Some((event.id.unwrap_or_default(), digest(&event.data)));
        }
    }
}
