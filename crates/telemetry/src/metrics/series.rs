//! The series of an instrument, found again by the addresses of their attributes.
//!
//! The SDK finds a series by hashing the texts of all attributes, for every measurement: with nine measurements a call
//! that was a tenth of what a small call costs. What is found here is bound to its series, and costs a third of it.

use std::collections::HashMap;

use foldhash::fast::RandomState;
use opentelemetry::KeyValue;
use opentelemetry::metrics::{BoundCounter, BoundHistogram, Counter, Histogram};
use parking_lot::RwLock;

use super::labels::Pair;

/// Series of one instrument that are kept at hand; what comes after them is bound for each measurement.
const MOST: usize = 4096;

/// An instrument whose measurements can be bound to attributes.
pub(super) trait Bind {
    /// It, with attributes.
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

/// An instrument with the series that it has measured.
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

    /// Measures with these attributes.
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
