//! The command line, and the settings that it makes.

mod calls;

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};
use toml::{Table, Value};

use crate::config::{Flag, Role};

pub use calls::{Call, Era, Remote, Tools};

/// One logical MCP server on many nodes.
///
/// Without a command: `shoal serve` with the demo tools.
#[derive(Clone, Debug, Parser)]
#[command(name = "shoal", version, propagate_version = true)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Option<Command>,
}

/// What `shoal` can do.
#[derive(Clone, Debug, Subcommand)]
pub enum Command {
    /// Serve MCP over HTTP.
    Serve(Serve),
    /// Serve one client over standard input and output, from this process or from a cluster.
    Stdio(Stdio),
    /// List the tools of a server.
    Tools(Tools),
    /// Call a tool of a server and print its answer.
    Call(Call),
    /// Print nodes, pools, sessions and leases as a node sees them.
    Status(Status),
    /// Check, show or document the configuration.
    #[command(subcommand)]
    Config(ConfigCommand),
    /// Copy this program to a file or into a directory; for images without a shell.
    #[command(hide = true)]
    Install {
        /// The file, or a directory that exists.
        #[arg(value_name = "PATH")]
        to: PathBuf,
    },
}

/// `shoal serve`
#[derive(Clone, Debug, Default, Args)]
pub struct Serve {
    /// Address and port for MCP clients; port 0 takes a free one.
    #[arg(long, value_name = "ADDRESS:PORT")]
    pub listen: Option<SocketAddr>,
    /// Address and port for operators.
    #[arg(long, value_name = "ADDRESS:PORT")]
    pub admin: Option<SocketAddr>,
    /// What this process does: edge, session, worker.
    #[arg(long, value_name = "ROLE,…", value_delimiter = ',')]
    pub roles: Option<Vec<Role>>,
    /// Where sessions are kept: memory, or the URL of a Redis.
    #[arg(long, value_name = "STORE")]
    pub store: Option<String>,
    /// Address and port for the other processes of the cluster.
    #[arg(long, value_name = "ADDRESS:PORT")]
    pub cluster_listen: Option<SocketAddr>,
    /// Where the other processes reach this one, if not at the address above.
    #[arg(long, value_name = "HOST:PORT")]
    pub advertise: Option<String>,
    /// Edge or session nodes that the workers of this process join; one that answers is enough.
    #[arg(long, value_name = "HOST:PORT,…", value_delimiter = ',')]
    pub join: Option<Vec<String>>,
    /// The configuration file (TOML); also by SHOAL_CONFIG.
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// What runs the tools, besides the configured pools.
    #[command(flatten)]
    pub pools: Pools,
}

/// `shoal stdio`
#[derive(Clone, Debug, Default, Args)]
pub struct Stdio {
    /// MCP endpoint of the server or cluster to talk to, instead of one in this process.
    #[arg(long, conflicts_with_all = ["demo", "conformance", "server"])]
    pub url: Option<String>,
    /// Bearer token for --url; better by SHOAL_TOKEN, which other users of the machine cannot see.
    #[arg(long, requires = "url")]
    pub token: Option<String>,
    /// The configuration file (TOML); also by SHOAL_CONFIG.
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// What runs the tools, besides the configured pools.
    #[command(flatten)]
    pub pools: Pools,
}

/// `shoal status`
#[derive(Clone, Debug, Args)]
pub struct Status {
    /// The admin address of any node.
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:8081")]
    pub admin: String,
    /// Print everything as JSON.
    #[arg(long, conflicts_with = "ready")]
    pub json: bool,
    /// Print only whether the node is ready, and fail if it is not; for health checks.
    #[arg(long)]
    pub ready: bool,
}

/// Pools that need no configuration file.
#[derive(Clone, Debug, Default, Args)]
pub struct Pools {
    /// Serve the built-in demo tools.
    #[arg(long)]
    pub demo: bool,
    /// Serve the fixtures of the official conformance suite.
    #[arg(long)]
    pub conformance: bool,
    /// A variable for the server after --, and its value; without one, Shoal's own value is passed on. May be
    /// repeated. Other users of the machine can see values that are typed.
    #[arg(long, value_name = "NAME[=VALUE]", requires = "server")]
    pub env: Vec<String>,
    /// Pass all of Shoal's own environment on to the server after --, but for what configures Shoal (SHOAL_…). `shoal stdio`
    /// always does.
    #[arg(long, requires = "server")]
    pub inherit: bool,
    /// An MCP server that speaks over its standard input and output, with its arguments.
    #[arg(last = true, value_name = "COMMAND")]
    pub server: Vec<String>,
}

/// `shoal config …`
#[derive(Clone, Debug, Subcommand)]
pub enum ConfigCommand {
    /// Read and check everything, start nothing.
    Check(ConfigFile),
    /// Print the settings in force as TOML, secrets left out.
    Show(ConfigFile),
    /// Print the reference of all settings as Markdown.
    Doc,
    /// Print a JSON Schema of the configuration file.
    Schema,
    /// Read a token from standard input and print its SHA-256 for auth.tokens.
    HashToken,
}

/// Which configuration file.
#[derive(Clone, Debug, Default, Args)]
pub struct ConfigFile {
    /// The configuration file (TOML); also by SHOAL_CONFIG.
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
}

impl Serve {
    /// The settings that the flags make.
    pub fn flags(&self) -> Vec<Flag> {
        let mut flags = self.pools.flags();
        let mut add = |flag, section: &str, key: &str, value: Option<Value>| {
            flags.extend(value.map(|value| Flag {
                flag,
                path: vec![section.to_owned(), key.to_owned()],
                value,
            }));
        };
        let address = |address: SocketAddr| Value::String(address.to_string());
        add("--listen", "server", "listen", self.listen.map(address));
        add("--admin", "server", "admin", self.admin.map(address));
        let roles = self.roles.as_ref().map(|roles| {
            let names = roles.iter().map(|role| role.as_str().into());
            Value::Array(names.collect())
        });
        add("--roles", "node", "roles", roles);
        add(
            "--store",
            "node",
            "store",
            self.store.clone().map(Value::String),
        );
        let listen = self.cluster_listen.map(address);
        add("--cluster-listen", "cluster", "listen", listen);
        let advertise = self.advertise.clone().map(Value::String);
        add("--advertise", "cluster", "advertise", advertise);
        let join = self.join.as_ref().map(|nodes| {
            let nodes = nodes.iter().cloned().map(Value::String);
            Value::Array(nodes.collect())
        });
        add("--join", "cluster", "join", join);
        flags
    }
}

impl Stdio {
    /// The settings that the flags make. What a client gives this process as its environment is meant for the server that
    /// it takes it for.
    pub fn flags(&self) -> Vec<Flag> {
        let pools = Pools {
            inherit: true,
            ..self.pools.clone()
        };
        pools.flags()
    }
}

impl Pools {
    /// The pool of the server after `--`.
    pub const SERVER: &str = "stdio";

    /// The pools that the flags make.
    pub fn flags(&self) -> Vec<Flag> {
        let mut flags = Vec::new();
        let mut add = |flag, name: &str, backend: Value| {
            flags.push(Flag {
                flag,
                path: ["pools", name, "backend"].map(str::to_owned).to_vec(),
                value: backend,
            });
        };
        if self.demo {
            add("--demo", "demo", "demo".into());
        }
        if self.conformance {
            add("--conformance", "conformance", "conformance".into());
        }
        if let Some((command, arguments)) = self.server.split_first() {
            let arguments: Vec<Value> = arguments.iter().map(|word| word.as_str().into()).collect();
            let mut server = Table::new();
            server.insert("command".to_owned(), command.as_str().into());
            server.insert("args".to_owned(), arguments.into());
            let (set, passed): (Vec<&String>, Vec<&String>) =
                self.env.iter().partition(|word| word.contains('='));
            let set = set.into_iter().filter_map(|word| word.split_once('='));
            let set: Table = set
                .map(|(name, value)| (name.to_owned(), value.into()))
                .collect();
            let passed = passed.into_iter().map(String::as_str);
            let passed = passed.chain(self.inherit.then_some("*"));
            let passed: Vec<Value> = passed.map(Value::from).collect();
            if !set.is_empty() {
                server.insert("env".to_owned(), set.into());
            }
            if !passed.is_empty() {
                server.insert("inherit".to_owned(), passed.into());
            }
            let mut backend = Table::new();
            backend.insert("stdio".to_owned(), server.into());
            add("-- COMMAND", Self::SERVER, backend.into());
        }
        flags
    }
}

#[cfg(test)]
mod tests;
