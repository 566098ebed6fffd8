use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::time::Duration;

use nix::sys::signal::Signal;
use nix::time::{ClockId, clock_gettime};
use tempfile::TempDir;
use tokio::time::timeout;

use crate::process::{SOON, Server, shoal};
use crate::reload::setting::{ConfigFile, fixture};

struct Manager {
    socket: tokio::net::UnixDatagram,
}

impl Manager {
    fn at(address: &SocketAddr) -> Self {
        let socket = UnixDatagram::bind_addr(address).unwrap();
        socket.set_nonblocking(true).unwrap();
        let socket = tokio::net::UnixDatagram::from_std(socket).unwrap();
        Self { socket }
    }

    async fn hears(&self, wanted: &str) -> (String, Vec<String>) {
        let mut before = Vec::new();
        let heard = async {
            loop {
                let mut message = [0; 2048];
                let length = self.socket.recv(&mut message).await.unwrap();
                let message = String::from_utf8(message[..length].to_vec()).unwrap();
                if message.contains(wanted) {
                    return message;
                }
                before.push(message);
            }
        };
        let heard = timeout(SOON, heard).await;
        (
            heard.unwrap_or_else(|_| panic!("no {wanted}: {before:?}")),
            before,
        )
    }
}

async fn served(config: &ConfigFile, name: &str) -> Server {
    let any = "127.0.0.1:0";
    let mut command = shoal(&["serve", "--admin", any, "--listen", any]);
    command
        .args(["--config", config.path()])
        .env("NOTIFY_SOCKET", name)
        .env("WATCHDOG_USEC", "200000")
        .env("SHOAL_SHUTDOWN__BALANCER_DELAY", "0s");
    Server::announced(command).await
}

fn says(message: &str, line: &str) -> bool {
    message.lines().any(|said| said == line)
}

#[tokio::test]
async fn a_service_manager_hears_that_a_process_is_ready_reloads_lives_and_stops() {
    let directory = TempDir::new().unwrap();
    let path = directory.path().join("notify");
    let manager = Manager::at(&SocketAddr::from_pathname(&path).unwrap());
    let config = ConfigFile::new(&fixture("same", ""));
    let mut server = served(&config, path.to_str().unwrap()).await;

    let (ready, before) = manager.hears("READY=1").await;
    assert!(says(&ready, "STATUS=ready"), "{ready}");
    assert_eq!(server.readiness().await.0, 200);
    assert!(!before.iter().any(|said| says(said, "STATUS=ready")));
    for _ in 0..3 {
        manager.hears("WATCHDOG=1").await;
    }

    let asked: Duration = clock_gettime(ClockId::CLOCK_MONOTONIC).unwrap().into();
    server.signal(Signal::SIGHUP);
    let (reloading, _) = manager.hears("RELOADING=1").await;
    let since = reloading
        .lines()
        .find_map(|line| line.strip_prefix("MONOTONIC_USEC="));
    let since: u128 = since.unwrap().parse().unwrap();
    assert!(since >= asked.as_micros(), "{since} before {asked:?}");
    manager.hears("READY=1").await;

    config.write("pools = 3");
    server.signal(Signal::SIGHUP);
    manager.hears("RELOADING=1").await;
    manager.hears("READY=1").await;

    server.signal(Signal::SIGTERM);
    let (stopping, _) = manager.hears("STOPPING=1").await;
    assert!(
        stopping.contains("STATUS=stopping on SIGTERM"),
        "{stopping}"
    );
    assert_eq!(server.exit_code().await, 0);
}

#[tokio::test]
async fn a_process_that_is_not_ready_says_why_at_an_abstract_socket() {
    let name = format!("shoal-test-{}", uuid::Uuid::new_v4());
    let address = SocketAddr::from_abstract_name(&name).unwrap();
    let manager = Manager::at(&address);
    let mut command = shoal(&[
        "serve",
        "--roles",
        "worker",
        "--demo",
        "--join",
        "127.0.0.1:1",
    ]);
    command
        .args(["--admin", "127.0.0.1:0"])
        .env("NOTIFY_SOCKET", format!("@{name}"));
    let server = Server::announced(command).await;
    let (said, before) = manager.hears("linked to no node").await;
    assert!(said.starts_with("STATUS=not ready: "), "{said}");
    server.signal(Signal::SIGHUP);
    server.said("there is no configuration file").await;
    server.signal(Signal::SIGTERM);
    let (_, after) = manager.hears("STOPPING=1").await;
    assert!(
        ![before, after]
            .concat()
            .iter()
            .any(|said| says(said, "READY=1"))
    );
}
