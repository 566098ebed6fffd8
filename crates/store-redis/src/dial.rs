use std::time::Duration;

use redis::aio::PubSub;
use redis::cluster::ClusterClient;
use redis::io::tcp::TcpSettings;
use redis::{
    AsyncConnectionConfig, Client, ConnectionAddr, ConnectionInfo, IntoConnectionInfo,
    ProtocolVersion, RedisConnectionInfo,
};
use tokio::time::timeout;

use crate::access::{RedisAccess, RedisCredentials};
use crate::config::RedisConfig;
use crate::error::{ConnectError, text};
use crate::hello::check;
use crate::link::{CommandGatherer, RedisLink, RedisWire};
use crate::target::{RedisHost, RedisTarget, Topology};

pub(crate) struct Dialler {
    target: RedisTarget,
    credentials: RedisCredentials,
    connect_timeout: Duration,
    response_timeout: Duration,
}

const CLUSTER_RETRIES: u32 = 4;
/// In milliseconds, before following a redirection of a Redis Cluster.
const CLUSTER_WAITS: std::ops::Range<u64> = 10..250;

impl Dialler {
    /// Fails with [`ConnectError::Config`] for a URL or certificate that cannot be used.
    pub(crate) fn new(config: &RedisConfig) -> Result<Self, ConnectError> {
        let target = RedisTarget::parse(&config.url).map_err(ConnectError::Config)?;
        let credentials = RedisCredentials::new(&target, config).map_err(ConnectError::Config)?;
        let dialler = Self {
            target,
            credentials,
            connect_timeout: config.redis.connect_timeout.get(),
            response_timeout: config.redis.response_timeout.get(),
        };
        let access = dialler.access().map_err(ConnectError::Config)?;
        if access.certificates.is_some() && rustls::crypto::CryptoProvider::get_default().is_none()
        {
            let _ = rustls::crypto::ring::default_provider().install_default();
        }
        let anywhere = RedisHost {
            name: "localhost".to_owned(),
            port: 1,
        };
        let client = dialler.client(&anywhere, &access);
        client.map_err(|error| ConnectError::Config(error.to_string()))?;
        Ok(dialler)
    }

    pub(crate) fn place(&self) -> String {
        self.target.to_string()
    }

    /// Finds the current master or the Redis Cluster, within the connect time-out.
    pub(crate) async fn dial(&self) -> Result<RedisLink, String> {
        self.in_time(async {
            let access = self.access()?;
            let wire = match &self.target.place {
                Topology::Cluster(nodes) => RedisWire::Cluster(self.cluster(nodes, &access).await?),
                _ => {
                    let config = AsyncConnectionConfig::new()
                        .set_connection_timeout(None)
                        .set_response_timeout(None);
                    let client = self.server(&access).await?;
                    let connection = client.get_multiplexed_async_connection_with_config(&config);
                    RedisWire::Server(CommandGatherer::over(
                        connection.await.map_err(|error| text(&error))?,
                    ))
                }
            };
            let mut link = RedisLink::new(wire);
            check(&mut link).await?;
            Ok(link)
        })
        .await
    }

    /// Connects and subscribes to `channel`. `attempt` selects a node of a Redis Cluster, where every node forwards
    /// events.
    pub(crate) async fn dial_news(&self, channel: &str, attempt: usize) -> Result<PubSub, String> {
        self.in_time(async {
            let access = self.access()?;
            let client = match &self.target.place {
                Topology::Cluster(nodes) => self.client(&nodes[attempt % nodes.len()], &access),
                _ => Ok(self.server(&access).await?),
            };
            let subscribed = async {
                let mut news = client?.get_async_pubsub().await?;
                news.subscribe(channel).await?;
                Ok(news)
            };
            subscribed.await.map_err(|error| text(&error))
        })
        .await
    }

    async fn in_time<T>(
        &self,
        dialling: impl Future<Output = Result<T, String>>,
    ) -> Result<T, String> {
        let dialled = timeout(self.connect_timeout, dialling).await;
        dialled.unwrap_or_else(|_| Err("no connection in time".to_owned()))
    }

    async fn cluster(
        &self,
        nodes: &[RedisHost],
        access: &RedisAccess,
    ) -> Result<redis::cluster_async::ClusterConnection, String> {
        let tls = self.target.tls;
        let nodes = nodes
            .iter()
            .map(|node| info(node, access.login.clone(), tls));
        let mut builder = ClusterClient::builder(nodes)
            // Only RESP3 reports lost connections.
            .use_protocol(ProtocolVersion::RESP3)
            .connection_timeout(self.connect_timeout)
            .response_timeout(self.response_timeout)
            .retries(CLUSTER_RETRIES)
            .min_retry_wait(CLUSTER_WAITS.start)
            .max_retry_wait(CLUSTER_WAITS.end)
            .tcp_settings(tcp());
        if let Some(certificates) = &access.certificates {
            builder = builder.certs(certificates.clone());
        }
        let client = builder.build().map_err(|error| text(&error))?;
        client
            .get_async_connection()
            .await
            .map_err(|error| text(&error))
    }

    async fn server(&self, access: &RedisAccess) -> Result<Client, String> {
        let client = match &self.target.place {
            Topology::Server(host) => self.client(host, access),
            Topology::Socket(path) => {
                let info = ConnectionAddr::Unix(path.clone()).into_connection_info();
                info.map(|info| info.set_redis_settings(access.login.clone()))
                    .and_then(Client::open)
            }
            Topology::Sentinel { sentinels, master } => {
                let master = self.master(sentinels, master, access).await?;
                self.client(&master, access)
            }
            Topology::Cluster(_) => return Err("a cluster is not one server".to_owned()),
        };
        client.map_err(|error| text(&error))
    }

    /// Each sentinel gets a share of the time.
    async fn master(
        &self,
        sentinels: &[RedisHost],
        name: &str,
        access: &RedisAccess,
    ) -> Result<RedisHost, String> {
        let share = self.connect_timeout / (u32::try_from(sentinels.len()).unwrap_or(1) + 1);
        let mut failure = String::new();
        for sentinel in sentinels {
            let asked = timeout(share, ask_sentinel(sentinel, name, access)).await;
            match asked.unwrap_or_else(|_| Err("no answer in time".to_owned())) {
                Ok(master) => return Ok(master),
                Err(error) => failure = format!("sentinel {sentinel}: {error}"),
            }
        }
        Err(failure)
    }

    fn access(&self) -> Result<RedisAccess, String> {
        self.credentials.read(&self.target)
    }

    fn client(&self, host: &RedisHost, access: &RedisAccess) -> redis::RedisResult<Client> {
        open(info(host, access.login.clone(), self.target.tls), access)
    }
}

async fn ask_sentinel(
    sentinel: &RedisHost,
    name: &str,
    access: &RedisAccess,
) -> Result<RedisHost, String> {
    let mut asking = redis::cmd("SENTINEL");
    asking.arg("GET-MASTER-ADDR-BY-NAME").arg(name);
    let ask = async |login: RedisConnectionInfo| {
        let config = AsyncConnectionConfig::new()
            .set_connection_timeout(None)
            .set_response_timeout(None);
        let client = open(info(sentinel, login, access.sentinels_tls), access)?;
        let connection = client.get_multiplexed_async_connection_with_config(&config);
        asking
            .query_async::<Option<(String, u16)>>(&mut connection.await?)
            .await
    };
    let answer = match &access.at_sentinels {
        Some(login) => ask(login.clone()).await,
        // The configured user belongs to the servers, so try the sentinel without it first.
        None => match ask(RedisConnectionInfo::default()).await {
            Err(error) if error.code() == Some("NOAUTH") => {
                ask(access.login.clone().set_db(0)).await
            }
            answer => answer,
        },
    };
    match answer.map_err(|error| text(&error))? {
        Some((name, port)) => Ok(RedisHost { name, port }),
        None => Err(format!("knows no master {name}")),
    }
}

fn open(info: ConnectionInfo, access: &RedisAccess) -> redis::RedisResult<Client> {
    match (&access.certificates, info.addr()) {
        (Some(certificates), ConnectionAddr::TcpTls { .. }) => {
            Client::build_with_tls(info, certificates.clone())
        }
        _ => Client::open(info),
    }
}

fn info(host: &RedisHost, login: RedisConnectionInfo, tls: bool) -> ConnectionInfo {
    let addr = if tls {
        ConnectionAddr::TcpTls {
            host: host.name.clone(),
            port: host.port,
            insecure: false,
            tls_params: None,
        }
    } else {
        ConnectionAddr::Tcp(host.name.clone(), host.port)
    };
    let info = (host.name.clone(), host.port).into_connection_info();
    info.expect("a host and a port are a connection's information")
        .set_addr(addr)
        .set_tcp_settings(tcp())
        .set_redis_settings(login)
}

/// Closes connections with a reset, so that unsent commands do not arrive late.
fn tcp() -> TcpSettings {
    TcpSettings::default()
        .set_nodelay(true)
        .set_linger_time(Duration::ZERO)
}
