//! One client on one keep-alive connection: opens a session, then makes requests one by one.

use std::net::IpAddr;

use http::HeaderValue;
use serde::Deserialize;

use super::answer::Message;
use super::{Mode, legacy, modern};
use crate::connection::{Connection, Goodbye, Reply};
use crate::failure::Failure;
use crate::target::Target;

/// What a modern listener wants to hear.
const LISTEN_TO: &str = r#""notifications":{"toolsListChanged":true}"#;

/// A client that is ready to call.
pub(crate) struct Client {
    target: Target,
    /// `None` for a modern client.
    session: Option<legacy::Session>,
    /// `None` between a failed or abandoned exchange and the next one, which opens another.
    connection: Option<Connection>,
    /// For answers to the server while an exchange is open; opened with the first of them.
    side: Option<Connection>,
    goodbye: Goodbye,
    /// What the client declares that it can do: a JSON object.
    capabilities: &'static str,
    source: Option<IpAddr>,
    next_id: u64,
}

impl Client {
    /// Connects and, in the legacy era, initialises. The client declares no capabilities.
    ///
    /// # Errors
    ///
    /// Where the server is not there or refuses the handshake.
    pub(crate) async fn open(
        target: &Target,
        mode: Mode,
        goodbye: Goodbye,
    ) -> Result<Self, Failure> {
        Self::open_with(None, target, mode, goodbye, "{}").await
    }

    /// As [`Client::open`], declaring `capabilities`, a JSON object.
    ///
    /// # Errors
    ///
    /// As [`Client::open`].
    pub(crate) async fn open_able(
        target: &Target,
        mode: Mode,
        goodbye: Goodbye,
        capabilities: &'static str,
    ) -> Result<Self, Failure> {
        Self::open_with(None, target, mode, goodbye, capabilities).await
    }

    /// As [`Client::open`], with `source` as the client's own address.
    ///
    /// # Errors
    ///
    /// As [`Client::open`].
    pub(crate) async fn open_from(
        source: Option<IpAddr>,
        target: &Target,
        mode: Mode,
        goodbye: Goodbye,
    ) -> Result<Self, Failure> {
        Self::open_with(source, target, mode, goodbye, "{}").await
    }

    async fn open_with(
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

    /// The legacy session; `None` for a modern client.
    pub(crate) fn session(&self) -> Option<&legacy::Session> {
        self.session.as_ref()
    }

    /// Goes on over a connection that holds little of what is not read.
    ///
    /// # Errors
    ///
    /// Where the server cannot be reached.
    pub(crate) async fn narrow(&mut self) -> Result<(), Failure> {
        let connection = Connection::open_narrow(&self.target, self.goodbye).await?;
        self.connection = Some(connection);
        Ok(())
    }

    /// The id for the next request.
    pub(crate) fn next_id(&mut self) -> u64 {
        self.next_id += 1;
        self.next_id
    }

    /// Sends a request and leaves the reading of its answer to the caller.
    ///
    /// `params` is the inside of a JSON object, without its braces.
    ///
    /// # Errors
    ///
    /// Where the server cannot be reached or refuses at the HTTP level.
    pub(crate) async fn start(
        &mut self,
        id: u64,
        method: &'static str,
        name: Option<&HeaderValue>,
        params: &str,
    ) -> Result<Reply, Failure> {
        self.start_with(id, method, name, params, "").await
    }

    /// As [`Client::start`], with `meta`, the inside of a JSON object, in the request's `_meta`.
    ///
    /// # Errors
    ///
    /// As [`Client::start`].
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

    /// Makes a request and gives its response message to `check`.
    ///
    /// # Errors
    ///
    /// Where there is no answer, more than one, or one that `check` refuses.
    pub(crate) async fn request<T>(
        &mut self,
        method: &'static str,
        name: Option<&HeaderValue>,
        params: &str,
        check: impl FnOnce(&str) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        self.request_watched(method, name, params, |_| Ok(()), check)
            .await
    }

    /// The same, giving each message that is no response (progress, above all) to `watch`, in order.
    ///
    /// # Errors
    ///
    /// As [`Client::request`], and where `watch` refuses a message.
    pub(crate) async fn request_watched<T>(
        &mut self,
        method: &'static str,
        name: Option<&HeaderValue>,
        params: &str,
        watch: impl FnMut(&Message<'_>) -> Result<(), Failure>,
        check: impl FnOnce(&str) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        let id = self.next_id();
        let reply = self.start(id, method, name, params).await?;
        self.finish(reply, id, watch, check).await
    }

    /// The names of the server's tools, as far as its first page goes.
    ///
    /// # Errors
    ///
    /// Where the listing fails.
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

    /// Opens the stream on which a server speaks unasked, and gives the connection to it: the standalone stream of a
    /// session, or `subscriptions/listen` for everything that takes no resource.
    ///
    /// # Errors
    ///
    /// Where the server cannot be reached or refuses.
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

    /// Takes back the connection of an answer that was read to its end.
    pub(crate) fn give_back(&mut self, reply: Reply) {
        self.connection = reply.into_connection();
    }

    /// Answers request `id` of a legacy server, both being JSON, while the exchange that it came on stays open.
    ///
    /// # Errors
    ///
    /// Where the server cannot be reached or refuses the answer.
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

    /// Ends the session, where there is one.
    ///
    /// # Errors
    ///
    /// Where the server cannot be reached or refuses.
    pub(crate) async fn end(mut self) -> Result<(), Failure> {
        let Some(request) = self.session.as_ref().map(legacy::Session::end) else {
            return Ok(());
        };
        self.connect().await?.send(request).await.map(drop)
    }

    /// Reads `reply` to its end.
    async fn finish<T>(
        &mut self,
        mut reply: Reply,
        id: u64,
        mut watch: impl FnMut(&Message<'_>) -> Result<(), Failure>,
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
                watch(&message)?;
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
        self.finish(reply, id, |_| Ok(()), |_| Ok(())).await?;
        let session = legacy::Session::new(self.target.clone(), session_id);
        let initialized = session.notification("notifications/initialized");
        let mut reply = self.connect().await?.send(initialized).await?;
        while reply.next().await?.is_some() {}
        self.give_back(reply);
        self.session = Some(session);
        Ok(())
    }

    /// The connection to use next.
    async fn connect(&mut self) -> Result<Connection, Failure> {
        match self.connection.take() {
            Some(connection) => Ok(connection),
            None => Connection::open_from(self.source, &self.target, self.goodbye).await,
        }
    }
}
