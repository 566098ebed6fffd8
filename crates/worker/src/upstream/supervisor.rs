use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use futures::StreamExt;
use futures::future::BoxFuture;
use shoal_ports::{ListScope, PoolCatalog, RawObjectOrEmpty};
use shoal_protocol::RawJson;
use tokio::sync::watch;
use tokio::time::{Instant, timeout};

use super::connection::ServerConnection;
use super::error::{RequestError, StartError};
use super::launcher::Launcher;
use super::link::ServerLink;
use super::list_pace::ListPace;
use super::lists::{List, Lists, Which};
use super::modern_side::ModernSide;
use super::restart_delay::RestartDelay;
use crate::BackendState;

/// How long calls wait for the other lists of a server that has listed its tools.
const PATIENCE: Duration = Duration::from_secs(3);

/// How long calls wait while Shoal asks a server for its other era.
const SOON: Duration = Duration::from_secs(1);

/// Assumed capabilities of a server that refuses requests that are not in a caller's name.
const ANY: &str = r#"{"tools":{},"resources":{},"prompts":{},"completions":{}}"#;

pub(crate) trait Lead: Send + Sync + 'static {
    fn joins(&self, connection: &Arc<ServerConnection>);

    /// The connection ended or could not be opened. Calls wait about `pause`. Returns whether no other connection can
    /// take them meanwhile.
    fn fails(&self, reason: &str, pause: Duration) -> bool;

    /// The server refuses requests that are not in a caller's name. Returns when to try again to open a lead.
    fn refused(&self) -> BoxFuture<'_, ()> {
        Box::pin(std::future::pending())
    }

    /// The lead accepts no further calls, and retires after its last one.
    fn retires(&self, _connection: &Arc<ServerConnection>) {}

    fn wanted(&self) -> BoxFuture<'_, ()>;
}

pub(crate) struct Supervisor {
    launcher: Arc<Launcher>,
    modern_side: Arc<ModernSide>,
    lead: Arc<dyn Lead>,
    state: watch::Sender<BackendState>,
    /// Its generations continue after restarts.
    catalog: Option<PoolCatalog>,
    told: BTreeSet<String>,
}

enum End {
    /// The connection was never ready, so waiting may be in vain.
    NotOpened(String, Prospect),
    /// The connection was ready and ended, perhaps because of a call, so other calls do not wait.
    Over(String),
    Retired,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Prospect {
    Open,
    /// The next attempt will fail unless somebody changes something.
    Poor,
}

impl Prospect {
    fn of(may_pass: bool) -> Self {
        match may_pass {
            true => Self::Open,
            false => Self::Poor,
        }
    }
}

impl Supervisor {
    pub(crate) fn new(
        launcher: Arc<Launcher>,
        modern_side: Arc<ModernSide>,
        lead: impl Lead,
        state: watch::Sender<BackendState>,
    ) -> Self {
        Self {
            launcher,
            modern_side,
            lead: Arc::new(lead),
            state,
            catalog: None,
            told: BTreeSet::new(),
        }
    }

    pub(crate) async fn run(mut self) {
        let settings = &self.launcher.settings;
        // Separate delays: if callers ended a server repeatedly, Shoal pauses only briefly after the
        // first failed start.
        let [mut starting, mut running] = [(); 2].map(|()| RestartDelay::of(settings));
        let starts_it = self.launcher.transport.has_servers_of_their_own();
        let closing = self.launcher.closing.clone();
        while !closing.is_cancelled() {
            let began = Instant::now();
            let (reason, prospect, was_ready) = match self.stay_with_lead().await {
                End::NotOpened(reason, prospect) => (reason, prospect, false),
                End::Over(reason) => (reason, Prospect::Open, true),
                End::Retired => continue,
            };
            if closing.is_cancelled() {
                break;
            }
            if was_ready {
                starting.reset();
            }
            let on_demand = was_ready && starts_it;
            let delay = if on_demand {
                &mut running
            } else {
                &mut starting
            };
            let pause = delay.after_failure(began);
            let wait = if on_demand { Duration::ZERO } else { pause };
            // With a server from the command line, the process ends within the first pause and
            // reports the reason itself.
            let waits = self.catalog.is_none() && self.restarts() == 0;
            self.publish_failure(&reason, prospect, wait);
            if !waits {
                self.tell(&reason, pause, on_demand);
            }
            tokio::select! {
                () = tokio::time::sleep(pause) => {}
                () = self.lead.wanted(), if on_demand => {}
                () = closing.cancelled() => continue,
            }
            if waits {
                self.tell(&reason, pause, on_demand);
            }
            self.launcher.restarts.fetch_add(1, Ordering::Relaxed);
        }
        self.state.send_replace(BackendState {
            catalog: None,
            detail: Some("shut down".to_owned()),
        });
    }

    fn restarts(&self) -> u64 {
        self.launcher.restarts.load(Ordering::Relaxed)
    }

    fn tell(&self, reason: &str, pause: Duration, on_demand: bool) {
        let stderr = self.launcher.stderr();
        tracing::warn!(target: "shoal::upstream", reason, stderr, ?pause, on_demand, "the server is tried again");
    }

    async fn stay_with_lead(&mut self) -> End {
        // A server that runs without Shoal may come up on its own.
        let runs_alone = !self.launcher.transport.has_servers_of_their_own();
        let prospect = |may_pass| Prospect::of(runs_alone || may_pass);
        let connection = match self.launcher.launch_lead().await {
            Ok(connection) => connection,
            Err(StartError::Closed) => return End::Retired,
            Err(error) if error.is_denied() && self.lists_differ() => {
                return self.go_without_lead(&error).await;
            }
            Err(error) => {
                return End::NotOpened(error.to_string(), prospect(error.may_pass()));
            }
        };
        let link = &connection.link;
        // Created before the lists are read, to catch changes meanwhile.
        let mut pace = ListPace::new(link.changes());
        let mut lists = Lists::of(link, self.catalog.as_ref());
        if self.lists_differ() {
            return self.stay_without_lists(&connection, lists).await;
        }
        let tools = Which::only(List::Tools);
        let mut answers = lists.ask(link, tools);
        while let Some(list) = answers.next().await {
            lists.take(link, list);
        }
        let has_tools = !lists.catalog.tools.is_empty();
        answers = lists.ask(link, tools.others());
        let patience = tokio::time::sleep(PATIENCE);
        tokio::pin!(patience);
        loop {
            tokio::select! {
                biased;
                list = answers.next() => match list {
                    Some(list) => lists.take(link, list),
                    None => break,
                },
                () = &mut patience, if has_tools => {
                    lists.give_up_pending();
                    break;
                }
            }
        }
        let modern_side = self.modern_side.clone();
        let was_asked = modern_side.was_asked();
        let mut has_more = Box::pin(modern_side.may_have_more(link));
        let early = timeout(SOON, &mut has_more).await;
        let has_switched = modern_side.has_switched();
        if !was_asked && modern_side.was_asked() && (has_switched || link.pending.ended().is_some())
        {
            // The era question broke the connection, so Shoal does not ask again.
            if has_switched {
                modern_side.learn(link).await;
            }
            connection.shutdown().await;
            return End::Retired;
        }
        if let Some(end) = self.of_no_use(&connection, &lists).await {
            return end;
        }
        self.publish(link, &mut lists);
        pace.was_read(true, lists.missing());
        self.lead.joins(&connection);
        let over = connection.over();
        let lead = self.lead.clone();
        let retired = &connection;
        let learning = async {
            let mut is_retired = false;
            let more = match early {
                Ok(more) => more,
                Err(_) => {
                    let more = has_more.await;
                    is_retired = !was_asked && modern_side.has_switched();
                    if is_retired {
                        lead.retires(retired);
                    }
                    more
                }
            };
            (more && modern_side.learn(link).await, is_retired)
        };
        tokio::pin!(learning);
        let mut learns = true;
        loop {
            tokio::select! {
                () = over.cancelled() => {
                    if learns && connection.is_retired() {
                        // Waits for what the modern side learns, which the next lead offers too.
                        learning.await;
                    }
                    return self.ended(&connection);
                }
                Some(list) = answers.next() => {
                    lists.take(link, list);
                    // Errors after the connection's end are no change.
                    if answers.is_empty() && connection.is_alive() {
                        let changed = self.publish(link, &mut lists);
                        pace.was_read(changed, lists.missing());
                    }
                }
                (more, is_retired) = &mut learning, if learns => {
                    learns = false;
                    if more && answers.is_empty() {
                        self.publish(link, &mut lists);
                    }
                    // The pool ends the connection after its last call, for which the next lead
                    // does not wait.
                    if is_retired {
                        return End::Retired;
                    }
                }
                which = pace.due(), if answers.is_empty() => answers = lists.ask(link, which),
            }
        }
    }

    fn lists_differ(&self) -> bool {
        self.launcher.settings.lists == ListScope::Principal
    }

    /// Serves without a lead. Callers learn the lists when they ask.
    async fn go_without_lead(&mut self, error: &StartError) -> End {
        let reason = error.to_string();
        if self.told.insert(reason.clone()) {
            tracing::info!(target: "shoal::upstream", reason, "the server takes requests in callers' names alone");
        }
        let catalog = PoolCatalog {
            capabilities: RawObjectOrEmpty(RawJson::from_static(ANY)),
            headers: self.launcher.settings.headers.clone(),
            lists: ListScope::Principal,
            ..PoolCatalog::default()
        };
        self.offer(catalog, None);
        let closing = self.launcher.closing.clone();
        tokio::select! {
            () = self.lead.refused() => {}
            () = closing.cancelled() => {}
        }
        End::Retired
    }

    async fn stay_without_lists(
        &mut self,
        connection: &Arc<ServerConnection>,
        lists: Lists,
    ) -> End {
        let mut catalog = lists.catalog;
        catalog.headers.clone_from(&self.launcher.settings.headers);
        catalog.lists = ListScope::Principal;
        self.offer(catalog, None);
        self.lead.joins(connection);
        connection.over().cancelled().await;
        self.ended(connection)
    }

    fn offer(&mut self, catalog: PoolCatalog, detail: Option<String>) {
        self.catalog = Some(catalog.clone());
        let catalog = Arc::new(catalog);
        self.launcher.own_lists.set_shared(&catalog);
        self.state.send_if_modified(|state| {
            let is_new = state.catalog.as_ref() != Some(&catalog) || state.detail != detail;
            if is_new {
                *state = BackendState {
                    catalog: Some(catalog),
                    detail,
                };
            }
            is_new
        });
    }

    async fn of_no_use(&self, connection: &ServerConnection, lists: &Lists) -> Option<End> {
        let link = &connection.link;
        let ended = link.pending.ended().or_else(|| link.lost());
        let error = match ended {
            Some(reason) => RequestError::Ended(reason),
            None => lists.useless()?.clone(),
        };
        connection.shutdown().await;
        self.launcher.failed(link);
        let runs_alone = !self.launcher.transport.has_servers_of_their_own();
        let prospect = Prospect::of(runs_alone || error.may_pass());
        Some(End::NotOpened(
            format!("its lists could not be read: {error}"),
            prospect,
        ))
    }

    fn ended(&self, connection: &ServerConnection) -> End {
        if connection.is_retired() {
            return End::Retired;
        }
        let link = &connection.link;
        self.launcher.failed(link);
        let reason = link.pending.ended().or_else(|| link.lost());
        let reason = reason.filter(|reason| !reason.is_empty());
        let reason = reason.map_or_else(|| "its connection ended".to_owned(), |it| it.to_string());
        End::Over(reason)
    }

    fn publish(&mut self, link: &ServerLink, lists: &mut Lists) -> bool {
        self.tell_of(link, lists);
        let catalog = &mut lists.catalog;
        let era = link.greeting().era;
        self.launcher.transport.learn(era, &mut catalog.tools);
        catalog.capabilities.0 = self.modern_side.extended(&catalog.capabilities.0);
        catalog.headers.clone_from(&self.launcher.settings.headers);
        let mut changed = true;
        if let Some(old) = &self.catalog {
            // Announcements are unreliable: some servers send none, and others one for each list.
            let resources = old.resources != catalog.resources
                || old.resource_templates != catalog.resource_templates;
            let differs = [
                old.tools != catalog.tools,
                resources,
                old.prompts != catalog.prompts,
            ];
            changed = differs.contains(&true);
            catalog.generations = old.generations;
            for (generation, differs) in catalog.generations.iter_mut().zip(differs) {
                *generation += u64::from(differs);
            }
        }
        self.catalog = Some(catalog.clone());
        let catalog = Arc::new(lists.catalog.clone());
        self.launcher.own_lists.set_shared(&catalog);
        self.state.send_replace(BackendState {
            catalog: Some(catalog),
            detail: lists.degraded(),
        });
        changed
    }

    /// Logs each problem with the lists once, and its end.
    fn tell_of(&mut self, link: &ServerLink, lists: &Lists) {
        let wrong: BTreeSet<String> = lists.wrong().collect();
        for what in wrong.difference(&self.told) {
            tracing::warn!(target: "shoal::upstream", server = link.name(), "{what}");
        }
        if wrong.is_empty() && !self.told.is_empty() {
            tracing::info!(target: "shoal::upstream", server = link.name(), "all lists can be read again");
        }
        self.told = wrong;
    }

    fn publish_failure(&self, reason: &str, prospect: Prospect, pause: Duration) {
        let was_ready = self.catalog.is_some();
        let detail = match prospect {
            Prospect::Poor if !was_ready => format!("{}{reason}", BackendState::CANNOT_START),
            _ => format!("restarting: {reason}"),
        };
        let deserted = self.lead.fails(&detail, pause);
        self.state.send_modify(|state| {
            state.detail = Some(detail);
            if deserted {
                state.catalog = None;
            }
        });
    }
}
