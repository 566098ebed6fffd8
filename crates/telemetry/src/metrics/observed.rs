use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Weak};

use opentelemetry::KeyValue;
use parking_lot::Mutex;

use super::area::Measured;
use super::labels::Pair;

/// A callback. It passes each value, with its attributes, to the given closure.
type ReadCallback = dyn Fn(&mut dyn FnMut(f64, Vec<Pair>)) + Send + Sync;

/// The callbacks of one metric. Values with the same attributes are summed, so that two nodes in one process appear as
/// one.
#[derive(Clone, Default)]
pub(super) struct Callbacks(Arc<Mutex<Readers>>);

#[derive(Default)]
struct Readers {
    next: u64,
    readers: Vec<(u64, Arc<ReadCallback>)>,
}

impl fmt::Debug for Callbacks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Callbacks({})", self.0.lock().readers.len())
    }
}

impl Callbacks {
    pub(super) fn read(&self, mut to: impl FnMut(f64, &[KeyValue])) {
        // Calls the callbacks without the lock, because they may be slow or register further ones.
        let readers: Vec<Arc<ReadCallback>> = (self.0.lock().readers.iter())
            .map(|(_, read)| Arc::clone(read))
            .collect();
        let mut sums: HashMap<Vec<KeyValue>, f64> = HashMap::new();
        for read in readers {
            read(&mut |value, attributes| {
                let attributes = attributes.into_iter().map(KeyValue::from).collect();
                *sums.entry(attributes).or_default() += value;
            });
        }
        for (attributes, value) in sums {
            to(value, &attributes);
        }
    }
}

#[derive(Debug)]
pub(super) struct ObservedInstrument(pub(super) Option<Callbacks>);

impl ObservedInstrument {
    pub(super) fn observe<M: Measured>(
        &self,
        read: impl Fn(&mut dyn FnMut(M, Vec<Pair>)) + Send + Sync + 'static,
    ) -> Registration {
        let Some(source) = &self.0 else {
            return Registration(None);
        };
        let read = move |to: &mut dyn FnMut(f64, Vec<Pair>)| {
            read(&mut |value: M, attributes| {
                if let Some(value) = value.float() {
                    to(value, attributes);
                }
            });
        };
        let mut readers = source.0.lock();
        let id = readers.next;
        readers.next += 1;
        readers.readers.push((id, Arc::new(read)));
        Registration(Some((id, Arc::downgrade(&source.0))))
    }
}

/// A registered callback. Dropping it removes the callback's values.
#[must_use = "dropping it takes the values away: keep it beside what is observed, or call `forever`"]
pub struct Registration(Option<(u64, Weak<Mutex<Readers>>)>);

impl Registration {
    /// Keeps the callback until the process ends.
    pub fn forever(mut self) {
        self.0 = None;
    }
}

impl fmt::Debug for Registration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Registration")
    }
}

impl Drop for Registration {
    fn drop(&mut self) {
        let Some((id, readers)) = self.0.take().and_then(|(id, it)| Some((id, it.upgrade()?)))
        else {
            return;
        };
        // Drops the callbacks without the lock, because one may own another registration.
        let gone: Vec<_> = (readers.lock().readers)
            .extract_if(.., |(other, _)| *other == id)
            .collect();
        drop(gone);
    }
}
