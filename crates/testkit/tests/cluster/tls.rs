use std::time::Duration;

use serde_json::json;
use shoal_testkit::cluster::{Builder, Cluster, Member};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::sleep;

use crate::client::{Client, progress_of, text_of, within};
use crate::session::outlives_its_owner;
use crate::{small, start};

/// The beginning of HTTP/2 without TLS: the preface and a settings frame.
const PLAINTEXT: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00";
/// The first byte of a TLS alert. HTTP/2 would begin with a frame length.
const ALERT: u8 = 0x15;
const OF_2041: f64 = 2_240_611_200.0;

fn secured() -> Builder {
    small()
        .workers(2)
        .tls()
        .setting("cluster.tls.reread", "100ms")
}

#[tokio::test]
async fn a_call_outlives_its_owner_over_tls() {
    let cluster = start(secured()).await;
    for member in [cluster.edges(), cluster.sessions()].concat() {
        assert_eq!(answer_to_plaintext(member).await, Some(ALERT));
    }
    outlives_its_owner(&cluster).await;
}

#[tokio::test]
async fn renewed_certificates_are_taken_while_a_call_goes_on() {
    let cluster = start(secured()).await;
    let client = Client::open(cluster.url()).await;
    let arguments = json!({ "nonce": "renewed", "count": 40, "ms": 100 });
    let mut events = client.stream(1, "steps_once", &arguments).await;
    let mut messages = vec![events.next().await.unwrap()];
    let before = broken_links(&cluster).await;
    cluster.certificates().unwrap().renew(1).unwrap();
    for member in cluster.members() {
        within(async {
            while metric(member, "shoal_tls_certificate_expiry_seconds").await != OF_2041 {
                sleep(Duration::from_millis(50)).await;
            }
        })
        .await;
    }
    messages.extend(events.rest().await);
    assert_eq!(text_of(messages.last().unwrap()), "renewed");
    assert_eq!(progress_of(&messages), (1..=40).collect::<Vec<_>>());
    assert_eq!(broken_links(&cluster).await, before);

    // New connections use the new certificate on both sides.
    let worker = cluster.workers()[0];
    worker.kill().await.unwrap();
    worker.start_again().await.unwrap();
    worker
        .wait_until_ready(Duration::from_secs(30))
        .await
        .unwrap();
    client.echo_patiently(2).await;
}

async fn answer_to_plaintext(member: &Member) -> Option<u8> {
    let address = member.dialled_at().unwrap();
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(PLAINTEXT).await.unwrap();
    let mut first = [0];
    let read = within(stream.read(&mut first)).await.unwrap();
    (read == 1).then_some(first[0])
}

async fn broken_links(cluster: &Cluster) -> f64 {
    let mut broken = 0.0;
    for member in cluster.members() {
        broken += metric(member, "shoal_rpc_disconnects_total").await;
    }
    broken
}

async fn metric(member: &Member, name: &str) -> f64 {
    let url = format!("http://{}/metrics", member.admin().address());
    let page = reqwest::get(url).await.unwrap().text().await.unwrap();
    let series = page.lines().filter(|line| line.starts_with(name));
    let values = series.map(|line| line.rsplit(' ').next().unwrap());
    values.map(|value| value.parse::<f64>().unwrap()).sum()
}
