use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize};

use shoal_ports::{Dispatcher, Store};

use crate::config::SessionConfig;

pub(crate) struct CallDriver {
    pub(crate) config: Arc<SessionConfig>,
    pub(crate) store: Store,
    pub(crate) dispatcher: Arc<dyn Dispatcher>,
    pub(crate) running: Arc<AtomicUsize>,
    /// Whether the last journaled call used the store's reserve. If so, new calls are journaled before their start.
    pub(crate) is_full: AtomicBool,
}
