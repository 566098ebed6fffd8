use std::sync::{Arc, LazyLock, OnceLock};

use opentelemetry_sdk::logs::SdkLoggerProvider;
use opentelemetry_sdk::metrics::SdkMeterProvider;

use crate::export::Background;
use crate::logging::Repeats;
use crate::metrics::{Exposition, Factory, Metrics};
use crate::trace::Tracer;

#[derive(Debug)]
pub(crate) struct State {
    pub(crate) tracer: Option<Tracer>,
    pub(crate) metrics: Metrics,
    pub(crate) exposition: Option<Exposition>,
    pub(crate) meters: Option<SdkMeterProvider>,
    pub(crate) loggers: Option<SdkLoggerProvider>,
    pub(crate) repeats: Option<Arc<Repeats>>,
    /// Absent without a collector.
    pub(crate) _runtime: Option<Background>,
}

static STATE: OnceLock<State> = OnceLock::new();
static OFF: LazyLock<Metrics> = LazyLock::new(|| Metrics::new(&Factory::off()));

pub(crate) fn set(state: State) -> Result<&'static State, Box<State>> {
    match STATE.set(state) {
        Ok(()) => Ok(STATE.get().expect("it was set just now")),
        Err(state) => Err(Box::new(state)),
    }
}

pub(crate) fn is_set() -> bool {
    STATE.get().is_some()
}

pub(crate) fn tracer() -> Option<&'static Tracer> {
    STATE.get()?.tracer.as_ref()
}

pub(crate) fn metrics() -> &'static Metrics {
    STATE.get().map_or_else(|| &*OFF, |state| &state.metrics)
}

pub(crate) fn has_metrics() -> bool {
    STATE.get().is_some_and(|state| state.meters.is_some())
}

pub(crate) fn loggers() -> Option<&'static SdkLoggerProvider> {
    STATE.get()?.loggers.as_ref()
}

pub(crate) fn exposition() -> Option<&'static Exposition> {
    STATE.get()?.exposition.as_ref()
}
