//! Tells about a server's life: in sentences at a terminal, in structured fields for log collectors.

use std::time::Duration;

use tokio::time::{Instant, sleep};

use crate::admin::Observed as _;
use crate::cli::Pools;
use crate::config::{Loaded, Settings};
use crate::exit::Failure;
use crate::node::NodeWatch;
use crate::print::plain;

/// At first, and after [`SOON`].
const LOOKS: [Duration; 2] = [Duration::from_millis(20), Duration::from_millis(500)];
const SOON: Duration = Duration::from_secs(5);

pub(crate) struct Narrator {
    at_terminal: bool,
    began: Instant,
}

pub(crate) struct Addresses {
    pub(crate) clients: Option<String>,
    pub(crate) cluster: Option<String>,
    pub(crate) admin: String,
}

impl Narrator {
    pub(crate) fn new(settings: &Settings) -> Self {
        Self {
            at_terminal: settings.logging.is_read_at_a_terminal(),
            began: Instant::now(),
        }
    }

    pub(crate) fn is_at_terminal(&self) -> bool {
        self.at_terminal
    }

    pub(crate) fn starting(&self, loaded: &Loaded, given: &Pools) {
        let pools: Vec<&str> = loaded.settings.pools.keys().map(String::as_str).collect();
        if self.at_terminal {
            say(&format!("starting {} …", what(given, &pools)));
            return;
        }
        tracing::info!(
            version = env!("CARGO_PKG_VERSION"),
            configuration = ?loaded.sources,
            ?pools,
            "starting"
        );
    }

    pub(crate) async fn ready(&self, watch: &NodeWatch, addresses: &Addresses) {
        let mut is_told = false;
        loop {
            let readiness = watch.readiness();
            if readiness.is_ready() {
                return self.is_ready(watch, addresses);
            }
            let waited = self.began.elapsed();
            if waited >= SOON && !is_told {
                is_told = true;
                self.waiting(readiness.reasons());
            }
            let [often, seldom] = LOOKS;
            sleep(if waited < SOON { often } else { seldom }).await;
        }
    }

    fn is_ready(&self, watch: &NodeWatch, addresses: &Addresses) {
        let tools = watch
            .dispatch
            .status()
            .pools
            .iter()
            .map(|it| it.tools)
            .sum();
        let console = format!("{}/console/", addresses.admin);
        if self.at_terminal {
            return say(&format!("ready: {}", reached(tools, addresses, &console)));
        }
        tracing::info!(
            tools,
            url = addresses.clients,
            console,
            cluster = addresses.cluster,
            after = ?self.began.elapsed(),
            "ready"
        );
    }

    fn waiting(&self, reasons: &[String]) {
        match self.at_terminal {
            true => say(&format!("not ready yet: {}", plain(&reasons.join("; ")))),
            false => tracing::warn!(?reasons, "not ready yet"),
        }
    }

    /// Logs that the machine allows less than the configuration. Users at a terminal do not need this.
    pub(crate) fn advice(&self, warning: &str, matters: bool) {
        match self.at_terminal {
            true => tracing::debug!("{warning}"),
            false if matters => tracing::warn!("{warning}"),
            false => tracing::info!("{warning}"),
        }
    }

    pub(crate) fn failed(&self, failure: &mut Failure) {
        match self.at_terminal {
            true => failure.tell(),
            false => tracing::error!(
                reason = failure.to_string(),
                exit_code = failure.code(),
                "cannot start"
            ),
        }
    }

    pub(crate) fn stopping(&self, signal: &'static str) {
        match self.at_terminal {
            true => say(&format!(
                "stopping on {signal}; a second signal exits at once"
            )),
            false => tracing::info!(signal, "shutting down; a second signal exits at once"),
        }
    }

    pub(crate) fn stopped(&self, took: Duration) {
        match self.at_terminal {
            true => tracing::debug!(?took, "shut down"),
            false => tracing::info!(?took, "shut down"),
        }
    }
}

fn say(line: &str) {
    shoal_telemetry::logging::tell(&format!("{line}\n"));
}

fn what(given: &Pools, pools: &[&str]) -> String {
    if let Some(typed) = given.typed() {
        return plain(&typed);
    }
    match pools {
        [] => "without a pool".to_owned(),
        [pool] => format!("the pool {pool}"),
        pools => format!("the pools {}", pools.join(", ")),
    }
}

fn reached(tools: usize, addresses: &Addresses, console: &str) -> String {
    let tools = match tools {
        1 => "1 tool".to_owned(),
        tools => format!("{tools} tools"),
    };
    let clients = addresses.clients.as_ref();
    let parts = [
        Some(clients.map_or(tools.clone(), |url| format!("{tools} at {url}"))),
        Some(format!("console at {console}")),
        addresses
            .cluster
            .as_ref()
            .map(|address| format!("cluster at {address}")),
    ];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    parts.join("; ")
}

#[cfg(test)]
mod tests {
    use super::{Addresses, reached, what};
    use crate::cli::Pools;

    #[test]
    fn what_is_started_and_where_it_is_reached_is_said_in_words() {
        let typed = Pools {
            server: vec!["python3".to_owned(), "server.py".to_owned()],
            ..Pools::default()
        };
        assert_eq!(what(&typed, &["stdio"]), "python3 server.py");
        let urls = Pools {
            urls: vec!["http://a/mcp".to_owned(), "http://b/mcp".to_owned()],
            ..Pools::default()
        };
        assert_eq!(what(&urls, &["http"]), "http://a/mcp http://b/mcp");
        assert_eq!(what(&Pools::default(), &["demo"]), "the pool demo");
        assert_eq!(what(&Pools::default(), &["a", "b"]), "the pools a, b");
        let mut addresses = Addresses {
            clients: Some("http://h:1/mcp".to_owned()),
            cluster: None,
            admin: String::new(),
        };
        let all = reached(1, &addresses, "c");
        assert_eq!(all, "1 tool at http://h:1/mcp; console at c");
        addresses.clients = None;
        addresses.cluster = Some("h:2".to_owned());
        assert_eq!(
            reached(4, &addresses, "c"),
            "4 tools; console at c; cluster at h:2"
        );
    }
}
