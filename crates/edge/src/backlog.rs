//! Limits the bytes of answers that wait to be written, per node and per principal.
//!
//! At a limit, Shoal drops answers without progress for [`STILL`], the longest-stalled first: the
//! principal's own at its limit, those of the largest holder at the node's limit. If that frees too
//! little, the new answer's client gets an error.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use parking_lot::Mutex;
use shoal_ports::{NodeLimits, Principal, PrincipalCounts};
use shoal_telemetry::metrics::{GivenUp, metrics};

use crate::load::Load;
use crate::refusal::BacklogFull;
use crate::writing::Writing;

/// Answers up to this size are not counted, because the number of requests limits them.
pub(crate) const SMALL: usize = 16 << 10;
const STILL: Duration = Duration::from_secs(1);

#[derive(Clone)]
pub(crate) struct Backlog(Arc<BacklogInner>);

struct BacklogInner {
    node: usize,
    per_principal: usize,
    load: Load,
    waiting: Mutex<WaitingAnswers>,
}

#[derive(Default)]
struct WaitingAnswers {
    next: u64,
    bytes: usize,
    of: PrincipalCounts,
    answers: BTreeMap<u64, BackloggedAnswer>,
}

struct BackloggedAnswer {
    principal: Principal,
    bytes: usize,
    writing: Option<Writing>,
}

#[derive(Clone)]
pub(crate) struct BacklogReader {
    backlog: Backlog,
    principal: Principal,
    writing: Option<Writing>,
}

impl Backlog {
    pub(crate) fn new(limits: &NodeLimits, load: Load) -> Self {
        // The limits need no minimum, because a single answer of any size fits.
        Self(Arc::new(BacklogInner {
            node: limits.answers_waiting_bytes,
            per_principal: limits.answers_waiting_bytes_per_principal,
            load,
            waiting: Mutex::default(),
        }))
    }

    pub(crate) fn reader(&self, principal: &Principal, writing: Option<&Writing>) -> BacklogReader {
        BacklogReader {
            backlog: self.clone(),
            principal: principal.clone(),
            writing: writing.cloned(),
        }
    }

    fn take(&self, reader: &BacklogReader, bytes: usize) -> Result<u64, BacklogFull> {
        let shared = &self.0;
        let own = &reader.principal;
        let mut waiting = shared.waiting.lock();
        // Without authentication, all callers are one principal and share the node's limit.
        if *own != Principal::anonymous()
            && !waiting.make_room(own, bytes, shared.per_principal, |waiting| {
                waiting.of.of(own)
            })
        {
            return Err(BacklogFull::Principal(shared.per_principal));
        }
        while !waiting.fits(waiting.bytes, bytes, shared.node) {
            let Some(most) = waiting.of.greatest().cloned() else {
                break;
            };
            if !waiting.give_up_one(&most) {
                return Err(BacklogFull::Node(shared.node));
            }
        }
        if let Some(writing) = &reader.writing {
            // The client's time without progress begins now, because the client had no data to read
            // before.
            writing.progressed();
        }
        let number = waiting.next;
        waiting.next += 1;
        waiting.bytes += bytes;
        waiting.of.add(own, bytes);
        let answer = BackloggedAnswer {
            principal: own.clone(),
            bytes,
            writing: reader.writing.clone(),
        };
        waiting.answers.insert(number, answer);
        shared.load.set_answer_bytes(waiting.bytes);
        Ok(number)
    }
}

impl WaitingAnswers {
    fn fits(&self, held: usize, more: usize, limit: usize) -> bool {
        held == 0 || held + more <= limit
    }

    fn make_room(
        &mut self,
        principal: &Principal,
        more: usize,
        limit: usize,
        held: impl Fn(&Self) -> usize,
    ) -> bool {
        while !self.fits(held(self), more, limit) {
            if !self.give_up_one(principal) {
                return false;
            }
        }
        true
    }

    fn give_up_one(&mut self, principal: &Principal) -> bool {
        let still = |answer: &BackloggedAnswer| Some(answer.writing.as_ref()?.still_for());
        let own = self.answers.iter();
        let own = own.filter(|(_, answer)| answer.principal == *principal);
        let stillest = own
            .filter_map(|(number, answer)| Some((still(answer)?, *number)))
            .max();
        let Some((_, number)) = stillest.filter(|(still, _)| *still >= STILL) else {
            return false;
        };
        if let Some(answer) = self.remove(number) {
            metrics().http.given_up(GivenUp::Crowded);
            tracing::info!(
                bytes = answer.bytes,
                "dropped an answer that its client does not read: other answers need the memory"
            );
            if let Some(writing) = answer.writing {
                writing.give_up();
            }
        }
        true
    }

    fn remove(&mut self, number: u64) -> Option<BackloggedAnswer> {
        let answer = self.answers.remove(&number)?;
        self.bytes -= answer.bytes;
        self.of.subtract(&answer.principal, answer.bytes);
        Some(answer)
    }
}

impl BacklogReader {
    /// Counts bytes until they are sent or dropped. Fails at a limit.
    pub(crate) fn keep(&self, text: Bytes) -> Result<Bytes, BacklogFull> {
        if text.len() <= SMALL {
            return Ok(text);
        }
        let number = self.backlog.take(self, text.len())?;
        let _held = BacklogPermit {
            number,
            backlog: self.backlog.clone(),
        };
        Ok(Bytes::from_owner(KeptText { text, _held }))
    }

    /// Counts bytes that Shoal cannot drop, until the permit is dropped. Fails at a limit.
    pub(crate) fn hold(&self, bytes: usize) -> Result<BacklogPermit, BacklogFull> {
        let still = Self {
            writing: None,
            ..self.clone()
        };
        Ok(BacklogPermit {
            number: self.backlog.take(&still, bytes)?,
            backlog: self.backlog.clone(),
        })
    }
}

struct KeptText {
    text: Bytes,
    _held: BacklogPermit,
}

pub(crate) struct BacklogPermit {
    number: u64,
    backlog: Backlog,
}

impl AsRef<[u8]> for KeptText {
    fn as_ref(&self) -> &[u8] {
        &self.text
    }
}

impl Drop for BacklogPermit {
    fn drop(&mut self) {
        let shared = &self.backlog.0;
        let mut waiting = shared.waiting.lock();
        waiting.remove(self.number);
        shared.load.set_answer_bytes(waiting.bytes);
    }
}

#[cfg(test)]
mod tests {
    use std::task::{Context, Poll};

    use bytes::Bytes;
    use shoal_ports::{NodeLimits, Principal};

    use super::{Backlog, BacklogFull, BacklogReader, STILL};
    use crate::load::Load;
    use crate::writing::Writing;

    const ONE: usize = 64 << 10;

    fn backlog(node: usize, per_principal: usize) -> Backlog {
        let limits = NodeLimits {
            answers_waiting_bytes: node * ONE,
            answers_waiting_bytes_per_principal: per_principal * ONE,
            ..NodeLimits::default()
        };
        Backlog::new(&limits, Load::default())
    }

    fn reader(backlog: &Backlog, principal: &str) -> (BacklogReader, Writing) {
        let writing = Writing::default();
        let reader = backlog.reader(&Principal::new(principal), Some(&writing));
        (reader, writing)
    }

    fn answer(count: usize) -> Bytes {
        Bytes::from(vec![b'x'; count * ONE])
    }

    fn given_up(writing: &Writing) -> bool {
        let cx = Context::from_waker(std::task::Waker::noop());
        writing.poll_given_up(&cx) == Poll::Ready(())
    }

    #[tokio::test(start_paused = true)]
    async fn a_principal_has_its_share_and_gets_it_back() {
        let backlog = backlog(8, 2);
        let (alice, _) = reader(&backlog, "alice");
        let (bob, _) = reader(&backlog, "bob");
        let held = alice.keep(answer(2)).unwrap();
        assert_eq!(alice.keep(answer(1)), Err(BacklogFull::Principal(2 * ONE)));
        let other = bob.keep(answer(2)).unwrap();
        let part = held.slice(ONE..);
        drop(held);
        assert_eq!(backlog.0.load.answer_bytes(), 4 * ONE, "some of it is left");
        drop(part);
        assert!(alice.keep(answer(1)).is_ok());
        drop(other);
        assert_eq!(backlog.0.load.answer_bytes(), 0);
        assert!(backlog.0.waiting.lock().of.is_empty());
        assert!(alice.keep(answer(3)).is_ok(), "one alone is kept");
        assert!(alice.keep(Bytes::from_static(b"{}")).is_ok());
    }

    #[tokio::test(start_paused = true)]
    async fn what_stands_still_makes_room_the_longest_first() {
        let backlog = backlog(8, 2);
        let (first, first_writing) = reader(&backlog, "alice");
        let (second, second_writing) = reader(&backlog, "alice");
        let (third, _) = reader(&backlog, "alice");
        let _first = first.keep(answer(1)).unwrap();
        tokio::time::advance(STILL / 2).await;
        let _second = second.keep(answer(1)).unwrap();
        second_writing.progressed();
        assert!(third.keep(answer(1)).is_err(), "nothing stands still yet");
        tokio::time::advance(STILL / 2).await;
        let _third = third.keep(answer(1)).unwrap();
        assert!(given_up(&first_writing));
        assert!(!given_up(&second_writing));
        assert_eq!(backlog.0.load.answer_bytes(), 2 * ONE);
    }

    #[tokio::test(start_paused = true)]
    async fn a_full_node_gives_up_what_is_whose_most_waits() {
        let backlog = backlog(4, 3);
        let (alice, alice_writing) = reader(&backlog, "alice");
        let (bob, bob_writing) = reader(&backlog, "bob");
        let (carol, _) = reader(&backlog, "carol");
        let _bob = bob.keep(answer(1)).unwrap();
        let _alice = alice.keep(answer(3)).unwrap();
        assert_eq!(carol.keep(answer(1)), Err(BacklogFull::Node(4 * ONE)));
        tokio::time::advance(STILL).await;
        assert!(carol.keep(answer(1)).is_ok());
        assert!(given_up(&alice_writing));
        assert!(!given_up(&bob_writing));
    }

    #[tokio::test(start_paused = true)]
    async fn without_authentication_only_the_node_counts() {
        let backlog = backlog(4, 1);
        let everybody = Principal::anonymous();
        let reader = backlog.reader(&everybody, None);
        let _held = reader.keep(answer(4)).unwrap();
        assert_eq!(reader.keep(answer(1)), Err(BacklogFull::Node(4 * ONE)));
    }
}
