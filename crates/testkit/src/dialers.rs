//! Who is behind a loopback connection.
//!
//! A node tells others one address to dial, so a proxy there sees edges and workers alike. The kernel knows
//! which process holds the other end: its port leads to a socket, and the socket to a process.

use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};

use crate::fault_proxy::Classify;

/// How often a socket is looked for. The kernel's table is not read in one piece, and what others open and
/// close meanwhile can hide an entry.
const LOOKS: usize = 20;

/// Processes by number, with what each is called. Clones share it.
#[derive(Clone, Debug, Default)]
pub struct Dialers(Arc<Mutex<HashMap<u32, String>>>);

impl Dialers {
    /// Notes what a process is.
    pub fn add(&self, pid: u32, class: &str) {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.insert(pid, class.to_owned());
    }

    /// Tells connections apart by the process that dialled; one that nobody noted is of no class.
    #[must_use]
    pub fn classify(&self) -> Classify {
        let dialers = self.clone();
        Arc::new(move |from, to| dialers.class(from, to).unwrap_or_default())
    }

    fn class(&self, from: SocketAddr, to: SocketAddr) -> Option<String> {
        let socket = (0..LOOKS).find_map(|_| socket_of(from, to))?;
        let socket = format!("socket:[{socket}]");
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known
            .iter()
            .find(|(pid, _)| holds(**pid, &socket))
            .map(|(_, class)| class.clone())
    }
}

/// The number of the socket at the dialling end of a connection.
fn socket_of(from: SocketAddr, to: SocketAddr) -> Option<u64> {
    let table = std::fs::read_to_string("/proc/net/tcp").ok()?;
    let (from, to) = (in_table(from)?, in_table(to)?);
    table
        .lines()
        .map(|line| line.split_whitespace().collect::<Vec<_>>())
        .filter(|fields| fields.get(1..3) == Some(&[from.as_str(), to.as_str()][..]))
        .filter_map(|fields| fields.get(9)?.parse().ok())
        // A connection that is over has none.
        .find(|socket| *socket != 0)
}

/// An address as the kernel's table spells it: hexadecimal, the bytes in the machine's order.
fn in_table(address: SocketAddr) -> Option<String> {
    let IpAddr::V4(ip) = address.ip() else {
        return None;
    };
    let ip = u32::from_ne_bytes(ip.octets());
    Some(format!("{ip:08X}:{:04X}", address.port()))
}

fn holds(pid: u32, socket: &str) -> bool {
    std::fs::read_dir(format!("/proc/{pid}/fd"))
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|descriptor| std::fs::read_link(descriptor.path()).ok())
        .any(|target| target.to_str() == Some(socket))
}

#[cfg(test)]
mod tests {
    use super::Dialers;
    use tokio::net::{TcpListener, TcpStream};

    #[tokio::test]
    async fn a_connection_has_a_process() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let _held = TcpStream::connect(listener.local_addr().unwrap())
            .await
            .unwrap();
        let (accepted, from) = listener.accept().await.unwrap();
        let to = accepted.local_addr().unwrap();
        let dialers = Dialers::default();
        let classify = dialers.classify();
        assert_eq!(classify(from, to), "");
        dialers.add(std::process::id(), "tests");
        assert_eq!(classify(from, to), "tests");
    }
}
