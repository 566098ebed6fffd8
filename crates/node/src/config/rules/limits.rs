//! Most numbers and times must be positive, and some have an order.

use super::{Broken, Settings};

macro_rules! those {
    ($settings:ident: [$($($part:ident).+),+ $(,)?], |$value:ident| $is:expr) => {
        [$((stringify!($($part).+), { let $value = &$settings.$($part).+; $is })),+]
            .into_iter()
            .filter_map(|(setting, is)| is.then_some(setting))
    };
}

pub(super) fn positive(settings: &Settings, broken: &mut Broken) {
    for setting in counts(settings, |is_zero| is_zero) {
        broken.add(setting, "must be at least 1");
    }
    for setting in times(settings, |is_zero| is_zero) {
        broken.add(setting, "must be longer than 0");
    }
}

/// Selects counts that must be positive by whether they are 0.
pub(in super::super) fn counts(
    settings: &Settings,
    is: impl Fn(bool) -> bool,
) -> Vec<&'static str> {
    those!(
        settings: [
            server.tls.handshakes,
            server.admin_tls.handshakes,
            limits.connections,
            limits.requests_per_connection,
            limits.requests,
            limits.requests_per_principal,
            limits.answers_waiting_bytes,
            limits.answers_waiting_bytes_per_principal,
            limits.headers,
            limits.body_bytes,
            limits.streams,
            limits.nesting,
            limits.sessions_per_node,
            limits.sessions_per_principal,
            limits.calls_per_session,
            limits.messages_per_session,
            redis.commands,
            streams.buffer,
            streams.events_per_stream,
            streams.bytes_per_session,
            streams.bytes,
            catalog.page_size,
            tasks.result_bytes,
            calls.attempts,
        ],
        |count| is(*count == 0)
    )
    .collect()
}

/// Selects times as [`counts`] does.
pub(in super::super) fn times(settings: &Settings, is: impl Fn(bool) -> bool) -> Vec<&'static str> {
    those!(
        settings: [
            server.header_timeout,
            server.idle_timeout,
            server.write_timeout,
            server.tls.reread,
            server.tls.handshake_timeout,
            server.admin_tls.reread,
            server.admin_tls.handshake_timeout,
            node.lease,
            cluster.patience,
            cluster.silence,
            cluster.tls.reread,
            redis.response_timeout,
            redis.connect_timeout,
            session.idle,
            tasks.after,
            tasks.ttl,
            tasks.poll_interval,
            session.sweep_every,
            streams.keep_alive,
            calls.timeout,
            reload.watch_every,
            shutdown.report_every,
        ],
        |period| is(period.get().is_zero())
    )
    .collect()
}

pub(super) fn bodies(settings: &Settings, broken: &mut Broken) {
    let limits = &settings.limits;
    let one = limits.body_bytes;
    let all = [
        (
            "limits.bodies_in_flight_bytes",
            limits.bodies_in_flight_bytes,
        ),
        (
            "limits.bodies_in_flight_bytes_per_principal",
            limits.bodies_in_flight_bytes_per_principal,
        ),
    ];
    for (setting, all) in all.iter().filter(|(_, all)| *all < one) {
        broken.add(
            *setting,
            format!(
                "{all} is less than one message may have (limits.body_bytes = {one}), which would never find \
                 room: raise this, or lower that"
            ),
        );
    }
}
