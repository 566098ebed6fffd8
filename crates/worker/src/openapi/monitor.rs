use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use http::Method;
use parking_lot::RwLock;
use reqwest::Url;
use shoal_outbound::{Named, Outbound};
use shoal_ports::Backoff;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::api::Api;
use super::choice::ToolChoice;
use super::config::{BASE, OpenApiConfig};
use super::loader::{Loader, ReadFile, apart};
use super::size::ListSize;
use super::source::{DocumentSource, Unread};
use crate::BackendState;
use crate::http_client::{
    EqualServers, HttpClient, NoToken, Reachability, RequestUnanswered, check_url, modified, send,
};

pub(super) struct OpenApiService {
    pub(super) config: OpenApiConfig,
    pub(super) http: HttpClient,
    pub(super) reachability: Reachability,
    pub(super) closing: CancellationToken,
    pub(super) restarts: AtomicU64,
    choice: ToolChoice,
    source: DocumentSource,
    /// Fetches parts of the document at other origins, without the service's credentials.
    others: HttpClient,
    base: Option<Url>,
    /// All equal services have the same tools.
    is_first: bool,
    api: RwLock<Option<Arc<Api>>>,
}

impl OpenApiService {
    pub(super) fn new(
        config: OpenApiConfig,
        choice: ToolChoice,
        base: Option<&str>,
        outbound: &Outbound,
    ) -> Result<Self, String> {
        let bases = config.bases()?;
        let is_first = bases.first().is_none_or(|first| *first == base);
        let others = EqualServers::of(bases.len());
        let source = DocumentSource::of(&config.document)?;
        let base = base.map(|base| check_url(base, BASE)).transpose()?;
        let named = match &source {
            // The operator's own file may name any server.
            DocumentSource::File(_) => Named::All,
            DocumentSource::Url(url) => Named::These(base.iter().chain([url]).cloned().collect()),
        };
        let theirs = Named::These(base.iter().cloned().collect());
        Ok(Self {
            http: HttpClient::new(config.client(), outbound, named)?,
            choice,
            others: HttpClient::new(config.without_credentials().client(), outbound, theirs)?,
            source,
            base,
            is_first,
            reachability: others.at(0),
            closing: CancellationToken::new(),
            restarts: AtomicU64::new(0),
            api: RwLock::default(),
            config,
        })
    }

    pub(super) fn api(&self) -> Option<Arc<Api>> {
        self.api.read().clone()
    }

    async fn read(self: &Arc<Self>) -> Result<(Api, Vec<ReadFile>), Unread> {
        let loader = Loader {
            source: &self.source,
            config: &self.config,
            http: &self.http,
            others: &self.others,
            base: self.base.as_ref(),
        };
        let loaded = loader.load().await?;
        let service = self.clone();
        let api = apart(move || {
            let (config, choice, source) = (&service.config, &service.choice, &service.source);
            let base = service.base.as_ref();
            Api::compile(&loaded.document, config, choice, source, base)
        });
        Ok((api.await?, loaded.files))
    }

    async fn ask(&self, base: &Url) -> Result<(), String> {
        let client = self.http.prepare()?;
        let asking = async {
            let headers = self.http.headers(&client, None).await;
            let request = client.request(Method::HEAD, base);
            let request = request.map_err(RequestUnanswered::NotSent)?;
            send(request.headers(headers.unwrap_or_default())).await
        };
        match tokio::time::timeout(self.config.request_timeout.get(), asking).await {
            Ok(Ok(_)) => Ok(()),
            Ok(Err(
                RequestUnanswered::NotSent(why)
                | RequestUnanswered::Lost(why)
                | RequestUnanswered::NoToken(NoToken::Refused(why) | NoToken::Away(why)),
            )) => Err(why),
            Err(_) => Err("the service did not answer in time".to_owned()),
        }
    }
}

pub(super) struct Monitor {
    service: Arc<OpenApiService>,
    publish: watch::Sender<BackendState>,
    files: Vec<ReadFile>,
    /// The size as last logged.
    told: Option<ListSize>,
    generation: u64,
    was_away: bool,
}

impl Monitor {
    pub(super) fn new(service: Arc<OpenApiService>, publish: watch::Sender<BackendState>) -> Self {
        Self {
            service,
            publish,
            files: Vec::new(),
            told: None,
            generation: 0,
            was_away: false,
        }
    }

    pub(super) async fn run(mut self) {
        let closing = self.service.closing.clone();
        tokio::select! {
            () = self.keep() => {}
            () = closing.cancelled() => {}
        }
        self.publish.send_replace(BackendState {
            catalog: None,
            detail: Some("shut down".to_owned()),
        });
    }

    async fn keep(&mut self) {
        let config = self.service.config.clone();
        let (first, longest) = (config.restart_delay.get(), config.max_restart_delay.get());
        let mut backoff = Backoff::new(first, longest.max(first));
        loop {
            match self.look().await {
                Ok(detail) => {
                    backoff.reset();
                    self.was_away = false;
                    self.service.reachability.found();
                    self.publish_ready(detail);
                    let interval = config.health_interval.get();
                    self.service.reachability.ask_again(interval).await;
                }
                Err(unread) => {
                    self.was_away = true;
                    // Logs the first failure after the pause: with a server from the command line,
                    // the process ends sooner, and reports the reason itself.
                    let waits = self.service.api().is_none() && !self.was_tried_again();
                    let news = self.publish_failure(unread);
                    if !waits {
                        tell(news.as_deref());
                    }
                    tokio::time::sleep(backoff.pause()).await;
                    if waits {
                        tell(news.as_deref());
                    }
                    self.service.restarts.fetch_add(1, Ordering::Relaxed);
                }
            }
        }
    }

    /// Returns why the service is degraded, if it is.
    async fn look(&mut self) -> Result<Option<String>, Unread> {
        let known = self.service.api();
        let is_due = match self.service.source {
            DocumentSource::File(_) => {
                let changed = |(file, when): &ReadFile| modified(file) != *when;
                self.files.iter().any(changed)
            }
            DocumentSource::Url(_) => self.was_away,
        };
        let mut stale = None;
        let api = match known {
            Some(api) if !is_due => api,
            known => match (self.service.read().await, known) {
                (Ok((api, files)), known) => {
                    let differs = |known: Arc<Api>| known.catalog.tools != api.catalog.tools;
                    self.generation += u64::from(known.is_some_and(differs));
                    self.files = files;
                    if self.told.replace(api.size) != Some(api.size) && self.service.is_first {
                        api.size.tell();
                    }
                    let api = Arc::new(api);
                    *self.service.api.write() = Some(api.clone());
                    api
                }
                (Err(Unread::Away(why) | Unread::Wrong(why)), Some(known)) => {
                    stale = Some(format!("the document cannot be read again: {why}"));
                    known
                }
                (Err(unread), None) => return Err(unread),
            },
        };
        self.service.ask(&api.base).await.map_err(Unread::Away)?;
        Ok(stale.or_else(|| api.detail.clone()))
    }

    fn publish_ready(&self, detail: Option<String>) {
        let Some(api) = self.service.api() else {
            return;
        };
        let mut catalog = api.catalog.clone();
        catalog.generations[0] = self.generation;
        self.publish.send_if_modified(|state| {
            let same = state.catalog.as_deref() == Some(&catalog);
            if same && state.detail == detail {
                return false;
            }
            if !same {
                state.catalog = Some(Arc::new(catalog));
            }
            state.detail = detail;
            true
        });
    }

    fn was_tried_again(&self) -> bool {
        self.service.restarts.load(Ordering::Relaxed) > 0
    }

    /// Returns the reason if it is new.
    fn publish_failure(&self, unread: Unread) -> Option<String> {
        let was_ready = self.publish.borrow().catalog.is_some() || self.service.api().is_some();
        let detail = match unread {
            Unread::Wrong(why) if !was_ready => {
                format!("{}the OpenAPI document: {why}", BackendState::CANNOT_START)
            }
            Unread::Wrong(why) | Unread::Away(why) => format!("trying again: {why}"),
        };
        let deserted = self.service.reachability.missed();
        let told = self.publish.send_if_modified(|state| {
            let gone = deserted && state.catalog.is_some();
            if state.detail.as_ref() == Some(&detail) && !gone {
                return false;
            }
            state.detail = Some(detail.clone());
            if deserted {
                state.catalog = None;
            }
            true
        });
        told.then_some(detail)
    }
}

fn tell(news: Option<&str>) {
    if let Some(reason) = news {
        tracing::warn!(target: "shoal::openapi", reason, "the service is tried again");
    }
}
