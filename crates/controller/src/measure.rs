use std::sync::Arc;

use parking_lot::Mutex;
use shoal_telemetry::metrics::{Registration, metrics};

use crate::status::Report;

/// Exports the report as metrics until the registrations are dropped.
pub(crate) fn observe(report: &Arc<Mutex<Report>>) -> [Registration; 4] {
    let discovery = &metrics().discovery;
    let [pools, refused, leader, last_success] = [(); 4].map(|()| Arc::clone(report));
    [
        discovery.observe_pools(move || pools.lock().pools.len() as u64),
        discovery.observe_refused(move |to| {
            for refusal in &refused.lock().refused {
                to(refusal.reason, 1);
            }
        }),
        discovery.observe_leader(move || leader.lock().leads),
        discovery.observe_last_success(move || last_success.lock().last_success),
    ]
}
