use clap::{Args, ValueEnum};

/// `shoal client-config`
#[derive(Clone, Debug, Args)]
pub struct ClientConfig {
    /// Client to configure.
    pub client: McpClient,
    /// MCP endpoint of the server or cluster.
    #[arg(long, default_value = "http://127.0.0.1:8080/mcp")]
    pub url: String,
    /// Name of the server in the client.
    #[arg(long, default_value = "shoal")]
    pub name: String,
    /// Header that the client sends with every request, such as 'Authorization: Bearer TOKEN'. The printed configuration
    /// contains the value, so use a variable of the client for a token if the client has variables. Repeat the flag for
    /// several headers.
    #[arg(long, value_name = "NAME: VALUE", value_parser = header, conflicts_with = "server")]
    pub header: Vec<Header>,
    /// Let the client start `shoal stdio`, which calls the endpoint, instead of calling the endpoint itself.
    #[arg(long)]
    pub stdio: bool,
    /// Environment variable for the server after --. Repeat the flag for several variables.
    #[arg(long, value_name = "NAME=VALUE", value_parser = variable, requires = "server")]
    pub env: Vec<(String, String)>,
    /// Command of your stdio server. The client starts `shoal stdio`, which starts this command.
    #[arg(last = true, value_name = "COMMAND", conflicts_with = "url")]
    pub server: Vec<String>,
}

/// The clients whose configuration is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum McpClient {
    /// Claude Code.
    ClaudeCode,
    /// Claude Desktop, whose configuration file only starts programs.
    ClaudeDesktop,
    /// Cursor.
    Cursor,
    /// Visual Studio Code.
    #[value(name = "vscode")]
    VsCode,
    /// MCP Inspector.
    Inspector,
}

/// An HTTP header.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Header {
    /// The header's name.
    pub name: String,
    /// The header's value.
    pub value: String,
}

fn header(text: &str) -> Result<Header, String> {
    let (name, value) = text.split_once(':').unwrap_or_default();
    let (name, value) = (name.trim(), value.trim());
    let can_be_sent = name.parse::<http::HeaderName>().is_ok()
        && value.parse::<http::HeaderValue>().is_ok()
        && !value.is_empty();
    match can_be_sent {
        true => Ok(Header {
            name: name.to_owned(),
            value: value.to_owned(),
        }),
        false => Err("a header is written as 'Name: value'".to_owned()),
    }
}

fn variable(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), value.to_owned())),
        _ => Err("a variable is written as NAME=VALUE".to_owned()),
    }
}
