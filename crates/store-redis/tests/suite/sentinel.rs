use std::iter;

use shoal_ports::{Lagged, Secret, SecretSource};
use shoal_store_redis::{ConnectError, RedisStore, RedisTls, Sentinel};
use tokio::time::timeout;

use crate::fixture::{
    append, begin, config, config_with, connect, ending, eventually, keeps_the_contract, node,
    once_available, session,
};
use crate::server::{Directory, LONG_ENOUGH, Server, knows_tls};
use crate::tls::{Authority, write};

async fn redis(replica_of: Option<u16>, more: &[&str]) -> (Server, u16) {
    Server::on_port(|port, _| {
        let mut args: Vec<String> = [
            "--port",
            &port.to_string(),
            "--save",
            "",
            "--repl-diskless-sync-delay",
            "0",
        ]
        .map(str::to_owned)
        .to_vec();
        if let Some(master) = replica_of {
            args.push("--replicaof".to_owned());
            args.push(format!("127.0.0.1 {master}"));
        }
        args.extend(more.iter().map(|word| (*word).to_owned()));
        args
    })
    .await
}

async fn sentinel(master: u16, more: impl Fn(u16, &Directory) -> String) -> (Server, u16) {
    Server::on_port(|port, directory: &Directory| {
        let file = directory.path("sentinel.conf");
        let text = format!(
            "port {port}\n\
             sentinel monitor main 127.0.0.1 {master} 1\n\
             sentinel down-after-milliseconds main 300\n\
             sentinel failover-timeout main 2000\n\
             {}\n",
            more(port, directory)
        );
        std::fs::write(&file, text).unwrap();
        vec![file.display().to_string(), "--sentinel".to_owned()]
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn goes_on_with_the_master_that_sentinel_promotes() {
    let (mut master, port) = redis(None, &[]).await;
    let (replica, _) = redis(Some(port), &[]).await;
    let linked = async || {
        let role: Vec<redis::Value> = replica.ask(&["ROLE"]).await;
        role.get(3) == Some(&redis::Value::BulkString(b"connected".to_vec()))
    };
    eventually("the replica is linked", &linked).await;
    let (watcher, sentinel) = sentinel(port, |_, _| String::new()).await;
    eventually("the sentinel knows the replica", || async {
        let known: Vec<redis::Value> = watcher.ask(&["SENTINEL", "REPLICAS", "main"]).await;
        known.len() == 1
    })
    .await;

    let [nobody] = crate::server::free_ports();
    let url = format!("redis+sentinel://127.0.0.1:{nobody},127.0.0.1:{sentinel}/main");
    keeps_the_contract(|| config(&url)).await;
    let (redis, store) = connect(config(&url)).await;
    let mut subscribed = store.bus.subscribe();
    let (id, epoch) = session(&store).await;
    let (start, call) = begin(&store, &id, epoch).await;
    let one = append(start, &[b"1"]);
    let at = store.log.append(&id, epoch, one).await.unwrap().last;
    eventually("the replica has it all", || async {
        let of = |info: String| {
            let line = info
                .lines()
                .find(|line| line.starts_with("master_repl_offset"));
            line.map(str::to_owned)
        };
        let there: String = replica.ask(&["INFO", "replication"]).await;
        let here: String = master.ask(&["INFO", "replication"]).await;
        of(here) == of(there)
    })
    .await;
    master.kill();

    let asked = [(id.clone(), epoch)];
    let held = once_available(|| store.directory.held(&asked)).await;
    assert_eq!(held, Ok(vec![true]));
    let owner = node("a");
    let claim = once_available(|| store.directory.claim(&id, &owner)).await;
    let epoch = claim.unwrap().epoch;
    let end = ending(at, &[b"2"], call);
    assert!(store.log.append(&id, epoch, end).await.unwrap().finished);
    let page = store.log.read(&id, start, 9).await.unwrap();
    assert_eq!(page.events.len(), 2);
    let next = timeout(LONG_ENOUGH, subscribed.next()).await.unwrap();
    assert_eq!(next, Some(Err(Lagged)));
    assert!(redis.status().reconnects >= 1);

    let unknown = config(&format!("redis+sentinel://127.0.0.1:{sentinel}/other"));
    let Err(ConnectError::Unreachable(why)) = RedisStore::connect(unknown).await else {
        panic!("there is no such master");
    };
    assert!(why.contains("knows no master other"), "{why}");
}

#[tokio::test]
async fn sentinels_may_have_a_password_and_certificates_of_their_own() {
    if !knows_tls() {
        println!("skipped: this redis-server was built without TLS");
        return;
    }
    let acl = [
        ["--user", "default on nopass -@all +ping"],
        ["--user", "shoal on >of-the-servers ~* &* +@all"],
    ];
    let acl: Vec<&str> = acl
        .iter()
        .flat_map(|[flag, user]| iter::once(*flag).chain(user.split(' ')))
        .collect();
    let (_master, port) = redis(None, &acl).await;
    let authority = Authority::new();
    let (certificate, key) = authority.issue();
    let (watcher, sentinel) = sentinel(port, |port, directory| {
        let file = |name: &str, text: &str| write(directory, name, text).display().to_string();
        format!(
            "port 0\n\
             tls-port {port}\n\
             tls-cert-file {}\n\
             tls-key-file {}\n\
             tls-ca-cert-file {}\n\
             sentinel auth-user main shoal\n\
             sentinel auth-pass main of-the-servers\n\
             user default on nopass -@all +ping\n\
             user watcher on >of-the-sentinels ~* &* +@all\n",
            file("cert.pem", &certificate),
            file("key.pem", &key),
            file("ca.pem", &authority.pem()),
        )
    })
    .await;
    let (certificate, key) = authority.issue();
    let file = |name: &str, text: &str| Some(write(&watcher.directory, name, text));
    let url = format!("redis+sentinel://localhost:{sentinel}/main");
    let right = config_with(&url, |redis| {
        redis.user = Some("shoal".to_owned());
        redis.password = password("of-the-servers");
        redis.tls = RedisTls {
            authority: file("ca.pem", &authority.pem()),
            certificate: file("own.pem", &certificate),
            key: file("own-key.pem", &key),
        };
        redis.sentinel = Sentinel {
            user: Some("watcher".to_owned()),
            password: password("of-the-sentinels"),
            tls: Some(true),
        };
    });
    let (_redis, store) = connect(right.clone()).await;
    session(&store).await;

    let mut wrong = right.clone();
    wrong.redis.sentinel.password = password("of-the-servers");
    let mut plain = right.clone();
    plain.redis.sentinel.tls = Some(false);
    plain.redis.tls = RedisTls::default();
    for wrong in [wrong, plain] {
        let wrong = RedisStore::connect(wrong).await;
        assert!(matches!(wrong, Err(ConnectError::Unreachable(_))));
    }
}

fn password(text: &str) -> Option<SecretSource> {
    Some(SecretSource::Value(Secret::new(text)))
}
