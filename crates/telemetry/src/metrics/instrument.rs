//! Instruments that are made from definitions, and cost one branch when metrics are off.

use std::time::Duration;

use opentelemetry::metrics::{self, Meter};

use super::definition::{Definition, Kind};
use super::first;
use super::labels::Pair;
use super::observed::{Observed, Source};
use super::series::Series;

/// Makes instruments; without a meter they are off.
#[derive(Debug)]
pub(crate) struct Factory(Option<Meter>);

impl Factory {
    pub(crate) const fn off() -> Self {
        Self(None)
    }

    pub(crate) const fn on(meter: Meter) -> Self {
        Self(Some(meter))
    }

    pub(super) fn counter(&self, of: &'static Definition) -> Counter {
        debug_assert_eq!(of.kind, Kind::Counter, "{}", of.name);
        Counter(self.0.as_ref().map(|meter| {
            let counter = meter
                .u64_counter(of.name)
                .with_unit(of.unit)
                .with_description(of.description)
                .build();
            for attributes in first::series(of) {
                counter.add(0, &attributes);
            }
            Series::new(counter)
        }))
    }

    pub(super) fn histogram(&self, of: &'static Definition) -> Histogram {
        let buckets = match of.kind {
            Kind::Histogram(buckets) => buckets,
            _ => unreachable!("{} is defined as a histogram", of.name),
        };
        Histogram(self.0.as_ref().map(|meter| {
            let histogram = meter
                .f64_histogram(of.name)
                .with_unit(of.unit)
                .with_description(of.description)
                .with_boundaries(buckets.to_vec())
                .build();
            Series::new(histogram)
        }))
    }

    /// A metric whose value is read when metrics are collected.
    pub(super) fn observed(&self, of: &'static Definition) -> Observed {
        let Some(meter) = &self.0 else {
            return Observed::off();
        };
        let source = Source::default();
        let read = source.clone();
        match of.kind {
            Kind::Gauge => {
                let _ = meter
                    .f64_observable_gauge(of.name)
                    .with_unit(of.unit)
                    .with_description(of.description)
                    .with_callback(move |to| {
                        read.read(|value, attributes| to.observe(value, attributes));
                    })
                    .build();
            }
            Kind::UpDownCounter => {
                let _ = meter
                    .f64_observable_up_down_counter(of.name)
                    .with_unit(of.unit)
                    .with_description(of.description)
                    .with_callback(move |to| {
                        read.read(|value, attributes| to.observe(value, attributes));
                    })
                    .build();
            }
            Kind::Counter => {
                let _ = meter
                    .f64_observable_counter(of.name)
                    .with_unit(of.unit)
                    .with_description(of.description)
                    .with_callback(move |to| {
                        read.read(|value, attributes| to.observe(value, attributes));
                    })
                    .build();
            }
            Kind::Histogram(_) => unreachable!("{} is recorded, not observed", of.name),
        }
        Observed::on(source)
    }
}

/// Counts.
#[derive(Debug)]
pub(super) struct Counter(Option<Series<metrics::Counter<u64>>>);

impl Counter {
    /// `attributes` is called only when metrics are on.
    pub(super) fn add<A: AsRef<[Pair]>>(&self, count: u64, attributes: impl FnOnce() -> A) {
        if let Some(series) = &self.0 {
            series.with(attributes().as_ref(), |bound| bound.add(count));
        }
    }
}

/// Gathers a distribution.
#[derive(Debug)]
pub(super) struct Histogram(Option<Series<metrics::Histogram<f64>>>);

impl Histogram {
    /// `attributes` is called only when metrics are on.
    pub(super) fn record<A: AsRef<[Pair]>>(
        &self,
        duration: Duration,
        attributes: impl FnOnce() -> A,
    ) {
        if let Some(series) = &self.0 {
            let seconds = duration.as_secs_f64();
            series.with(attributes().as_ref(), |bound| bound.record(seconds));
        }
    }
}
