//! `shoal controller`: makes pools of the servers in a Kubernetes cluster.

use std::collections::BTreeSet;
use std::io::Write as _;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::Context as _;
use axum::Router;
use axum::extract::State;
use axum::response::Response;
use axum::routing::get;
use http::StatusCode;
use serde_json::json;
use shoal_controller::{Check, Controller, Report};
use shoal_ports::{FileWatch, NodeId};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use toml::{Table, Value};

use crate::admin::{answer, guarded};
use crate::certificates::Certificates;
use crate::cli;
use crate::config::{self, Environment, Flag, Loaded, discovered};
use crate::exit::Failure;
use crate::reload::changed;
use crate::serve::{ADMIN_CONNECTIONS, bind, http_limits};
use crate::signals::{HangUps, Signals};

type Reporter = Arc<dyn Fn() -> Report + Send + Sync>;

/// Reads a controller's settings.
///
/// # Errors
/// If the settings are invalid.
pub fn load(command: &cli::Controller, environment: &Environment) -> Result<Loaded, Failure> {
    let loaded = config::load(&[], command.config.as_deref(), environment, &flags(command))?;
    if loaded.settings.discovery.kubernetes.namespaces.is_empty() {
        return Err(Failure::usage(
            "no namespace is named whose servers are to be found: set discovery.kubernetes.namespaces, or \
             SHOAL_DISCOVERY__KUBERNETES__NAMESPACES='[\"NAME\"]'",
        ));
    }
    Ok(loaded)
}

fn flags(command: &cli::Controller) -> Vec<Flag> {
    let admin = command.admin.map(|address| Flag {
        flag: "--admin",
        path: vec!["server".to_owned(), "admin".to_owned()],
        value: Value::String(address.to_string()),
    });
    admin.into_iter().collect()
}

/// Runs the controller `id` until a signal ends the process.
///
/// # Errors
/// If there is no cluster, an address is in use, or a certificate cannot be used.
pub async fn run(
    command: cli::Controller,
    environment: Environment,
    loaded: Loaded,
    id: NodeId,
) -> Result<(), Failure> {
    let mut signals = Signals::take().context("cannot listen to signals")?;
    let hang_ups = HangUps::take().context("cannot listen to SIGHUP")?;
    let settings = &loaded.settings;
    for warning in &loaded.warnings {
        tracing::warn!("{warning}");
    }
    let certificates = Certificates::open(settings).map_err(Failure::usage)?;
    certificates.renew(settings);
    let _expiring = certificates.observe_ports();
    let check: Check = Arc::new(|name: &str, table: &Table| {
        discovered::understand(name, table.clone().into()).map(drop)
    });
    let controller = Controller::connect(
        settings.discovery.kubernetes.clone(),
        settings.outbound.clone(),
        check,
        id.as_str(),
    );
    let controller = controller.await.map_err(Failure::usage)?;
    let operators = bind(settings.server.admin, "server.admin")?;
    let operators = operators.over(certificates.operators(settings));
    let admin = operators.origin();
    let router = router(
        Arc::new(controller.reporter()),
        settings.server.admin,
        &settings.server.admin_hosts,
    );
    let mut limits = http_limits(settings);
    limits.connections = ADMIN_CONNECTIONS;
    let served = operators.serve(router, &limits);
    let mut out = std::io::stdout().lock();
    writeln!(out, "shoal: admin on {admin}").context("cannot write to standard output")?;
    drop(out);

    let (names, taken) = watch::channel(names(&loaded));
    let stop = CancellationToken::new();
    let working = controller.run(taken, stop.clone());
    let file = command.config.clone().or(environment.config_file.clone());
    let follow = follow(&command, &environment, file, &names, &loaded, hang_ups);
    let stopping = async move {
        let signal = signals.next().await;
        tracing::info!(signal, "ending; a second signal exits at once");
        signals.next_one_exits();
        stop.cancel();
        std::future::pending::<()>().await;
    };
    tokio::select! {
        () = working => {}
        () = follow => {}
        () = stopping => {}
    }
    served.close(settings.shutdown.connections.get()).await;
    Ok(())
}

fn names(loaded: &Loaded) -> BTreeSet<String> {
    loaded.settings.pools.keys().cloned().collect()
}

/// Passes the configured pools on when the file changes and on SIGHUP.
async fn follow(
    command: &cli::Controller,
    environment: &Environment,
    file: Option<PathBuf>,
    names_to: &watch::Sender<BTreeSet<String>>,
    loaded: &Loaded,
    mut hang_ups: HangUps,
) {
    let every = loaded.settings.reload.watch_every.get();
    let mut changes = file.as_deref().map(FileWatch::new);
    loop {
        let read = config::load_again(&[], command.config.as_deref(), environment, &flags(command));
        match read {
            Ok(loaded) => {
                names_to.send_if_modified(|known| {
                    let next = names(&loaded);
                    let other = *known != next;
                    *known = next;
                    other
                });
            }
            Err(error) => tracing::error!("the configuration stays as it was: {error}"),
        }
        tokio::select! {
            () = changed(&mut changes, every) => {}
            () = hang_ups.next() => {
                tracing::info!("SIGHUP: the names of the configuration's pools are read again");
            }
        }
    }
}

fn router(reporter: Reporter, listen: SocketAddr, hosts: &[String]) -> Router {
    let router = Router::new()
        .route("/readyz", get(readyz))
        .route("/status", get(status))
        .with_state(reporter);
    guarded(router, listen, hosts)
}

/// A controller is ready if it could take over from another one.
async fn readyz(State(reporter): State<Reporter>) -> Response {
    let reasons = reasons(&reporter());
    let (code, status) = match reasons.is_empty() {
        true => (StatusCode::OK, "ready"),
        false => (StatusCode::SERVICE_UNAVAILABLE, "not ready"),
    };
    answer(code, &json!({ "status": status, "reasons": reasons }))
}

fn reasons(report: &Report) -> Vec<String> {
    let listed = (!report.listed).then(|| "not all objects have been read yet".to_owned());
    let election = report.election.as_ref();
    let election = election.map(|why| format!("it cannot take part in the election: {why}"));
    listed.into_iter().chain(election).collect()
}

async fn status(State(reporter): State<Reporter>) -> Response {
    answer(StatusCode::OK, &reporter())
}

#[cfg(test)]
mod tests {
    use shoal_controller::Report;

    use super::reasons;

    #[test]
    fn a_controller_that_cannot_lead_is_not_ready() {
        let ready = Report {
            listed: true,
            ..Report::default()
        };
        assert_eq!(reasons(&ready), Vec::<String>::new());
        let forbidden = Report {
            election: Some("the Lease shoal-controller: forbidden".to_owned()),
            ..ready
        };
        let reasons = reasons(&forbidden);
        assert!(reasons[0].ends_with("the Lease shoal-controller: forbidden"));
    }
}
