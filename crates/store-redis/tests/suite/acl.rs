//! A user who may do no more than the store needs.

use shoal_store_redis::{ConnectError, RedisStore};

use crate::fixture::{config, connect, keeps_the_contract};
use crate::lists::keeps_lists;
use crate::quotas::counts_cells;
use crate::server::Server;

/// What is documented as enough.
const RIGHTS: &str = "on >s3cret@/ ~shoal:* &shoal:* -@all +@hash +@list +@scripting -script \
    +get +set +exists +unlink +pexpire +pttl +time +publish +subscribe +ping +hello +select";

#[tokio::test]
async fn a_user_with_few_rights_is_enough() {
    let (_server, port) = Server::on_port(|port, _| {
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

    let wrong = format!("redis://shoal:hunter2@127.0.0.1:{port}");
    let Err(ConnectError::Unreachable(why)) = RedisStore::connect(config(&wrong)).await else {
        panic!("the password is wrong");
    };
    assert!(!why.contains("hunter2"), "{why}");
}
