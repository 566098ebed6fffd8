use std::time::Duration;

use clap::{Args, Subcommand, ValueEnum};

use crate::print::Output;

/// `shoal tools`
#[derive(Clone, Debug, Args)]
pub struct Tools {
    /// Ask the admin port which operations of OpenAPI documents cannot be tools, and why.
    #[arg(long, conflicts_with = "url")]
    pub left_out: bool,
    /// Ask the admin port which tools have less detailed schemas than their OpenAPI documents, and what is missing.
    #[arg(long, conflicts_with_all = ["left_out", "url"])]
    pub cut: bool,
    /// Admin address of any node, for --left-out and --cut.
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:8081", value_parser = super::admin_address)]
    pub admin: String,
    /// Which server.
    #[command(flatten)]
    pub server: Remote,
    /// Estimate how many tokens of a model's context each tool takes, at four bytes a token.
    #[arg(long)]
    pub stats: bool,
    /// Output format.
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    pub output: Output,
}

/// `shoal call`
#[derive(Clone, Debug, Args)]
pub struct Call {
    /// Which server.
    #[command(flatten)]
    pub server: Remote,
    /// Output format.
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    pub output: Output,
    /// Let a long call become a task, which continues even if this command ends, and wait for its result. --timeout then
    /// limits each request, not the task.
    #[arg(long)]
    pub task: bool,
    /// Print the task's id, and exit without waiting for the result.
    #[arg(long, requires = "task")]
    pub detach: bool,
    /// Value for a field of a form in which the tool asks you, so that you do not need to answer at the terminal. Repeat
    /// the flag for several fields.
    #[arg(long, value_name = "NAME=VALUE", value_parser = answer)]
    pub answer: Vec<(String, String)>,
    /// Name of the tool.
    pub name: String,
    /// Arguments of the tool, a JSON object.
    #[arg(value_name = "JSON", default_value = "{}")]
    pub arguments: String,
}

/// `shoal tasks …`
#[derive(Clone, Debug, Subcommand)]
pub enum Tasks {
    /// Print a task's status, its questions and its result.
    Get(OneTask),
    /// Ask a task to stop.
    Cancel(OneTask),
    /// Wait until a task ends, ask you its questions, and print its result. --timeout limits each request, not the task.
    Watch(OneTask),
}

/// A task of a server.
#[derive(Clone, Debug, Args)]
pub struct OneTask {
    /// Which server.
    #[command(flatten)]
    pub server: Remote,
    /// Output format.
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    pub output: Output,
    /// Id of the task, as `shoal call --task` prints it.
    #[arg(value_name = "ID")]
    pub id: String,
}

impl Tasks {
    /// Returns the command's task.
    pub fn task(&self) -> &OneTask {
        match self {
            Self::Get(task) | Self::Cancel(task) | Self::Watch(task) => task,
        }
    }
}

/// A server that is called from the command line.
#[derive(Clone, Debug, Args)]
pub struct Remote {
    /// MCP endpoint of the server or cluster.
    #[arg(long, default_value = "http://127.0.0.1:8080/mcp")]
    pub url: String,
    /// Bearer token. Other users of this machine can see it here, but not in the variable SHOAL_TOKEN.
    #[arg(long)]
    pub token: Option<String>,
    /// Era of MCP to use, by default the newest that the server supports.
    #[arg(long)]
    pub era: Option<Era>,
    /// Time limit for the whole command, for example 30s. The time in which you answer questions does not count.
    #[arg(long, value_name = "TIME", default_value = "1m", value_parser = some_time)]
    pub timeout: Duration,
}

fn answer(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), value.to_owned())),
        _ => Err("an answer is written as NAME=VALUE".to_owned()),
    }
}

pub(super) fn some_time(text: &str) -> Result<Duration, String> {
    match humantime::parse_duration(text) {
        Ok(Duration::ZERO) => Err("nothing is done in no time; try 30s".to_owned()),
        Ok(time) => Ok(time),
        Err(error) => Err(error.to_string()),
    }
}

/// The eras of MCP.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Era {
    /// Revisions up to 2025-11-25, with sessions.
    Legacy,
    /// Revision 2026-07-28 and later.
    Modern,
}

impl From<Era> for shoal_protocol::Era {
    fn from(era: Era) -> Self {
        match era {
            Era::Legacy => Self::Legacy,
            Era::Modern => Self::Modern,
        }
    }
}
