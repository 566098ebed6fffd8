//! The command line, and the settings from its flags.

mod calls;
mod certificates;
mod client_config;
mod controller;
mod examples;
mod policy;
mod pools;
mod worker_check;

use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Args, CommandFactory as _, Parser, Subcommand};
use clap_complete::Shell;
use toml::Value;

use crate::config::{Flag, Role, listen_address};
use crate::exit::Code;
use crate::print::Output;

pub use calls::{Call, Era, OneTask, Remote, Tasks, Tools};
pub use certificates::Certificates;
pub use client_config::{ClientConfig, Header, McpClient};
pub use controller::Controller;
pub use policy::{PolicyCommand, PolicyTest};
pub use pools::Pools;
pub use worker_check::WorkerCheck;

/// Run one MCP server on many nodes.
///
/// Without a command, Shoal does what `shoal serve` does. Without a configuration file, it serves its demo tools.
#[derive(Clone, Debug, Parser)]
#[command(name = "shoal", version, propagate_version = true, after_long_help = Code::help())]
pub struct Cli {
    /// Command to run.
    #[command(subcommand)]
    pub command: Option<Command>,
}

/// Commands of `shoal`.
#[derive(Clone, Debug, Subcommand)]
pub enum Command {
    /// Serve MCP over HTTP.
    Serve(Serve),
    /// Serve one client over standard input and output. The server runs in this process or at --url.
    Stdio(Stdio),
    /// List the tools of a server.
    Tools(Tools),
    /// Call a tool of a server and print its answer.
    Call(Call),
    /// Show, cancel or watch calls that have become tasks.
    #[command(subcommand)]
    Tasks(Tasks),
    /// Print nodes, pools, sessions and leases as a node sees them.
    Status(Status),
    /// Check that a worker, in any language, keeps the worker contract.
    WorkerCheck(WorkerCheck),
    /// Print the configuration that an MCP client needs.
    ClientConfig(ClientConfig),
    /// Make the certificate authority and the certificates of a cluster.
    Certificates(Certificates),
    /// Make pools from the servers of a Kubernetes cluster.
    Controller(Controller),
    /// Check, show or document the configuration.
    #[command(subcommand)]
    Config(ConfigCommand),
    /// Test policy rules.
    #[command(subcommand)]
    Policy(PolicyCommand),
    /// Print a shell script that completes commands and flags.
    Completions {
        /// The shell.
        shell: Shell,
    },
    /// Write the man pages, one for each command.
    Man {
        /// Existing directory for the pages.
        #[arg(value_name = "DIRECTORY")]
        to: PathBuf,
    },
    /// Copy this program to a file or directory, for images without a shell.
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
    /// Address and port for MCP clients. A port alone means 127.0.0.1, and port 0 takes a free port.
    #[arg(long, value_name = "ADDRESS:PORT", value_parser = listen_address)]
    pub listen: Option<SocketAddr>,
    /// Address and port for operators.
    #[arg(long, value_name = "ADDRESS:PORT", value_parser = listen_address)]
    pub admin: Option<SocketAddr>,
    /// Roles of this process: edge, session, worker. By default, it has all three.
    #[arg(long, value_name = "ROLE,…", value_delimiter = ',')]
    pub roles: Option<Vec<Role>>,
    /// Where sessions are stored: `memory`, or the URL of a Redis.
    #[arg(long, value_name = "STORE")]
    pub store: Option<String>,
    /// Address and port for the other processes of the cluster.
    #[arg(long, value_name = "ADDRESS:PORT", value_parser = listen_address)]
    pub cluster_listen: Option<SocketAddr>,
    /// Address at which other processes reach this one, by default that of --cluster-listen.
    #[arg(long, value_name = "HOST:PORT")]
    pub advertise: Option<String>,
    /// Nodes (edges or session nodes) to which the workers of this process connect. One reachable node is enough, because
    /// it names the others.
    #[arg(long, value_name = "HOST:PORT,…", value_delimiter = ',')]
    pub join: Option<Vec<String>>,
    /// Configuration file (TOML). Without this flag, Shoal reads the file that SHOAL_CONFIG names.
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Pools besides the configured ones.
    #[command(flatten)]
    pub pools: Pools,
}

/// `shoal stdio`
#[derive(Clone, Debug, Default, Args)]
pub struct Stdio {
    /// Use the server or cluster at this MCP endpoint, instead of a server in this process.
    #[arg(long, conflicts_with_all = ["demo", "conformance", "server", "urls", "openapi"])]
    pub url: Option<String>,
    /// Bearer token for --url. Other users of this machine can see it here, but not in the variable SHOAL_TOKEN.
    #[arg(long, requires = "url")]
    pub token: Option<String>,
    /// Configuration file (TOML). Without this flag, Shoal reads the file that SHOAL_CONFIG names.
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Pools besides the configured ones.
    #[command(flatten)]
    pub pools: Pools,
}

/// `shoal status`
#[derive(Clone, Debug, Args)]
pub struct Status {
    /// Admin address of any node.
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:8081", value_parser = admin_address)]
    pub admin: String,
    /// Output format.
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    pub output: Output,
    /// Only check whether the node is ready, for health checks. If it is not, the exit code is 1.
    #[arg(long)]
    pub ready: bool,
}

/// `shoal config …`
#[derive(Clone, Debug, Subcommand)]
pub enum ConfigCommand {
    /// Check the configuration without starting a node.
    Check(ConfigFile),
    /// Print the settings in force as TOML, without secrets.
    Show(ConfigFile),
    /// Print the reference of all settings as Markdown.
    Doc,
    /// Print a JSON Schema of the configuration file.
    Schema,
    /// Print the SHA-256 of a token for auth.tokens. The command asks for the token, or reads it from a pipe. If you give
    /// none, it makes a token.
    HashToken,
}

/// Which configuration file.
#[derive(Clone, Debug, Default, Args)]
pub struct ConfigFile {
    /// Configuration file (TOML). Without this flag, Shoal reads the file that SHOAL_CONFIG names.
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Output format. With `text`, `config show` prints TOML.
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    pub output: Output,
}

impl Cli {
    /// Adds the examples of each command, for a program of this name.
    pub(crate) fn with_examples(program: &str) -> clap::Command {
        examples::added(Self::command(), program)
    }

    /// Whether the words end with `--` without a server.
    pub fn lacks_server(&self, words: impl Iterator<Item = OsString>) -> bool {
        let names_one = match &self.command {
            None => false,
            Some(Command::Serve(serve)) => !serve.pools.server.is_empty(),
            Some(Command::Stdio(stdio)) => !stdio.pools.server.is_empty(),
            Some(_) => true,
        };
        !names_one && words.last().is_some_and(|last| last == "--")
    }

    /// Returns the command's output format.
    pub fn output(&self) -> Output {
        match &self.command {
            Some(Command::Tools(tools)) => tools.output,
            Some(Command::Call(call)) => call.output,
            Some(Command::Tasks(command)) => command.task().output,
            Some(Command::Status(status)) => status.output,
            Some(Command::WorkerCheck(check)) => check.output,
            Some(Command::Policy(PolicyCommand::Test(test))) => test.output,
            Some(Command::Config(ConfigCommand::Check(file) | ConfigCommand::Show(file))) => {
                file.output
            }
            _ => Output::Text,
        }
    }
}

impl Serve {
    /// Returns the flags' settings.
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

#[cfg(test)]
mod tests;

/// Parses the address of an admin port, in any form that `--listen` accepts.
///
/// # Errors
/// The accepted forms, as text.
fn admin_address(text: &str) -> Result<String, String> {
    let port = text.strip_prefix(':').unwrap_or(text);
    let is_port = !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit());
    match is_port {
        true => listen_address(port).map(|address| address.to_string()),
        false => Ok(text.to_owned()),
    }
}
