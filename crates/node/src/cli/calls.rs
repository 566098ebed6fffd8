//! Arguments of the commands that use a server's tools.

use std::time::Duration;

use clap::{Args, Subcommand, ValueEnum};

use crate::print::Output;

/// `shoal tools`
#[derive(Clone, Debug, Args)]
pub struct Tools {
    /// List the operations of OpenAPI documents that cannot be tools, and why, from the admin port.
    #[arg(long)]
    pub left_out: bool,
    /// List the tools whose schemas have less detail than their OpenAPI document, and how, from the admin port.
    #[arg(long, conflicts_with = "left_out")]
    pub cut: bool,
    /// Admin address of any node, for --left-out and --cut.
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:8081", value_parser = super::admin_address)]
    pub admin: String,
    /// Which server.
    #[command(flatten)]
    pub server: Remote,
    /// Print roughly how many tokens of a model's context each tool takes: four bytes are one token.
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
    /// Let the call become a task that goes on without this command, and wait for its end. Each request has --timeout.
    #[arg(long)]
    pub task: bool,
    /// Print the task's id and exit while the task goes on.
    #[arg(long, requires = "task")]
    pub detach: bool,
    /// Answer to a field that the tool asks for, in place of a question at the terminal. May be repeated.
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
    /// Print a task.
    Get(OneTask),
    /// Ask a task to stop.
    Cancel(OneTask),
    /// Wait for a task's end, answer its questions and print its result. Each request has --timeout.
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
    /// Returns the task that the command names.
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
    /// Bearer token. Prefer SHOAL_TOKEN, which other users of the machine cannot see.
    #[arg(long)]
    pub token: Option<String>,
    /// Era to speak; by default the newest that the server knows.
    #[arg(long)]
    pub era: Option<Era>,
    /// Maximum time in all, without the time that a user takes to answer.
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
    /// Up to 2025-11-25: with a session.
    Legacy,
    /// From 2026-07-28 on.
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
