use std::time::Duration;

use shoal_telemetry::metrics::{
    ActorKind, AppendOutcome, ApprovalOutcome, AttachOutcome, AuthOutcome, AuthServerOutcome,
    AuthServerRequest, BeginOutcome, Body, CertificateValidity, CircuitState, ClaimOutcome,
    ClaimReason, CountedOutcome, Direction, DiscoveryRefusal, EndReason, EntryKind, Failure,
    HandOverOutcome, HandshakeOutcome, HttpRequest, HttpVersion, LeaseOutcome, LinkKind, NameKind,
    NodeState, Operation, PolicyOutcome, QueueOutcome, QuotaLeaseOutcome, QuotaOutcome,
    ReconcileOutcome, RefusalReason, ReloadOutcome, ResumeOutcome, RetryReason, Role, SessionState,
    ShedReason, StoreOutcome, StreamKind, TakeOver, TlsPort, Transport, WorkerState, metrics,
};

pub(crate) const MOMENT: Duration = Duration::from_millis(3);

pub(crate) fn record_all() {
    let all = metrics();
    all.known.replace(NameKind::Tool, ["add"]);
    all.known.replace(NameKind::Prompt, ["greet"]);
    all.known.replace(NameKind::Pool, ["math"]);
    all.known.add(NameKind::Pool, ["text"]);
    all.known.replace(NameKind::Quota, ["free"]);
    let operation = Operation {
        tool: Some("add"),
        prompt: Some("greet"),
        failure: Some(Failure::Code(-32602)),
        revision: Some("2025-11-25"),
        ..Operation::new("tools/call")
    };
    all.mcp.served(MOMENT, &operation);
    all.mcp.asked(MOMENT, &operation);
    let revision = Some("2025-11-25");
    all.mcp
        .session_ended(MOMENT, revision, Transport::Tcp, Some("expired"));
    all.http.answered(
        MOMENT,
        HttpRequest {
            method: "POST",
            route: "/mcp",
            status: 200,
            over_tls: true,
            version: HttpVersion::Http11,
        },
    );
    all.http.bytes(Direction::In, Body::Plain, 10);
    all.http.events(2);
    all.http.refused(RefusalReason::Quota);
    all.sessions.created();
    all.sessions.ended(EndReason::Deleted);
    all.sessions.passivated();
    all.sessions.claimed(ClaimReason::Woken, ClaimOutcome::Won);
    all.sessions.taken_over(MOMENT, TakeOver::Done);
    all.sessions.handed_over(HandOverOutcome::Released);
    all.streams.resumed(ResumeOutcome::Replayed);
    all.streams.appended(MOMENT, 3, AppendOutcome::Written);
    all.streams.appended(MOMENT, 3, AppendOutcome::Stale);
    all.streams.appended_bytes(90);
    all.streams.cut();
    all.streams.passed(2);
    all.journal.begun(MOMENT, BeginOutcome::Begun);
    all.journal.attached(AttachOutcome::Attached);
    all.pools.waited(MOMENT, "math", QueueOutcome::Dispatched);
    all.pools.called(MOMENT, "math", CountedOutcome::Completed);
    all.pools.shed("math", ShedReason::QueueFull);
    all.pools.retried("math", RetryReason::Busy);
    all.pools.circuit_opened("math");
    all.pools.attached("math", AttachOutcome::Unknown);
    all.workers.ran(MOMENT, "math", CountedOutcome::ToolError);
    all.workers.refused("math", ShedReason::Draining);
    all.security
        .authenticated("bearer", AuthOutcome::Accepted, "none");
    all.security
        .asked_server(AuthServerRequest::Keys, AuthServerOutcome::Answered);
    all.security.quota("free", QuotaOutcome::Allowed);
    (all.security).quota_lease("free", QuotaLeaseOutcome::Taken);
    (all.discovery).reconciled(ReconcileOutcome::Published);
    all.policy.decided(PolicyOutcome::Denied);
    all.policy.approved(ApprovalOutcome::Declined);
    all.policy.failed();
    all.policy.reloaded(ReloadOutcome::Changed);
    all.store
        .operated(MOMENT, "journal.begin", StoreOutcome::Done);
    all.store.reconnected();
    all.actors.failed(ActorKind::Session);
    all.nodes.renewed(MOMENT, LeaseOutcome::Renewed);
    all.nodes.lapsed();
    all.configuration.reloaded(ReloadOutcome::Changed);
    all.nodes.redelivered();
    all.routes.waited(MOMENT);
    all.routes.reattached();
    all.routes.lost_stream();
    all.routes.relayed();
    all.routes.given_up();
    all.rpc.connected(LinkKind::Worker);
    (all.tls).handshake(TlsPort::Clients, HandshakeOutcome::Agreed);
    all.rpc.disconnected(LinkKind::Worker);
    all.rpc.stalled(LinkKind::Worker);
    all.rpc.frame(LinkKind::Worker, Direction::Out, 100);
}

pub(crate) fn observe_all() {
    let all = metrics();
    for registration in [
        all.http.observe_active(|| 1),
        all.http.observe_bodies(|| 7),
        all.http.observe_answers(|| 8),
        all.sessions.observe_held(|to| to(SessionState::Active, 2)),
        all.streams.observe_open(|to| to(StreamKind::Call, 3)),
        all.streams.observe_log_bytes(|| 4),
        all.journal.observe_running(|| 6),
        all.pools.observe_in_flight(|to| to("math", 8)),
        all.pools.observe_queued(|to| to("math", 9)),
        all.pools.observe_awaiting(|to| to("math", 22)),
        all.pools.observe_capacity(|to| to("math", 10)),
        all.pools.observe_queue_age(|to| to("math", MOMENT)),
        all.pools
            .observe_workers(|to| to("math", WorkerState::Ready, 11)),
        all.pools
            .observe_circuits(|to| to("math", CircuitState::Open, 12)),
        all.workers.observe_running(|to| to("math", 20)),
        all.workers.observe_restarts(|to| to("math", 21)),
        all.catalog
            .observe_entries(|to| to("math", EntryKind::Tool, 13)),
        all.catalog.observe_conflicts(|| 14),
        all.store.observe_connected(|| true),
        all.store.observe_in_flight(|| 19),
        all.actors.observe_alive(|to| to(ActorKind::Session, 15)),
        all.actors.observe_mailbox(|to| to(ActorKind::Session, 16)),
        (all.nodes).observe_nodes(|to| to(Role::Edge, NodeState::Reachable, 17)),
        all.nodes.observe_ready(|| Some(true)),
        all.nodes.observe_clock_skew(|| Some(MOMENT)),
        all.tls.observe_distrusted(|| Some(23)),
        all.configuration.observe_last_success(|| Some(1)),
        all.discovery.observe_pools(|| 24),
        (all.discovery).observe_refused(|to| to(DiscoveryRefusal::NameTaken, 25)),
        all.discovery.observe_leader(|| true),
        all.discovery.observe_last_success(|| Some(1)),
        all.nodes.observe_roles(|to| to(Role::Edge)),
        all.rpc.observe_links(|to| to(LinkKind::Gateway, 18)),
    ] {
        registration.forever();
    }
    for registration in all.nodes.observe_lease(|| Some(MOMENT)) {
        registration.forever();
    }
    let validity = || CertificateValidity {
        not_before: 22,
        not_after: 45,
    };
    for registration in all.tls.observe_certificate(TlsPort::Cluster, validity) {
        registration.forever();
    }
}
