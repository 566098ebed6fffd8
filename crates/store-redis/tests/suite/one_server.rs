use shoal_store_redis::{ConnectError, RedisStore};

use crate::fixture::{begin, config, config_with, connect, keeps_the_contract, session};
use crate::server::{IN_MEMORY, Server, free_ports};

#[tokio::test(flavor = "multi_thread")]
async fn keeps_the_contract_on_one_server() {
    let server = Server::on_socket(&IN_MEMORY).await;
    keeps_the_contract(|| config(&server.url())).await;
}

#[tokio::test]
async fn keeps_the_contract_in_another_database_over_tcp() {
    let (_server, port) = Server::on_port(|port, _| {
        let args = [
            "--port",
            &port.to_string(),
            "--save",
            "",
            "--appendonly",
            "no",
        ];
        args.map(str::to_owned).to_vec()
    })
    .await;
    let url = format!("redis://127.0.0.1:{port}/3");
    keeps_the_contract(|| config(&url)).await;
}

#[tokio::test]
async fn says_clearly_why_it_cannot_begin() {
    let [nobody] = free_ports();
    let unreachable = config(&format!("redis://user:hunter2@127.0.0.1:{nobody}"));
    let Err(ConnectError::Unreachable(why)) = RedisStore::connect(unreachable).await else {
        panic!("nobody is there");
    };
    assert!(why.contains(&nobody.to_string()), "{why}");
    assert!(!why.contains("hunter2"), "{why}");

    for wrong in [
        config("mysql://user:hunter2@h"),
        config("redis://user@h"),
        config_with("redis://h", |redis| redis.user = Some("shoal".to_owned())),
        config_with("redis://h", |redis| redis.prefix = "{x}".to_owned()),
        config_with("redis://h", |redis| redis.commands = 0),
    ] {
        let Err(ConnectError::Config(why)) = RedisStore::connect(wrong).await else {
            panic!("the configuration is wrong");
        };
        assert!(!why.contains("hunter2"), "{why}");
    }
    let debug = format!("{:?}", config("redis://user:hunter2@h"));
    assert!(!debug.contains("hunter2"), "{debug}");
}

#[tokio::test]
async fn refuses_a_replica() {
    let master = Server::on_socket(&IN_MEMORY).await;
    let [port] = free_ports::<1>();
    let replica = ["--replicaof", "127.0.0.1", &port.to_string()];
    let args: Vec<_> = IN_MEMORY.iter().chain(&replica).copied().collect();
    let replica = Server::on_socket(&args).await;
    let refused = RedisStore::connect(config(&replica.url())).await;
    let Err(ConnectError::Unreachable(why)) = refused else {
        panic!("a replica cannot serve");
    };
    assert!(why.contains("not a master"), "{why}");
    connect(config(&master.url())).await;
}

#[tokio::test]
async fn each_step_is_one_round_trip() {
    let server = Server::on_socket(&IN_MEMORY).await;
    let (redis, store) = connect(config(&server.url())).await;
    let (id, epoch) = session(&store).await;
    let before = redis.status();
    let (start, call) = begin(&store, &id, epoch).await;
    let end = crate::fixture::ending(start, &[b"end"], call);
    store.log.append(&id, epoch, end).await.unwrap();
    store.log.read(&id, start, 10).await.unwrap();
    let after = redis.status();
    assert_eq!(after.commands - before.commands, 3);
    assert_eq!((after.failures, after.in_flight), (0, 0));
    assert!(after.connected && after.news && after.outage.is_none());
    assert!(after.latency.max_us >= after.latency.p50_us);
}

#[tokio::test]
async fn all_keys_carry_the_prefix_and_expire() {
    let server = Server::on_socket(&IN_MEMORY).await;
    let config = config(&server.url());
    let prefix = format!("{}:", config.redis.prefix);
    let (_, store) = connect(config).await;
    let (id, epoch) = session(&store).await;
    let (start, _) = begin(&store, &id, epoch).await;
    let one = crate::fixture::append(start, &[b"one"]);
    store.log.append(&id, epoch, one).await.unwrap();
    let keys: Vec<String> = server.ask(&["KEYS", "*"]).await;
    assert_eq!(keys.len(), 3, "a lease, a session, a stream: {keys:?}");
    let session_life: i64 = {
        let key = keys.iter().find(|key| key.ends_with("}:s")).unwrap();
        server.ask(&["PTTL", key]).await
    };
    for key in keys {
        assert!(key.starts_with(&prefix), "{key}");
        let life: i64 = server.ask(&["PTTL", &key]).await;
        assert!(life > 0, "{key} never expires");
        if key.contains(":s:") {
            assert!(life >= session_life, "events outlive their session");
        }
    }
    store.directory.remove(&id, epoch).await.unwrap();
    let keys: Vec<String> = server.ask(&["KEYS", "*"]).await;
    assert_eq!(keys.len(), 1, "only the lease is left: {keys:?}");
}
