//! `shoal client-config`: prints a client's configuration.

use std::io::Write as _;

use anyhow::Context as _;
use clap::ValueEnum as _;
use serde::Serialize;
use serde_json::{Map, Value, json};

use crate::cli::{ClientConfig, Header, McpClient};
use crate::config::TOKEN;
use crate::exit::Failure;
use crate::print;
use crate::stdio::exchange::endpoint;

/// Prints the configuration. The place to paste it goes to standard error, so that standard output can be redirected to
/// a file.
///
/// # Errors
///
/// If the client does not support this configuration.
pub fn run(command: &ClientConfig) -> Result<(), Failure> {
    let program = std::env::current_exe().context("cannot find the running program")?;
    // Clients start programs without a shell's PATH.
    let text = text(command, &program.to_string_lossy())?;
    let place = format!("{}\n", place(command.client));
    let _ = std::io::stderr().write_all(place.as_bytes());
    Ok(print::print(&text)?)
}

/// A client's configuration for an endpoint.
#[derive(Serialize)]
pub struct ClientSetup {
    /// The client's name.
    pub name: &'static str,
    /// The command that prints the same configuration, with the full path of its own program.
    pub command: String,
    /// Where to paste `text`.
    pub place: &'static str,
    /// The configuration, in JSON.
    pub text: String,
    /// A remark for the operator about this client's credential.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<&'static str>,
}

/// The credential that an endpoint requires of its clients.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Credential {
    /// No credential.
    None,
    /// A bearer token that the operator hands out.
    Token,
    /// A token that the client gets from an authorization server.
    Login,
}

const NO_LOGIN: &str = "`shoal stdio` cannot log in: replace YOUR_TOKEN by an access token of the authorization server. After the token expires, replace it again.";

/// Returns the configurations of all known clients for the endpoint, with placeholders for the path of `shoal` on the
/// client's machine, and for a token if the client cannot get one itself. Empty for an invalid URL.
pub fn setups(url: &str, credential: Credential) -> Vec<ClientSetup> {
    let header = Header {
        name: "Authorization".to_owned(),
        value: "Bearer YOUR_TOKEN".to_owned(),
    };
    let clients = McpClient::value_variants().iter();
    let setup = |&client: &McpClient| {
        let word = client.to_possible_value()?.get_name().to_owned();
        let mut command = ClientConfig {
            client,
            url: url.to_owned(),
            name: "shoal".to_owned(),
            header: Vec::new(),
            stdio: false,
            env: Vec::new(),
            server: Vec::new(),
        };
        let cannot_log_in = credential == Credential::Login && starts_shoal(&command);
        let mut argument = String::new();
        if credential == Credential::Token || cannot_log_in {
            argument = format!(" --header '{}: {}'", header.name, header.value);
            command.header.push(header.clone());
        }
        Some(ClientSetup {
            name: name(client),
            command: format!("shoal client-config {word} --url {url}{argument}"),
            place: place(client),
            text: text(&command, "/PATH/TO/shoal").ok()?,
            note: cannot_log_in.then_some(NO_LOGIN),
        })
    };
    clients.filter_map(setup).collect()
}

fn text(command: &ClientConfig, program: &str) -> Result<String, Failure> {
    endpoint(&command.url).map_err(|error| Failure::usage(error.to_string()))?;
    let server = match starts_shoal(command) {
        true => started(command, program)?,
        false => called(command),
    };
    let servers = match command.client {
        McpClient::VsCode => "servers",
        _ => "mcpServers",
    };
    Ok(print::json(
        &json!({ servers: { command.name.as_str(): server } }),
    )?)
}

/// Whether the client starts `shoal stdio`.
fn starts_shoal(command: &ClientConfig) -> bool {
    command.stdio || !command.server.is_empty() || command.client == McpClient::ClaudeDesktop
}

/// The configuration of a client that calls Shoal over HTTP.
fn called(command: &ClientConfig) -> Value {
    let mut server = Map::new();
    // Cursor recognizes the server's type by its members.
    if command.client != McpClient::Cursor {
        server.insert("type".to_owned(), "http".into());
    }
    server.insert("url".to_owned(), command.url.as_str().into());
    let headers = command.header.iter();
    let headers = headers.map(|header| (header.name.clone(), header.value.as_str().into()));
    let headers: Map<String, Value> = headers.collect();
    if !headers.is_empty() {
        server.insert("headers".to_owned(), headers.into());
    }
    server.into()
}

fn started(command: &ClientConfig, program: &str) -> Result<Value, Failure> {
    let mut server = Map::new();
    if command.client != McpClient::ClaudeDesktop {
        server.insert("type".to_owned(), "stdio".into());
    }
    server.insert("command".to_owned(), program.into());
    let mut words = vec!["stdio"];
    let mut variables: Map<String, Value> = Map::new();
    match command.server.is_empty() {
        true => {
            words.extend(["--url", &command.url]);
            for header in &command.header {
                variables.insert(TOKEN.to_owned(), token(header)?.into());
            }
        }
        false => {
            words.push("--");
            words.extend(command.server.iter().map(String::as_str));
            let given = command.env.iter();
            variables.extend(given.map(|(name, value)| (name.clone(), value.as_str().into())));
        }
    }
    server.insert("args".to_owned(), words.into());
    if !variables.is_empty() {
        server.insert("env".to_owned(), variables.into());
    }
    Ok(server.into())
}

/// Returns the bearer token, the only header that `shoal stdio` can send.
fn token(header: &Header) -> Result<&str, Failure> {
    let is_authorization = header.name.eq_ignore_ascii_case("authorization");
    let token = header.value.strip_prefix("Bearer ");
    token.filter(|_| is_authorization).ok_or_else(|| {
        Failure::usage(format!(
            "`shoal stdio` sends no header {}: only 'Authorization: Bearer TOKEN' can be given to a client that starts it",
            header.name
        ))
    })
}

fn name(client: McpClient) -> &'static str {
    match client {
        McpClient::ClaudeCode => "Claude Code",
        McpClient::ClaudeDesktop => "Claude Desktop",
        McpClient::Cursor => "Cursor",
        McpClient::VsCode => "Visual Studio Code",
        McpClient::Inspector => "MCP Inspector",
    }
}

fn place(client: McpClient) -> &'static str {
    match client {
        McpClient::ClaudeCode => {
            "Put this into .mcp.json in the project's directory, or merge its server into a file that is there."
        }
        McpClient::ClaudeDesktop => {
            "Merge this into claude_desktop_config.json (Settings, Developer, Edit Config), and restart Claude Desktop."
        }
        McpClient::Cursor => {
            "Put this into .cursor/mcp.json in the project's directory, or into ~/.cursor/mcp.json for all projects."
        }
        McpClient::VsCode => {
            "Put this into .vscode/mcp.json in the workspace, or into the file that `MCP: Open User Configuration` opens."
        }
        McpClient::Inspector => {
            "Write this to a file, and start: npx @modelcontextprotocol/inspector --config FILE"
        }
    }
}

#[cfg(test)]
mod tests;
