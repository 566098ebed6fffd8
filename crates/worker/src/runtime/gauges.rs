use std::sync::{Arc, Weak};

use shoal_ports::Announcement;
use shoal_protocol::{RawJson, RawObject};
use shoal_telemetry::metrics::{self, ActorKind, NameKind, Registration, metrics};

use super::WorkerRuntime;

pub(super) struct RuntimeGauges {
    _registrations: [Registration; 7],
}

impl RuntimeGauges {
    pub(super) fn register(pool: &Arc<str>, worker: &Weak<WorkerRuntime>) -> Self {
        let all = metrics();
        if metrics::enabled() {
            all.known.add(NameKind::Pool, [Arc::clone(pool)]);
        }
        let read = |of: fn(&WorkerRuntime) -> u64| {
            let (pool, worker) = (Arc::clone(pool), Weak::clone(worker));
            move |report: &mut dyn FnMut(&str, u64)| {
                if let Some(worker) = worker.upgrade() {
                    report(&pool, of(&worker));
                }
            }
        };
        let actors = |of: fn(&WorkerRuntime) -> u64| {
            let worker = Weak::clone(worker);
            move |report: &mut dyn FnMut(ActorKind, u64)| {
                if let Some(worker) = worker.upgrade() {
                    report(ActorKind::Pool, of(&worker));
                }
            }
        };
        let (oldest, name) = (Weak::clone(worker), Arc::clone(pool));
        Self {
            _registrations: [
                (all.workers).observe_running(read(|it| it.forms.read().load().running as u64)),
                (all.workers).observe_restarts(read(|it| it.forms.read().restarts())),
                (all.pools).observe_queued(read(queued)),
                (all.pools).observe_capacity(read(|it| it.forms.read().load().capacity as u64)),
                (all.pools).observe_queue_age(move |report| {
                    if let Some(worker) = oldest.upgrade() {
                        let age = worker.ledger.waits_longest();
                        report(&name, age.unwrap_or_default());
                    }
                }),
                (all.actors).observe_mailbox(actors(queued)),
                (all.actors).observe_alive(actors(alive)),
            ],
        }
    }
}

fn queued(worker: &WorkerRuntime) -> u64 {
    worker.forms.read().load().queued as u64
}

fn alive(worker: &WorkerRuntime) -> u64 {
    let forms = worker.forms.read();
    let alive = forms.all().filter(|form| !form.over.is_cancelled());
    alive
        .map(|form| form.admission.load().capacity as u64)
        .sum()
}

pub(super) fn name(announced: &Announcement) {
    let Some(catalog) = announced.catalog.as_ref().filter(|_| metrics::enabled()) else {
        return;
    };
    let names = |items: &[RawJson]| -> Vec<String> {
        let name = |item: &RawJson| RawObject::of(item)?.get("name")?.string();
        items.iter().filter_map(name).collect()
    };
    let known = &metrics().known;
    known.add(NameKind::Tool, names(&catalog.tools));
    known.add(NameKind::Prompt, names(&catalog.prompts));
}
