//! The readers of one flight, where its node is reached by two links.
//!
//! Two addresses may lead to one node for a moment: its own, and that of whatever the worker began with. Each link has a
//! seat of its own, but what the node goes on with is the same flight. A reader of one link that was replaced by that of
//! the other has not lost the call to anybody.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};

use parking_lot::Mutex;
use shoal_ports::CallControl;

/// The flights of a worker's links, by the memory of their node and their number.
#[derive(Default)]
pub(super) struct AllReaders(Mutex<Table>);

#[derive(Default)]
struct Table {
    flights: HashMap<(u64, u64), Weak<Readers>>,
    /// How many there may be before those that are over are looked for.
    sweep_at: usize,
}

/// The readers of one flight.
#[derive(Default)]
pub(super) struct Readers {
    latest: Mutex<Option<Arc<dyn CallControl>>>,
    turns: AtomicU64,
}

impl AllReaders {
    /// Those of a flight of the node with this memory.
    pub(super) fn of(&self, memory: u64, flight: u64) -> Arc<Readers> {
        let mut table = self.0.lock();
        if let Some(known) = table.flights.get(&(memory, flight)).and_then(Weak::upgrade) {
            return known;
        }
        if table.flights.len() >= table.sweep_at {
            table
                .flights
                .retain(|_, readers| readers.strong_count() > 0);
            table.sweep_at = (2 * table.flights.len()).max(64);
        }
        let new = Arc::<Readers>::default();
        table.flights.insert((memory, flight), Arc::downgrade(&new));
        new
    }
}

impl Readers {
    /// The node asks for the call by one of the links; the number of this turn.
    pub(super) fn turn(&self) -> u64 {
        self.turns.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// Whether it has not asked by another one since.
    pub(super) fn is_turn(&self, turn: u64) -> bool {
        self.turns.load(Ordering::Relaxed) == turn
    }

    /// The flight reads its call by this now.
    pub(super) fn read_by(&self, control: &Arc<dyn CallControl>) {
        *self.latest.lock() = Some(Arc::clone(control));
    }

    /// Whether somebody else reads the call.
    pub(super) fn are_replaced(&self) -> bool {
        let latest = self.latest.lock();
        latest.as_ref().is_some_and(|latest| latest.is_replaced())
    }
}
