//! Room for large bodies: so many bytes of them, and no more, are on an edge at once, whatever the number of clients.
//!
//! A body of up to [`SMALL`] bytes takes no room and waits for nothing: it has come with its head, in a buffer that the
//! connection has anyway, and `requests_in_flight` bounds how many there are. So large bodies cannot keep small calls
//! waiting, and a small call pays nothing for the limit.
//!
//! A larger one takes room before it is read: all that it announces, or all that a body may have where it announces
//! nothing. Nobody waits for more while holding some, hence nobody waits for ever. Whoever finds no room waits in turn,
//! unread, so that TCP holds the sender back; after `Timing::body_room` it is refused.
//!
//! The room is held until the answer is out. An answer has been worked for and is never refused, but counts: where it is
//! larger than its request, it takes what is missing beyond the limit, and room is given again when that is paid back.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::Semaphore;

use crate::config::Limits;
use crate::load::Load;
use crate::refusal::Refusal;

/// Bytes of a body that needs no room.
pub(crate) const SMALL: usize = 16 << 10;

/// Room is counted in pieces of so many bytes.
const PIECE: usize = 1024;

/// The room of one edge.
pub(crate) struct Room {
    limit: usize,
    wait: Duration,
    /// Pieces that nobody has.
    free: Semaphore,
    /// Pieces that answers have beyond the limit.
    overdrawn: AtomicUsize,
    load: Load,
}

/// Room that is given back when this is dropped.
pub(crate) struct Held {
    room: Arc<Room>,
    pieces: usize,
}

impl Room {
    pub(crate) fn new(limits: &Limits, wait: Duration, load: Load) -> Arc<Self> {
        // One body must fit, or it would be refused for ever.
        let limit = limits.bodies_in_flight_bytes.max(limits.body_bytes);
        Arc::new(Self {
            limit,
            wait,
            free: Semaphore::new(pieces(limit).min(Semaphore::MAX_PERMITS)),
            overdrawn: AtomicUsize::new(0),
            load,
        })
    }

    /// Room for `bytes`, as soon as it is there. First come, first served. Cancelled, it holds nothing.
    ///
    /// # Errors
    /// Where there is none in time.
    pub(crate) async fn take(self: &Arc<Self>, bytes: usize) -> Result<Held, Refusal> {
        let pieces = pieces(bytes);
        // So many that they fit into no limit at all are never there.
        let wanted = u32::try_from(pieces).unwrap_or(u32::MAX);
        let taken = match self.free.try_acquire_many(wanted) {
            Ok(taken) => Some(taken),
            Err(_) => tokio::time::timeout(self.wait, self.free.acquire_many(wanted))
                .await
                .ok()
                .and_then(Result::ok),
        };
        let Some(taken) = taken else {
            return Err(Refusal::NoRoom {
                limit: self.limit,
                small: SMALL,
            });
        };
        taken.forget();
        Ok(self.held(pieces))
    }

    /// The text of an answer, which holds the room that its request had until it has been sent or thrown away.
    pub(crate) fn carry(self: &Arc<Self>, request: Option<Held>, text: Bytes) -> Bytes {
        if text.len() <= SMALL {
            return text;
        }
        let mut held = request.unwrap_or_else(|| self.held(0));
        held.fit(text.len());
        Bytes::from_owner(Carried { text, _held: held })
    }

    fn held(self: &Arc<Self>, pieces: usize) -> Held {
        self.load.add_body_bytes(pieces * PIECE);
        Held {
            room: Arc::clone(self),
            pieces,
        }
    }

    /// Takes what is there, and what is not.
    fn overdraw(&self, pieces: usize) {
        let there = self.free.forget_permits(pieces);
        self.overdrawn.fetch_add(pieces - there, Ordering::Relaxed);
        self.load.add_body_bytes(pieces * PIECE);
    }

    /// Pays back what was overdrawn first.
    fn give_back(&self, pieces: usize) {
        let pay = |overdrawn: usize| Some(overdrawn.saturating_sub(pieces));
        let (Ok(overdrawn) | Err(overdrawn)) =
            self.overdrawn
                .fetch_update(Ordering::Relaxed, Ordering::Relaxed, pay);
        self.load.subtract_body_bytes(pieces * PIECE);
        self.free.add_permits(pieces.saturating_sub(overdrawn));
    }
}

impl Held {
    /// Holds what `bytes` take from now on. More is taken even where there is none.
    pub(crate) fn fit(&mut self, bytes: usize) {
        let wanted = pieces(bytes);
        if wanted > self.pieces {
            self.room.overdraw(wanted - self.pieces);
        } else {
            self.room.give_back(self.pieces - wanted);
        }
        self.pieces = wanted;
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.room.give_back(self.pieces);
    }
}

/// A text with its room.
struct Carried {
    text: Bytes,
    _held: Held,
}

impl AsRef<[u8]> for Carried {
    fn as_ref(&self) -> &[u8] {
        &self.text
    }
}

fn pieces(bytes: usize) -> usize {
    bytes.div_ceil(PIECE)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use bytes::Bytes;

    use super::{PIECE, Room, SMALL};
    use crate::config::Limits;
    use crate::load::Load;

    const LARGE: usize = 64 * PIECE;

    fn room(bytes: usize) -> (Arc<Room>, Load) {
        let (limits, load) = (
            Limits {
                body_bytes: LARGE,
                bodies_in_flight_bytes: bytes,
                ..Limits::default()
            },
            Load::default(),
        );
        (
            Room::new(&limits, Duration::from_secs(1), load.clone()),
            load,
        )
    }

    #[tokio::test(start_paused = true)]
    async fn who_comes_too_late_is_refused_and_leaves_nothing() {
        let (room, load) = room(2 * LARGE);
        let (first, second) = (
            room.take(LARGE).await.unwrap(),
            room.take(LARGE).await.unwrap(),
        );
        assert_eq!(load.body_bytes(), 2 * LARGE);
        assert!(room.take(1).await.is_err(), "it is full");
        assert_eq!(load.body_bytes(), 2 * LARGE);
        drop(first);
        let third = room.take(LARGE).await.unwrap();
        drop((second, third));
        assert_eq!(load.body_bytes(), 0);
        assert_eq!(room.free.available_permits() * PIECE, 2 * LARGE);
    }

    #[tokio::test(start_paused = true)]
    async fn a_large_body_is_not_overtaken() {
        let (room, _) = room(2 * LARGE);
        let held = room.take(LARGE + PIECE).await.unwrap();
        let mut large = Box::pin(room.take(LARGE));
        assert!(futures::poll!(&mut large).is_pending());
        let mut later = Box::pin(room.take(PIECE));
        assert!(
            futures::poll!(&mut later).is_pending(),
            "there is room for it, but it is not its turn"
        );
        drop(held);
        let large = large.await.unwrap();
        let later = later.await.unwrap();
        drop((large, later));
        assert_eq!(room.free.available_permits() * PIECE, 2 * LARGE);
    }

    #[tokio::test(start_paused = true)]
    async fn who_goes_away_while_waiting_is_forgotten() {
        let (room, _) = room(LARGE);
        let held = room.take(LARGE - PIECE).await.unwrap();
        let mut gone = Box::pin(room.take(LARGE));
        assert!(futures::poll!(&mut gone).is_pending());
        drop(gone);
        let last = room.take(PIECE).await.unwrap();
        drop((held, last));
        assert_eq!(room.free.available_permits() * PIECE, LARGE);
    }

    #[tokio::test(start_paused = true)]
    async fn an_answer_takes_the_place_of_its_request() {
        let (room, load) = room(2 * LARGE);
        let request = room.take(LARGE).await.unwrap();
        let text = Bytes::from(vec![b'1'; SMALL + 1]);
        let answer = room.carry(Some(request), text.clone());
        assert_eq!(answer, text);
        assert_eq!(load.body_bytes(), SMALL + PIECE, "less is held");
        let part = answer.slice(SMALL..);
        drop(answer);
        assert_eq!(load.body_bytes(), SMALL + PIECE, "some of it is left");
        drop(part);
        assert_eq!(load.body_bytes(), 0);
    }

    #[tokio::test(start_paused = true)]
    async fn answers_beyond_the_limit_are_paid_back_before_room_is_given() {
        let (room, load) = room(2 * LARGE);
        let held = room.take(LARGE).await.unwrap();
        let answer = room.carry(None, Bytes::from(vec![b'1'; 3 * LARGE]));
        assert_eq!(load.body_bytes(), 4 * LARGE);
        drop(held);
        assert!(room.take(1).await.is_err(), "3 of 2 are held");
        drop(answer);
        assert_eq!(load.body_bytes(), 0);
        assert_eq!(room.free.available_permits() * PIECE, 2 * LARGE);
        let small = room.carry(None, Bytes::from_static(b"{}"));
        assert_eq!((small.len(), load.body_bytes()), (2, 0));
    }

    #[tokio::test]
    async fn a_body_that_may_be_sent_fits() {
        let (room, _) = room(1);
        assert!(room.take(LARGE).await.is_ok());
    }
}
