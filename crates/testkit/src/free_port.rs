//! Reserves ports that a server keeps when it is restarted.

use std::collections::HashSet;
use std::net::{Ipv4Addr, TcpListener};
use std::sync::{Mutex, PoisonError};

use anyhow::bail;

const LOWEST: u16 = 12_000;
/// The kernel's default start of the port range for outgoing connections.
const USUAL_EPHEMERAL: u16 = 32_768;

static TAKEN: Mutex<Option<HashSet<u16>>> = Mutex::new(None);

/// Returns a loopback port that is free and was not reserved before. The port is below the kernel's
/// range for outgoing connections, which therefore cannot occupy it while its server is down.
pub fn reserve() -> anyhow::Result<u16> {
    let mut taken = TAKEN.lock().unwrap_or_else(PoisonError::into_inner);
    let taken = taken.get_or_insert_default();
    let highest = lowest_ephemeral();
    for _ in 0..10_000 {
        let port = rand::random_range(LOWEST..highest);
        if !taken.contains(&port) && TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok() {
            taken.insert(port);
            return Ok(port);
        }
    }
    bail!("no port between {LOWEST} and {highest} is free")
}

fn lowest_ephemeral() -> u16 {
    std::fs::read_to_string("/proc/sys/net/ipv4/ip_local_port_range")
        .ok()
        .and_then(|range| range.split_whitespace().next()?.parse().ok())
        .filter(|lowest| *lowest > LOWEST + 1_000)
        .unwrap_or(USUAL_EPHEMERAL)
}
