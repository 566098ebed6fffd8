use std::net::SocketAddr;

use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;
use tokio::process::Command;
use tokio::time::timeout;

use crate::process::{SOON, Server, shoal};

const CLIENTS: usize = 500;

#[tokio::test]
async fn clients_leave_files_for_the_admin_port() {
    let limited = shoal(&[
        "serve",
        "--demo",
        "--listen",
        "127.0.0.1:0",
        "--admin",
        "127.0.0.1:0",
    ]);
    let limited = limited.as_std();
    let mut command = Command::new("sh");
    command
        .args(["-c", "ulimit -n 128; exec \"$0\" \"$@\""])
        .arg(limited.get_program())
        .args(limited.get_args())
        .kill_on_drop(true);
    for (name, _) in limited.get_envs() {
        command.env_remove(name);
    }
    let server = Server::of(command).await;
    let log = server.log();
    for part in ["limits.connections is 100000", "may open only 128 files"] {
        assert!(log.contains(part), "{log}");
    }

    let (_, address) = server.mcp.split_once("//").unwrap();
    let address: SocketAddr = address.trim_end_matches("/mcp").parse().unwrap();
    let mut clients = Vec::new();
    for _ in 0..CLIENTS {
        let mut client = TcpStream::connect(address).await.unwrap();
        client.write_all(b"GET /mcp HTTP/1.1\r\n").await.unwrap();
        clients.push(client);
    }
    for path in ["livez", "readyz", "livez"] {
        // Supervisors open a new connection for each probe.
        let client = reqwest::Client::builder().no_proxy().timeout(SOON);
        let answer = client
            .build()
            .unwrap()
            .get(format!("{}/{path}", server.admin));
        let answer = timeout(SOON, answer.send()).await.unwrap().unwrap();
        assert_eq!(answer.status(), 200, "{path}");
    }
    let log = server.log();
    assert!(!log.contains("cannot accept connections now"), "{log}");
}
