//! Finds the series of an instrument by the addresses of its attributes. The SDK hashes all attribute texts for every
//! measurement, which was a tenth of a small call's cost. A bound series costs a third of that.

use std::collections::HashMap;

use foldhash::fast::RandomState;
use opentelemetry::KeyValue;
use opentelemetry::metrics::{BoundCounter, BoundHistogram, Counter, Histogram};
use parking_lot::RwLock;

use super::labels::Pair;

/// Maximum series found by address. Each measurement of a further series binds it anew.
const MOST: usize = 4096;

pub(super) trait Bind {
    type Bound;

    fn bind(&self, attributes: &[KeyValue]) -> Self::Bound;
}

impl Bind for Counter<u64> {
    type Bound = BoundCounter<u64>;

    fn bind(&self, attributes: &[KeyValue]) -> Self::Bound {
        Self::bind(self, attributes)
    }
}

impl Bind for Histogram<f64> {
    type Bound = BoundHistogram<f64>;

    fn bind(&self, attributes: &[KeyValue]) -> Self::Bound {
        Self::bind(self, attributes)
    }
}

#[derive(Debug)]
pub(super) struct Series<I: Bind> {
    instrument: I,
    bound: RwLock<HashMap<Box<[Pair]>, I::Bound, RandomState>>,
}

impl<I: Bind> Series<I> {
    pub(super) fn new(instrument: I) -> Self {
        Self {
            instrument,
            bound: RwLock::default(),
        }
    }

    pub(super) fn with(&self, attributes: &[Pair], measure: impl FnOnce(&I::Bound)) {
        if let Some(bound) = self.bound.read().get(attributes) {
            return measure(bound);
        }
        let pairs: Vec<KeyValue> = attributes.iter().copied().map(KeyValue::from).collect();
        let bound = self.instrument.bind(&pairs);
        measure(&bound);
        let mut all = self.bound.write();
        if all.len() < MOST {
            all.insert(attributes.into(), bound);
        }
    }
}
