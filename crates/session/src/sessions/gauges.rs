use std::sync::{Arc, Weak};

use shoal_telemetry::metrics::{ActorKind, Registration, SessionState, metrics};

use super::Node;

pub(super) fn observe(node: &Arc<Node>) -> Vec<Registration> {
    let all = metrics();
    vec![
        all.sessions.observe_held(reading(node, |node, report| {
            let (live, passive) = node.table.count();
            report(SessionState::Active, live as u64);
            report(SessionState::Passive, passive as u64);
        })),
        all.actors.observe_alive(reading(node, |node, report| {
            report(ActorKind::Session, node.actors() as u64);
        })),
        all.actors.observe_mailbox(reading(node, |node, report| {
            report(ActorKind::Session, node.waiting() as u64);
        })),
        all.streams.observe_log_bytes({
            let node: Weak<Node> = Arc::downgrade(node);
            move || node.upgrade().map_or(0, |node| node.kept())
        }),
        all.journal.observe_running({
            let running = node.driver.running.clone();
            move || running.load(std::sync::atomic::Ordering::Relaxed) as u64
        }),
    ]
}

fn reading<L: 'static>(
    node: &Arc<Node>,
    read: impl Fn(&Node, &mut dyn FnMut(L, u64)) + Send + Sync + 'static,
) -> impl Fn(&mut dyn FnMut(L, u64)) + Send + Sync + 'static {
    let node: Weak<Node> = Arc::downgrade(node);
    move |report| {
        if let Some(node) = node.upgrade() {
            read(&node, report);
        }
    }
}
