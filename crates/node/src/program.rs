//! The `shoal` binary, or a program that embeds its author's server.

use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context as _;
use clap::FromArgMatches as _;
use clap::error::ErrorKind;
use shoal_ports::NodeId;
use tokio::runtime::{Builder, Runtime};

pub use crate::pool_handler::{PoolHandler, StartHandler};

use crate::cli::{Cli, Command, Controller, Serve};
use crate::config::{self, Environment, Loaded, Preset, Role, Settings};
#[cfg(feature = "controller")]
use crate::controller_command;
use crate::exit::Failure;
use crate::node_id::node_id;
use crate::{
    call_command, certificates_command, client_config, config_command, install, policy_command,
    serve, shell, status_command, stdio, worker_check,
};

const LAST_MOMENTS: Duration = Duration::from_secs(1);

/// A program's name, settings and server. [`Program::default`] is the `shoal` binary, without a server.
pub struct Program {
    /// The command that users type.
    pub name: String,
    /// The program's own version, printed beside Shoal's.
    pub version: Option<String>,
    /// Defaults. The file, the environment and flags override them.
    pub settings: Vec<Preset>,
    /// The embedded server.
    pub handler: Option<PoolHandler>,
}

impl Default for Program {
    fn default() -> Self {
        Self {
            name: "shoal".to_owned(),
            version: None,
            settings: Vec::new(),
            handler: None,
        }
    }
}

impl Program {
    /// Runs the process's command. A command that serves takes over signals, logging and telemetry until the process
    /// ends.
    pub fn run(self) -> ExitCode {
        let matches = self.command().get_matches();
        let cli = Cli::from_arg_matches(&matches).unwrap_or_else(|error| error.exit());
        if cli.lacks_server(std::env::args_os().skip(1)) {
            let what = "no command follows --: name the MCP server to run, such as \
                        `-- npx -y @modelcontextprotocol/server-everything`, or leave -- out";
            let kind = ErrorKind::MissingRequiredArgument;
            self.command().error(kind, what).exit();
        }
        let output = cli.output();
        match self.execute(cli) {
            Ok(()) => ExitCode::SUCCESS,
            Err(failure) => failure.report(output),
        }
    }

    pub(crate) fn command(&self) -> clap::Command {
        let command = Cli::with_examples(&self.name);
        if self.handler.is_none() {
            return command;
        }
        let name: &'static str = self.name.clone().leak();
        let shoal = env!("CARGO_PKG_VERSION");
        let version = match &self.version {
            Some(own) => format!("{own} (shoal {shoal})"),
            None => format!("(shoal {shoal})"),
        };
        let version: &'static str = version.leak();
        command
            .name(name)
            .version(version)
            .about("An MCP server on one node or many, run by Shoal")
            .long_about(
                "An MCP server on one node or many, run by Shoal.\n\nWithout a command: `serve`.",
            )
    }

    fn execute(self, cli: Cli) -> Result<(), Failure> {
        let command = cli.command.unwrap_or(Command::Serve(Serve::default()));
        match command {
            Command::Serve(command) => {
                let mut reader = serve::reader(&command, &self, &Environment::of_process());
                let loaded = reader.load()?;
                told(loaded, |loaded, id| {
                    serve::run(command, reader, loaded, id, self.handler)
                })
            }
            Command::Stdio(command) => {
                let environment = Environment::of_process();
                let mut reader = stdio::reader(&command, &self, &environment);
                let loaded = reader.load()?;
                told(loaded, |loaded, id| {
                    let token = environment.token;
                    stdio::run(command, token, reader, loaded, id, self.handler)
                })
            }
            Command::Tools(command) => in_runtime(call_command::tools(
                &command,
                Environment::of_process().token,
            )),
            Command::Call(command) => in_runtime(call_command::call(
                &command,
                Environment::of_process().token,
            )),
            Command::Tasks(command) => in_runtime(call_command::tasks(
                &command,
                Environment::of_process().token,
            )),
            Command::Status(command) => in_runtime(status_command::run(&command)),
            Command::WorkerCheck(command) => in_runtime(worker_check::run(&command)),
            Command::ClientConfig(command) => client_config::run(&command),
            Command::Certificates(command) => in_runtime(certificates_command::run(&command)),
            Command::Controller(command) => control(command),
            Command::Policy(command) => policy_command::run(&command, &self.settings),
            Command::Config(command) => {
                config_command::run(&command, &self.settings, &self.check())
            }
            Command::Completions { shell } => shell::completions(shell, &self),
            Command::Man { to } => shell::man(&to, &self),
            Command::Install { to } => install::run(&to),
        }
    }

    /// Fails if this process would run a pool whose embedded server the program lacks.
    pub(crate) fn check(
        &self,
    ) -> impl Fn(&Settings) -> Result<(), Failure> + Send + Sync + 'static {
        let own = self.handler.as_ref().map(|handler| handler.pool.clone());
        move |settings| check(own.as_deref(), settings)
    }
}

fn check(own: Option<&str>, settings: &Settings) -> Result<(), Failure> {
    if !settings.node.is(Role::Worker) {
        return Ok(());
    }
    let mut pools = settings.pools.iter();
    let missing = pools.find(|(name, pool)| {
        matches!(pool.backend, config::Backend::Handler) && own != Some(name.as_str())
    });
    let Some((name, _)) = missing else {
        return Ok(());
    };
    let brings = match own {
        None => "this program brings none: start the one that was built with it".to_owned(),
        Some(own) => format!("this program brings that of the pool {own:?}"),
    };
    Err(Failure::usage(format!(
        "pools.{name}.backend = \"handler\" stands for a server that is built in, and {brings}; or leave the role \
             worker out (node.roles)"
    )))
}

#[cfg(feature = "controller")]
fn control(command: Controller) -> Result<(), Failure> {
    let environment = Environment::of_process();
    let loaded = controller_command::load(&command, &environment)?;
    told(loaded, |loaded, id| {
        controller_command::run(command, environment, loaded, id)
    })
}

#[cfg(not(feature = "controller"))]
fn control(_: Controller) -> Result<(), Failure> {
    Err(Failure::usage(
        "this program was built without the controller: build it with --features controller",
    ))
}

fn told<W: Future<Output = Result<(), Failure>>>(
    loaded: Loaded,
    work: impl FnOnce(Loaded, NodeId) -> W,
) -> Result<(), Failure> {
    let settings = &loaded.settings;
    let id = node_id(settings);
    let telemetry = settings.telemetry_of(id.as_str());
    let guard = shoal_telemetry::init(&telemetry, &settings.logging)
        .context("cannot set up telemetry and logging")?;
    shoal_telemetry::audit::start(&settings.audit).map_err(anyhow::Error::from)?;
    let last_words = settings.shutdown.telemetry.get();
    let done = in_runtime(work(loaded, id));
    guard.shutdown(last_words);
    done
}

fn in_runtime(work: impl Future<Output = Result<(), Failure>>) -> Result<(), Failure> {
    let runtime: Runtime = Builder::new_multi_thread()
        .thread_name("shoal")
        .enable_all()
        .build()
        .context("cannot start the runtime")?;
    let done = runtime.block_on(work);
    runtime.shutdown_timeout(LAST_MOMENTS);
    done
}
