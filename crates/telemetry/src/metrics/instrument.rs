use std::time::Duration;

use opentelemetry::metrics::{self, AsyncInstrumentBuilder, Meter};

use super::definition::{Definition, Kind};
use super::first;
use super::labels::Pair;
use super::observed::{Callbacks, ObservedInstrument};
use super::series::Series;

/// Without a meter, the instruments are off and cost one branch.
#[derive(Debug)]
pub(crate) struct Factory(Option<Meter>);

impl Factory {
    pub(crate) const fn off() -> Self {
        Self(None)
    }

    pub(crate) const fn on(meter: Meter) -> Self {
        Self(Some(meter))
    }

    pub(super) fn make<I: Instrument>(&self, of: &'static Definition) -> I {
        I::of(of, self.0.as_ref())
    }
}

pub(super) trait Instrument {
    fn of(definition: &'static Definition, meter: Option<&Meter>) -> Self;
}

impl Instrument for Counter {
    fn of(of: &'static Definition, meter: Option<&Meter>) -> Self {
        Self(meter.map(|meter| {
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
}

impl Instrument for Histogram {
    fn of(of: &'static Definition, meter: Option<&Meter>) -> Self {
        let Kind::Histogram(buckets) = of.kind else {
            unreachable!("{} is defined as a histogram", of.name);
        };
        Self(meter.map(|meter| {
            let histogram = meter
                .f64_histogram(of.name)
                .with_unit(of.unit)
                .with_description(of.description)
                .with_boundaries(buckets.to_vec())
                .build();
            Series::new(histogram)
        }))
    }
}

impl Instrument for ObservedInstrument {
    fn of(of: &'static Definition, meter: Option<&Meter>) -> Self {
        let Some(meter) = meter else {
            return Self(None);
        };
        let callbacks = Callbacks::default();
        let read = callbacks.clone();
        match of.kind {
            Kind::Gauge => {
                let _ = reading(meter.f64_observable_gauge(of.name), of, read).build();
            }
            Kind::UpDownCounter => {
                let _ = reading(meter.f64_observable_up_down_counter(of.name), of, read).build();
            }
            Kind::Counter => {
                let _ = reading(meter.f64_observable_counter(of.name), of, read).build();
            }
            Kind::Histogram(_) => unreachable!("{} is recorded, not observed", of.name),
        }
        Self(Some(callbacks))
    }
}

fn reading<'m, I>(
    builder: AsyncInstrumentBuilder<'m, I, f64>,
    of: &'static Definition,
    callbacks: Callbacks,
) -> AsyncInstrumentBuilder<'m, I, f64> {
    (builder.with_unit(of.unit))
        .with_description(of.description)
        .with_callback(move |to| callbacks.read(|value, attributes| to.observe(value, attributes)))
}

#[derive(Debug)]
pub(super) struct Counter(Option<Series<metrics::Counter<u64>>>);

impl Counter {
    /// `attributes` runs only when metrics are on.
    pub(super) fn add<A: AsRef<[Pair]>>(&self, count: u64, attributes: impl FnOnce() -> A) {
        if let Some(series) = &self.0 {
            series.with(attributes().as_ref(), |bound| bound.add(count));
        }
    }
}

#[derive(Debug)]
pub(super) struct Histogram(Option<Series<metrics::Histogram<f64>>>);

impl Histogram {
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
