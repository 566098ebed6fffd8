use std::net::IpAddr;

use http::HeaderValue;
use serde::Deserialize;

use super::Mode;
use super::answer::{Message, parse};
use super::request::{Requests, SESSION_ID};
use crate::connection::{Connection, Goodbye, Reply};
use crate::failure::Failure;
use crate::target::Target;

pub(crate) struct Client {
    requests: Requests,
    connection: Option<Connection>,
    /// Opened on demand, for answers to the server while an exchange is open.
    side: Option<Connection>,
    goodbye: Goodbye,
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
            requests: Requests {
                target: target.clone(),
                mode,
                session: None,
                capabilities,
            },
            connection: Some(Connection::open_from(source, target, goodbye).await?),
            side: None,
            goodbye,
            source,
            next_id: 0,
        };
        if mode == Mode::Legacy {
            client.initialize().await?;
        }
        Ok(client)
    }

    pub(crate) fn mode(&self) -> Mode {
        self.requests.mode
    }

    pub(crate) async fn narrow(&mut self) -> Result<(), Failure> {
        let connection = Connection::open_narrow(&self.requests.target, self.goodbye).await?;
        self.connection = Some(connection);
        Ok(())
    }

    pub(crate) fn next_id(&mut self) -> u64 {
        self.next_id += 1;
        self.next_id
    }

    /// Sends a request, whose answer the caller reads. `name` is that of the tool, resource or task, or empty. `params`
    /// and `meta` are JSON objects without their braces.
    pub(crate) async fn start(
        &mut self,
        id: u64,
        method: &'static str,
        name: &str,
        params: &str,
        meta: &str,
    ) -> Result<Reply, Failure> {
        let request = self.requests.request(id, method, name, params, meta)?;
        self.connect().await?.send(request).await
    }

    pub(crate) async fn request<T>(
        &mut self,
        method: &'static str,
        name: &str,
        params: &str,
        check: impl FnOnce(&str) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        let id = self.next_id();
        let reply = self.start(id, method, name, params, "").await?;
        self.finish(reply, id, check).await
    }

    /// `arguments` is a JSON object.
    pub(crate) async fn call<T>(
        &mut self,
        tool: &str,
        arguments: &str,
        check: impl FnOnce(&str) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        let params = format!(r#""name":"{tool}","arguments":{arguments}"#);
        self.request("tools/call", tool, &params, check).await
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
        let listing: Listing = self
            .request("tools/list", "", "", |result| parse(result))
            .await?;
        Ok(listing.tools.into_iter().map(|tool| tool.name).collect())
    }

    /// Opens a stream of this client on its connection: the GET stream, or `subscriptions/listen` for these
    /// notifications, a JSON object.
    pub(crate) async fn listen(&mut self, notifications: &str) -> Result<Reply, Failure> {
        if self.mode() == Mode::Legacy {
            let request = self.requests.listen(None);
            return self.connect().await?.send(request).await;
        }
        let (id, wanted) = (
            self.next_id(),
            format!(r#""notifications":{notifications}"#),
        );
        self.start(id, "subscriptions/listen", "", &wanted, "")
            .await
    }

    /// Opens the session's GET stream on its own connection, which is reset on drop, because many orderly closes would
    /// use up the ports.
    pub(crate) async fn stream(
        &self,
        target: &Target,
        last_event_id: Option<&HeaderValue>,
    ) -> Result<Reply, Failure> {
        let connection = Connection::open(target, Goodbye::Reset).await?;
        connection.send(self.requests.listen(last_event_id)).await
    }

    pub(crate) fn give_back(&mut self, reply: Reply) {
        self.connection = reply.into_connection();
    }

    /// The exchange stays open. Both arguments are JSON.
    pub(crate) async fn answer(&mut self, id: &str, result: &str) -> Result<(), Failure> {
        let response = format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{result}}}"#);
        let connection = match self.side.take() {
            Some(connection) => connection,
            None => self.connection().await?,
        };
        let mut reply = connection.send(self.requests.post(response)).await?;
        while reply.next().await?.is_some() {}
        self.side = reply.into_connection();
        Ok(())
    }

    pub(crate) async fn end(mut self) -> Result<(), Failure> {
        if self.mode() == Mode::Modern {
            return Ok(());
        }
        let request = self.requests.end();
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
        let request = self.requests.initialize(id);
        let reply = self.connect().await?.send(request).await?;
        self.requests.session = reply.headers.get(SESSION_ID).cloned();
        self.finish(reply, id, |_| Ok(())).await?;
        let initialized = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
        let request = self.requests.post(initialized.to_owned());
        let mut reply = self.connect().await?.send(request).await?;
        while reply.next().await?.is_some() {}
        self.give_back(reply);
        Ok(())
    }

    async fn connect(&mut self) -> Result<Connection, Failure> {
        match self.connection.take() {
            Some(connection) => Ok(connection),
            None => self.connection().await,
        }
    }

    async fn connection(&self) -> Result<Connection, Failure> {
        Connection::open_from(self.source, &self.requests.target, self.goodbye).await
    }
}
