use clap::Args;
use toml::{Table, Value};

use super::Stdio;
use crate::config::Flag;

/// Pools that need no configuration file.
#[derive(Clone, Debug, Default, Args)]
pub struct Pools {
    /// Serve the built-in demo tools.
    #[arg(long)]
    pub demo: bool,
    /// Serve the fixtures of the official conformance suite.
    #[arg(long)]
    pub conformance: bool,
    /// Environment variable for the server after --. With NAME alone, the server gets the value of Shoal's own variable.
    /// Other users of this machine can see a value that you write here. Repeat the flag for several variables.
    #[arg(long, value_name = "NAME[=VALUE]", requires = "server")]
    pub env: Vec<String>,
    /// Give the server after -- all of Shoal's environment variables, except SHOAL_…; `shoal stdio` always does this.
    #[arg(long, requires = "server")]
    pub inherit: bool,
    /// Serve an HTTP service as tools, by its OpenAPI document.
    #[arg(long, value_name = "FILE|URL")]
    pub openapi: Option<String>,
    /// URL of the --openapi service, if the document does not name it. For several equal services, name all URLs.
    #[arg(
        long,
        value_name = "URL,…",
        value_delimiter = ',',
        requires = "openapi"
    )]
    pub base_url: Vec<String>,
    /// Serve only the --openapi tools with these names; `*` matches any characters.
    #[arg(
        long,
        value_name = "NAME,…",
        value_delimiter = ',',
        requires = "openapi"
    )]
    pub allow: Vec<String>,
    /// Serve only the --openapi operations with one of these tags; `*` matches any characters.
    #[arg(
        long,
        value_name = "TAG,…",
        value_delimiter = ',',
        requires = "openapi"
    )]
    pub tag: Vec<String>,
    /// Serve only the --openapi operations with one of these paths; `*` matches any characters.
    #[arg(long, value_name = "PATH", requires = "openapi")]
    pub path: Vec<String>,
    /// URL of the MCP server to serve, or the URLs of several equal servers.
    #[arg(value_name = "URL")]
    pub urls: Vec<String>,
    /// Command that starts the MCP server to serve. The server must use its standard input and output.
    #[arg(last = true, value_name = "COMMAND")]
    pub server: Vec<String>,
}

impl Stdio {
    /// Returns the flags' settings. The server gets this process's environment, because the client sets it for the
    /// server.
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
    /// The pool of the servers of `--url`.
    pub const REMOTE: &str = "http";
    /// The pool of the service of `--openapi`.
    pub const OPENAPI: &str = "openapi";

    /// Returns the command after `--`, as typed.
    pub fn command(&self) -> Option<String> {
        (!self.server.is_empty()).then(|| self.server.join(" "))
    }

    /// Returns what the user typed: the command, the URLs or the OpenAPI document.
    pub fn typed(&self) -> Option<String> {
        let urls = (!self.urls.is_empty()).then(|| self.urls.join(" "));
        self.command().or(urls).or_else(|| self.openapi.clone())
    }

    /// Returns the flags' pools, as settings.
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
        if !self.urls.is_empty() {
            let urls = self.urls.iter().map(|url| url.as_str().into());
            let urls: Vec<Value> = urls.collect();
            let server = Table::from_iter([("urls".to_owned(), Value::Array(urls))]);
            let backend = Table::from_iter([("http".to_owned(), Value::Table(server))]);
            add("URL", Self::REMOTE, backend.into());
        }
        let list = |items: &[String]| {
            let items = items.iter().map(|item| Value::from(item.as_str()));
            Value::Array(items.collect())
        };
        if let Some(document) = &self.openapi {
            let mut service = Table::from_iter([("document".to_owned(), document.as_str().into())]);
            let lists = [
                ("base_urls", &self.base_url),
                ("tags", &self.tag),
                ("paths", &self.path),
            ];
            for (setting, given) in lists.into_iter().filter(|(_, given)| !given.is_empty()) {
                service.insert(setting.to_owned(), list(given));
            }
            let backend = Table::from_iter([("openapi".to_owned(), Value::Table(service))]);
            add("--openapi", Self::OPENAPI, backend.into());
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
        if !self.allow.is_empty() {
            flags.push(Flag {
                flag: "--allow",
                path: ["pools", Self::OPENAPI, "tools", "allow"]
                    .map(str::to_owned)
                    .to_vec(),
                value: list(&self.allow),
            });
        }
        flags
    }
}
