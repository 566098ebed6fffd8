use shoal_ports::SecretSource;
use shoal_store_redis::{ConnectError, RedisConfig, RedisStore};

use crate::fixture::{config, config_with, connect, eventually, keeps_the_contract};
use crate::lists::keeps_lists;
use crate::quotas::counts_cells;
use crate::server::Server;

/// The rights that docs/redis.md documents.
const RIGHTS: &str = "on >s3cret@/ ~shoal:* &shoal:* -@all +@hash +@list +@scripting -script \
    +get +set +exists +unlink +pexpire +pttl +time +publish +subscribe +ping +hello +select";

#[tokio::test]
async fn a_user_with_few_rights_is_enough() {
    let (server, port) = Server::on_port(|port, _| {
        let mut args: Vec<String> = ["--port", &port.to_string(), "--save", "", "--user"]
            .map(str::to_owned)
            .to_vec();
        args.push("shoal".to_owned());
        args.extend(RIGHTS.split_whitespace().map(str::to_owned));
        args
    })
    .await;
    let url = format!("redis://shoal:s3cret%40%2F@127.0.0.1:{port}");
    keeps_the_contract(|| config(&url)).await;
    counts_cells(&connect(config(&url)).await.0).await;
    keeps_lists(&connect(config(&url)).await.1).await;

    let file = server.directory.path("password");
    std::fs::write(&file, "s3cret@/\n").unwrap();
    let by_file = || {
        config_with(&format!("redis://127.0.0.1:{port}"), |redis| {
            redis.user = Some("shoal".to_owned());
            redis.password = Some(SecretSource::File(file.clone()));
        })
    };
    let (redis, _) = connect(by_file()).await;
    let () = server
        .ask(&["ACL", "SETUSER", "shoal", "resetpass", ">another"])
        .await;
    std::fs::write(&file, "another").unwrap();
    let () = server.ask(&["CLIENT", "KILL", "USER", "shoal"]).await;
    eventually("it is back with the new password", || async {
        let status = redis.status();
        status.connected && status.news && status.reconnects > 0
    })
    .await;
    let twice = RedisConfig {
        url: url.clone(),
        ..by_file()
    };
    assert!(matches!(
        RedisStore::connect(twice).await,
        Err(ConnectError::Config(_))
    ));

    let wrong = format!("redis://shoal:hunter2@127.0.0.1:{port}");
    let Err(ConnectError::Unreachable(why)) = RedisStore::connect(config(&wrong)).await else {
        panic!("the password is wrong");
    };
    assert!(!why.contains("hunter2"), "{why}");
}
