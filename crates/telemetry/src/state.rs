//! What a process has one of.

use std::sync::{LazyLock, OnceLock};

use crate::metrics::{Exposition, Factory, Metrics};
use crate::trace::Tracer;

/// Everything that was set up.
#[derive(Debug)]
pub(crate) struct State {
    pub(crate) tracer: Option<Tracer>,
    pub(crate) metrics: Metrics,
    pub(crate) exposition: Option<Exposition>,
}

static STATE: OnceLock<State> = OnceLock::new();
static OFF: LazyLock<Metrics> = LazyLock::new(|| Metrics::new(&Factory::off()));

/// Sets the process up, once.
pub(crate) fn set(state: State) -> Result<&'static State, Box<State>> {
    match STATE.set(state) {
        Ok(()) => Ok(STATE.get().expect("it was set just now")),
        Err(state) => Err(Box::new(state)),
    }
}

pub(crate) fn tracer() -> Option<&'static Tracer> {
    STATE.get()?.tracer.as_ref()
}

pub(crate) fn metrics() -> &'static Metrics {
    STATE.get().map_or_else(|| &*OFF, |state| &state.metrics)
}

pub(crate) fn exposition() -> Option<&'static Exposition> {
    STATE.get()?.exposition.as_ref()
}
