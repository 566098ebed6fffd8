use std::net::IpAddr;

use http::HeaderValue;
use serde::Deserialize;

use super::answer::Message;
use super::{Mode, legacy, modern};
use crate::connection::{Connection, Goodbye, Reply};
use crate::failure::Failure;
use crate::target::Target;

const LISTEN_TO: &str = r#""notifications":{"toolsListChanged":true}"#;

pub(crate) struct Client {
    target: Target,
    /// `None` for a modern client.
    session: Option<legacy::Session>,
    connection: Option<Connection>,
    /// Opened on demand, for answers to the server while an exchange is open.
    side: Option<Connection>,
    goodbye: Goodbye,
    capabilities: &'static str,
    source: Option<IpAddr>,
    next_id: u64,
}

impl Client {
    /// In the legacy era, initialises the session.
    pub(crate) async fn open(
        target: &Target,
        mode: Mode,
        goodbye: Goodbye,
    ) -> Result<Self, Failure> {
        Self::open_with(None, target, mode, goodbye, "{}").await
    }

    /// `source` is the address to connect from, and `capabilities` a JSON object.
    pub(crate) async fn open_with(
        source: Option<IpAddr>,
        target: &Target,
        mode: Mode,
        goodbye: Goodbye,
        capabilities: &'static str,
    ) -> Result<Self, Failure> {
        let mut client = Self {
            target: target.clone(),
            session: None,
            connection: Some(Connection::open_from(source, target, goodbye).await?),
            side: None,
            goodbye,
            capabilities,
            source,
            next_id: 0,
        };
        if mode == Mode::Legacy {
            client.initialize().await?;
        }
        Ok(client)
    }

    pub(crate) fn session(&self) -> Option<&legacy::Session> {
        self.session.as_ref()
    }

    pub(crate) async fn narrow(&mut self) -> Result<(), Failure> {
        let connection = Connection::open_narrow(&self.target, self.goodbye).await?;
        self.connection = Some(connection);
        Ok(())
    }

    pub(crate) fn next_id(&mut self) -> u64 {
        self.next_id += 1;
        self.next_id
    }

    /// The caller reads the answer. `params` is a JSON object without its braces.
    pub(crate) async fn start(
        &mut self,
        id: u64,
        method: &'static str,
        name: Option<&HeaderValue>,
        params: &str,
    ) -> Result<Reply, Failure> {
        self.start_with(id, method, name, params, "").await
    }

    /// Like `start`, with a `_meta`. `meta` is a JSON object without its braces.
    pub(crate) async fn start_with(
        &mut self,
        id: u64,
        method: &'static str,
        name: Option<&HeaderValue>,
        params: &str,
        meta: &str,
    ) -> Result<Reply, Failure> {
        let able = self.capabilities;
        let request = match &self.session {
            Some(session) if meta.is_empty() => {
                session.request(id, method, &format!("{{{params}}}"))
            }
            Some(session) => {
                let params = format!(r#"{{{params},"_meta":{{{meta}}}}}"#);
                session.request(id, method, &params)
            }
            None => modern::request(&self.target, id, method, name, params, meta, able),
        };
        self.connect().await?.send(request).await
    }

    pub(crate) async fn request<T>(
        &mut self,
        method: &'static str,
        name: Option<&HeaderValue>,
        params: &str,
        check: impl FnOnce(&str) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        let id = self.next_id();
        let reply = self.start(id, method, name, params).await?;
        self.finish(reply, id, check).await
    }

    pub(crate) async fn tools(&mut self) -> Result<Vec<String>, Failure> {
        #[derive(Deserialize)]
        struct Listing {
            tools: Vec<Tool>,
        }
        #[derive(Deserialize)]
        struct Tool {
            name: String,
        }
        self.request("tools/list", None, "", |result| {
            let listing: Listing = serde_json::from_str(result)
                .map_err(|cause| Failure::Wrong(format!("{cause} in the list of tools")))?;
            Ok(listing.tools.into_iter().map(|tool| tool.name).collect())
        })
        .await
    }

    pub(crate) async fn listen(mut self) -> Result<Reply, Failure> {
        match self.session.as_ref().map(|session| session.listen(None)) {
            Some(request) => self.connect().await?.send(request).await,
            None => {
                let id = self.next_id();
                self.start(id, "subscriptions/listen", None, LISTEN_TO)
                    .await
            }
        }
    }

    pub(crate) fn give_back(&mut self, reply: Reply) {
        self.connection = reply.into_connection();
    }

    /// The exchange stays open. Both arguments are JSON.
    pub(crate) async fn answer(&mut self, id: &str, result: &str) -> Result<(), Failure> {
        let session = self.session.as_ref();
        let session = session.expect("only a legacy server sends requests");
        let request = session.response(id, result);
        let connection = match self.side.take() {
            Some(connection) => connection,
            None => Connection::open_from(self.source, &self.target, self.goodbye).await?,
        };
        let mut reply = connection.send(request).await?;
        while reply.next().await?.is_some() {}
        self.side = reply.into_connection();
        Ok(())
    }

    pub(crate) async fn end(mut self) -> Result<(), Failure> {
        let Some(request) = self.session.as_ref().map(legacy::Session::end) else {
            return Ok(());
        };
        self.connect().await?.send(request).await.map(drop)
    }

    async fn finish<T>(
        &mut self,
        mut reply: Reply,
        id: u64,
        check: impl FnOnce(&str) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        let mut check = Some(check);
        let mut checked = None;
        while let Some(event) = reply.next().await? {
            if event.data.is_empty() {
                continue;
            }
            let message = Message::parse(&event.data)?;
            if !message.is_response() {
                continue;
            }
            let Some(check) = check.take() else {
                return Err(Failure::Wrong(format!(
                    "request {id} was answered more than once"
                )));
            };
            checked = Some(check(message.result_of(id)?)?);
        }
        self.give_back(reply);
        checked.ok_or_else(|| Failure::Wrong(format!("request {id} was not answered")))
    }

    async fn initialize(&mut self) -> Result<(), Failure> {
        let id = self.next_id();
        let request = legacy::initialize(&self.target, id, self.capabilities);
        let reply = self.connect().await?.send(request).await?;
        let session_id = reply.headers.get(legacy::SESSION_ID).cloned();
        self.finish(reply, id, |_| Ok(())).await?;
        let session = legacy::Session::new(self.target.clone(), session_id);
        let initialized = session.notification("notifications/initialized");
        let mut reply = self.connect().await?.send(initialized).await?;
        while reply.next().await?.is_some() {}
        self.give_back(reply);
        self.session = Some(session);
        Ok(())
    }

    async fn connect(&mut self) -> Result<Connection, Failure> {
        match self.connection.take() {
            Some(connection) => Ok(connection),
            None => Connection::open_from(self.source, &self.target, self.goodbye).await,
        }
    }
}
