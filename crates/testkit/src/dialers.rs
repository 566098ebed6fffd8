//! Finds the process behind a loopback connection, by the kernel's tables: a proxy in front of a node's only address
//! sees edges and workers alike.

use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use crate::fault_proxy::Classify;

/// The kernel's table is not read atomically, so a lookup can miss a socket.
const LOOKS: usize = 5;

/// Classes of processes for the proxy's faults. Clones share them.
#[derive(Clone, Debug, Default)]
pub struct Dialers(Arc<Known>);

#[derive(Debug, Default)]
struct Known {
    processes: Mutex<HashMap<u32, String>>,
    sockets: Mutex<Option<Sockets>>,
}

#[derive(Debug)]
struct Sockets {
    since: Instant,
    table: String,
}

impl Dialers {
    /// Assigns a class to a process.
    pub fn add(&self, pid: u32, class: &str) {
        let mut known = self.processes();
        known.insert(pid, class.to_owned());
    }

    /// Returns a function that finds the class of the process that dialled a connection; empty if unknown.
    #[must_use]
    pub fn classify(&self) -> Classify {
        let dialers = self.clone();
        Arc::new(move |from, to| dialers.class(from, to).unwrap_or_default())
    }

    fn class(&self, from: SocketAddr, to: SocketAddr) -> Option<String> {
        let found = (0..LOOKS).find_map(|_| self.socket_of(from, to));
        // A closed connection has socket number 0.
        let socket = found.filter(|socket| *socket != 0)?;
        let socket = format!("socket:[{socket}]");
        self.processes()
            .iter()
            .find(|(pid, _)| holds(**pid, &socket))
            .map(|(_, class)| class.clone())
    }

    /// Concurrent callers share one read of the kernel's table.
    fn socket_of(&self, from: SocketAddr, to: SocketAddr) -> Option<u64> {
        let asked = Instant::now();
        let mut sockets = (self.0.sockets.lock()).unwrap_or_else(PoisonError::into_inner);
        if sockets.as_ref().is_none_or(|seen| seen.since < asked) {
            let since = Instant::now();
            let table = std::fs::read_to_string("/proc/net/tcp").ok()?;
            *sockets = Some(Sockets { since, table });
        }
        let wanted = format!(" {} {} ", in_table(from)?, in_table(to)?);
        let table = &sockets.as_ref()?.table;
        let rest = &table[table.find(&wanted)? + wanted.len()..];
        rest.split_whitespace().nth(6)?.parse().ok()
    }

    fn processes(&self) -> MutexGuard<'_, HashMap<u32, String>> {
        (self.0.processes.lock()).unwrap_or_else(PoisonError::into_inner)
    }
}

/// Hexadecimal, with bytes in the machine's order.
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
