//! Arguments of the commands that use a server's tools.

use std::time::Duration;

use clap::{Args, Subcommand, ValueEnum};

use super::Output;

/// `shoal tools`
#[derive(Clone, Debug, Args)]
pub struct Tools {
    /// List what an OpenAPI document has and cannot be a tool, and why, instead. The admin port says it.
    #[arg(long)]
    pub left_out: bool,
    /// List the tools whose schemas are shown in less detail than an OpenAPI document has, and how, instead. The admin port says it.
    #[arg(long, conflicts_with = "left_out")]
    pub cut: bool,
    /// The admin address of any node, for --left-out and --cut.
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:8081", value_parser = super::admin_address)]
    pub admin: String,
    /// Which server.
    #[command(flatten)]
    pub server: Remote,
    /// Print how many tokens of a model's context each tool takes, roughly: four bytes are one token.
    #[arg(long)]
    pub stats: bool,
    /// How to print them.
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    pub output: Output,
}

/// `shoal call`
#[derive(Clone, Debug, Args)]
pub struct Call {
    /// Which server.
    #[command(flatten)]
    pub server: Remote,
    /// How to print the result.
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    pub output: Output,
    /// Let it become a task, which goes on without this command, and wait for its end; each request has --timeout.
    #[arg(long)]
    pub task: bool,
    /// Print the task's id and end, while the task goes on.
    #[arg(long, requires = "task")]
    pub detach: bool,
    /// The answer to a field of what the tool asks for, which is asked at the terminal otherwise. May be repeated.
    #[arg(long, value_name = "NAME=VALUE", value_parser = answer)]
    pub answer: Vec<(String, String)>,
    /// The tool's name.
    pub name: String,
    /// Its arguments, a JSON object.
    #[arg(value_name = "JSON", default_value = "{}")]
    pub arguments: String,
}

/// `shoal tasks …`
#[derive(Clone, Debug, Subcommand)]
pub enum Tasks {
    /// Print a task as it is now.
    Get(OneTask),
    /// Ask a task to stop.
    Cancel(OneTask),
    /// Wait for a task's end and print its result; what it asks can be answered. Each request has --timeout.
    Watch(OneTask),
}

/// A task of a server.
#[derive(Clone, Debug, Args)]
pub struct OneTask {
    /// Which server.
    #[command(flatten)]
    pub server: Remote,
    /// How to print it.
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    pub output: Output,
    /// The task's id, as `shoal call --task` says it.
    #[arg(value_name = "ID")]
    pub id: String,
}

impl Tasks {
    /// The task of the command.
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
    /// Bearer token; better by SHOAL_TOKEN, which other users of the machine cannot see.
    #[arg(long)]
    pub token: Option<String>,
    /// The era to speak; unset, the newest that the server knows.
    #[arg(long)]
    pub era: Option<Era>,
    /// How long it may take altogether, but for the time that a user takes to answer.
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
