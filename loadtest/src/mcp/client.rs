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
    goodbye: Goodbye,
    source: Option<IpAddr>,
    next_id: u64,
}

impl Client {
    /// Connects and, in the legacy era, initialises.
    ///
    /// # Errors
    ///
    /// Where the server is not there or refuses the handshake.
    pub(crate) async fn open(
        target: &Target,
        mode: Mode,
        goodbye: Goodbye,
    ) -> Result<Self, Failure> {
        Self::open_from(None, target, mode, goodbye).await
    }

    /// Like [`open`](Self::open), with `source` as the client's own address.
    pub(crate) async fn open_from(
        source: Option<IpAddr>,
        target: &Target,
        mode: Mode,
        goodbye: Goodbye,
    ) -> Result<Self, Failure> {
        let mut client = Self {
            target: target.clone(),
            session: None,
            connection: Some(Connection::open_from(source, target, goodbye).await?),
            goodbye,
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
        let request = match &self.session {
            Some(session) => session.request(id, method, &format!("{{{params}}}")),
            None => modern::request(&self.target, id, method, name, params),
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
        let id = self.next_id();
        let reply = self.start(id, method, name, params).await?;
        self.finish(reply, id, check).await
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
        let request = legacy::initialize(&self.target, id);
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

    /// The connection to use next.
    async fn connect(&mut self) -> Result<Connection, Failure> {
        match self.connection.take() {
            Some(connection) => Ok(connection),
            None => Connection::open_from(self.source, &self.target, self.goodbye).await,
        }
    }
}
