//! Pools that another program writes into a file while the cluster runs.

use std::fs;
use std::time::Duration;

use shoal_testkit::cluster::{Cluster, Tools};
use shoal_testkit::directory::Directory;
use tokio::time::sleep;

use crate::client::within;
use crate::start;
use crate::unnamed_pools::{call, put};
use crate::upstream::Upstream;

#[tokio::test]
async fn a_pool_that_appears_in_the_file_answers_calls_and_goes_with_its_entry() {
    let upstream = Upstream::start("0").await;
    let found = Directory::create("discovered").unwrap();
    let (file, headers) = (found.file("pools.toml"), found.file("found.headers"));
    let builder = Cluster::builder().edges(1).sessions(1).workers(1);
    let builder = builder
        .tools(Tools::Demo)
        .lease(Duration::from_secs(6))
        .setting("pools.demo.backend", "demo")
        .setting("catalog.unnamed_pools", "false")
        .setting("reload.watch_every", "100ms")
        .setting("discovery.file", file.to_str().unwrap());
    let cluster = start(builder).await;
    let edge = cluster.edges()[0];
    assert!(call(edge, "found_echo").await["error"].is_object());

    fs::write(&headers, "Authorization: Bearer found\n").unwrap();
    let entry = format!(
        "[pools.found]\nprefix = 'found_'\nlinger = '100ms'\nbackend.http = {{ url = {:?}, headers_file = {headers:?} }}\n",
        upstream.url
    );
    // An invalid pool in the file must not affect the valid pool.
    let other = "[pools.other]\nbackend.stdio.command = 'sh'\n";
    put(&file, &[&entry, other].concat());
    let answers = async || call(edge, "found_echo").await["result"]["content"][0]["text"] == "x";
    let until = async |wanted: bool| {
        while answers().await != wanted {
            sleep(Duration::from_millis(50)).await;
        }
    };
    within(until(true)).await;
    let seen = upstream.seen("tools/call").await;
    assert_eq!(seen["authorization"], "Bearer found", "{seen}");

    put(&file, other);
    within(until(false)).await;
    assert!(call(edge, "add").await["result"].is_object());
    cluster.end().await;
}
