use shoal_ports::NEWEST_PROTOCOL;

use super::super::cluster_tls::plaintext_to_others;
use super::{Broken, Role, Settings};

pub(super) fn roles(settings: &Settings, broken: &mut Broken) {
    let (node, cluster) = (&settings.node, &settings.cluster);
    let (edge, session) = (node.is(Role::Edge), node.is(Role::Session));
    let mut wrong = |reason: &str| broken.add("node.roles", reason);
    if node.roles.is_empty() {
        return wrong("name at least one of edge, session and worker");
    }
    if !edge && !session {
        if cluster.join.is_empty() {
            wrong(
                "a process with workers alone needs nodes to work for: give --join HOST:PORT of an edge or \
                 session node (cluster.join)",
            );
        }
        return;
    }
    if edge != session && node.store.is_memory() {
        return wrong(
            "an edge without sessions, or sessions without an edge, share them with other processes through \
             Redis: give --store redis://HOST:PORT, or both roles",
        );
    }
    if cluster.listen.is_none() {
        if edge != session {
            return wrong(
                "edges and session nodes reach one another: give --cluster-listen ADDRESS:PORT \
                 (cluster.listen)",
            );
        }
        if !node.is(Role::Worker) {
            wrong(
                "without the role worker, workers of other processes must be able to join: give \
                 --cluster-listen ADDRESS:PORT (cluster.listen)",
            );
        }
    }
}

pub(super) fn cluster(settings: &Settings, broken: &mut Broken) {
    let cluster = &settings.cluster;
    let unspecified = cluster
        .listen
        .is_some_and(|address| address.ip().is_unspecified());
    if unspecified && cluster.advertise.is_none() {
        broken.add(
            "cluster.advertise",
            "other processes cannot dial 0.0.0.0 or [::]: say where they reach this one, as HOST:PORT",
        );
    }
    if let Some(address) = plaintext_to_others(cluster)
        && !cluster.insecure
    {
        broken.add(
            "cluster.listen",
            format!(
                "{address} can be reached by other machines, and without TLS whoever is there can act as a node or a worker: \
                 set certificate, key and authority of [cluster.tls], or listen on 127.0.0.1, or accept it with \
                 cluster.insecure = true"
            ),
        );
    }
    if !(1..=NEWEST_PROTOCOL).contains(&cluster.protocol) {
        broken.add(
            "cluster.protocol",
            format!("this release speaks the versions 1 to {NEWEST_PROTOCOL}"),
        );
    }
    let addresses = cluster.join.iter().map(|address| ("cluster.join", address));
    let advertised = cluster.advertise.iter();
    let addresses = addresses.enumerate();
    let addresses = addresses.map(|(at, (setting, address))| (format!("{setting}[{at}]"), address));
    let advertised = advertised.map(|address| ("cluster.advertise".to_owned(), address));
    for (setting, address) in addresses.chain(advertised) {
        let fit = address.rsplit_once(':').is_some_and(|(host, port)| {
            !host.is_empty() && !host.contains('/') && port.parse::<u16>().is_ok()
        });
        if !fit {
            broken.add(setting, format!("{address:?} is no HOST:PORT"));
        }
    }
}

pub(super) fn store(settings: &Settings, broken: &mut Broken) {
    if settings.node.store.is_memory() {
        return;
    }
    if let Err(error) = shoal_store_redis::check(&settings.redis_store()) {
        broken.add("node.store", format!("{error}; or \"memory\""));
    }
}
