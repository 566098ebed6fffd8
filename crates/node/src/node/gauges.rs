use std::sync::Arc;

use shoal_rpc::Tls;
use shoal_telemetry::metrics::{self, CertificateValidity, Registration, TlsPort, metrics};

use super::NodeWatch;
use crate::admin::Observed as _;
use crate::config::Role;
use crate::reload::ConfigurationState;
use crate::storage::Storage;

pub(super) fn observe(
    watch: &Arc<NodeWatch>,
    configuration: &Arc<ConfigurationState>,
    storage: &Storage,
    tls: Option<Tls>,
) -> Vec<Registration> {
    let nodes = &metrics().nodes;
    let seen = Arc::downgrade(watch);
    let ready = nodes.observe_ready(move || {
        let watch = seen.upgrade()?;
        Some(watch.readiness().is_ready())
    });
    let seen = Arc::downgrade(watch);
    let roles = nodes.observe_roles(move |report| {
        let watch = seen.upgrade();
        for role in watch.iter().flat_map(|watch| watch.roles()) {
            report(match role {
                Role::Edge => metrics::Role::Edge,
                Role::Session => metrics::Role::Session,
                Role::Worker => metrics::Role::Worker,
            });
        }
    });
    let certificate = tls.map(|tls| {
        metrics()
            .tls
            .observe_certificate(TlsPort::Cluster, move || {
                let validity = tls.validity();
                CertificateValidity {
                    not_before: validity.not_before,
                    not_after: validity.not_after,
                }
            })
    });
    let seen = Arc::downgrade(watch);
    let distrusted = metrics()
        .tls
        .observe_distrusted(move || seen.upgrade()?.distrusted());
    let skew = nodes.observe_clock_skew(shoal_rpc::clock_skew);
    let seen = Arc::downgrade(configuration);
    let taken = move || seen.upgrade().map(|known| known.taken_at());
    let configuration = metrics().configuration.observe_last_success(taken);
    [ready, roles, skew, distrusted, configuration]
        .into_iter()
        .chain(certificate.into_iter().flatten())
        .chain(storage.observe())
        .collect()
}
