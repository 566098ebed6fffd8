//! Notifies the service manager (`sd_notify(3)`).

mod socket;

use std::ffi::OsString;
use std::future::pending;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures::future::join_all;
use nix::time::{ClockId, clock_gettime};
use tokio::runtime::Handle;
use tokio::time::{MissedTickBehavior, interval, sleep};

use self::socket::NotifySocket;
use crate::admin::Readiness;
use crate::print::plain;

const LOOK: Duration = Duration::from_millis(250);
/// Maximum characters of the status, which `systemctl status` prints on one line.
const LONGEST_STATUS: usize = 400;

/// Does nothing without a service manager.
#[derive(Clone)]
pub(crate) struct ServiceManager {
    socket: Option<NotifySocket>,
    watchdog: Option<Duration>,
    /// Whether READY=1 was sent. Before that, a reload sends nothing, because the READY=1 at its end would report
    /// readiness too early.
    is_told: Arc<AtomicBool>,
}

impl ServiceManager {
    pub(crate) fn of_process() -> Self {
        Self::of(|name| std::env::var_os(name))
    }

    fn of(variable: impl Fn(&str) -> Option<OsString>) -> Self {
        let number = |name: &str| variable(name)?.to_str()?.parse::<u64>().ok();
        let meant = number("WATCHDOG_PID").is_none_or(|pid| pid == u64::from(std::process::id()));
        let watchdog = number("WATCHDOG_USEC").filter(|&time| meant && time > 0);
        Self {
            socket: variable("NOTIFY_SOCKET").and_then(|name| NotifySocket::at(&name)),
            watchdog: watchdog.map(Duration::from_micros),
            is_told: Arc::default(),
        }
    }

    /// Also sends keep-alives. Runs for ever. Cancellation safe.
    pub(crate) async fn follow(&self, readiness: impl Fn() -> Readiness) {
        tokio::join!(self.tell_readiness(readiness), self.tell_life());
    }

    pub(crate) async fn living<T>(&self, work: impl Future<Output = T>) -> T {
        tokio::select! {
            done = work => done,
            () = self.tell_life() => unreachable!("it never ends"),
        }
    }

    async fn tell_readiness(&self, readiness: impl Fn() -> Readiness) {
        if self.socket.is_none() {
            return pending().await;
        }
        let mut told = None;
        loop {
            let readiness = readiness();
            let said = status(&readiness);
            if told.as_ref() != Some(&said) {
                let first = readiness.is_ready() && !self.is_told.swap(true, Ordering::AcqRel);
                let ready = if first { "READY=1\n" } else { "" };
                self.tell(&format!("{ready}STATUS={said}")).await;
                told = Some(said);
            }
            sleep(LOOK).await;
        }
    }

    /// Sends keep-alives twice per watchdog interval, each after the runtime has completed as many tasks as it has
    /// threads.
    async fn tell_life(&self) {
        let (Some(_), Some(watchdog)) = (&self.socket, self.watchdog) else {
            return pending().await;
        };
        let mut ticks = interval(watchdog / 2);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            ticks.tick().await;
            let threads = Handle::current().metrics().num_workers();
            let turns = (0..threads).map(|_| tokio::spawn(tokio::task::yield_now()));
            join_all(turns).await;
            self.tell("WATCHDOG=1").await;
        }
    }

    pub(crate) async fn reloading(&self) {
        if !self.is_told.load(Ordering::Acquire) {
            return;
        }
        // Newer versions of systemd compare this time with that of their reload request.
        let now = clock_gettime(ClockId::CLOCK_MONOTONIC).map(Duration::from);
        let since = now.map_or(0, |now| now.as_micros());
        let said = format!("RELOADING=1\nMONOTONIC_USEC={since}");
        self.tell(&said).await;
    }

    pub(crate) async fn reloaded(&self) {
        if self.is_told.load(Ordering::Acquire) {
            self.tell("READY=1").await;
        }
    }

    pub(crate) async fn stopping(&self, signal: &str) {
        let said = format!(
            "STOPPING=1\nSTATUS=stopping on {signal}: calls may finish, sessions go to other nodes"
        );
        self.tell(&said).await;
    }

    async fn tell(&self, lines: &str) {
        if let Some(socket) = &self.socket {
            socket.send(lines).await;
        }
    }
}

fn status(readiness: &Readiness) -> String {
    let reasons = readiness.reasons().join("; ");
    let said = match readiness.is_ready() {
        true => "ready".to_owned(),
        false => format!("not ready: {reasons}"),
    };
    plain(&said).chars().take(LONGEST_STATUS).collect()
}

#[cfg(test)]
mod tests;
