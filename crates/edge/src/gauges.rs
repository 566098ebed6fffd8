use shoal_telemetry::metrics::{NameKind, Registration, metrics};

use crate::load::{Load, REQUESTS_PER_PRINCIPAL, STREAMS_PER_PRINCIPAL};

pub(crate) fn observe(load: &Load) -> Vec<Registration> {
    let all = metrics();
    let quotas = [STREAMS_PER_PRINCIPAL, REQUESTS_PER_PRINCIPAL];
    all.known.add(NameKind::Quota, quotas);
    let (active, bodies, answers, streams) =
        (load.clone(), load.clone(), load.clone(), load.clone());
    vec![
        all.http.observe_active(move || {
            let active = active.requests_in_flight() + active.open_streams();
            u64::try_from(active).unwrap_or(u64::MAX)
        }),
        all.http
            .observe_bodies(move || u64::try_from(bodies.body_bytes()).unwrap_or(u64::MAX)),
        all.http
            .observe_answers(move || u64::try_from(answers.answer_bytes()).unwrap_or(u64::MAX)),
        all.streams.observe_open(move |report| {
            for (kind, open) in streams.open_by_kind() {
                report(kind, open);
            }
        }),
    ]
}
