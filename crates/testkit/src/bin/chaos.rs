//! Breaks clusters under load and checks that they keep their promises.
#![expect(clippy::print_stdout, reason = "the report is what it is for")]

use std::process::ExitCode;

use clap::{Parser, ValueEnum as _};
use shoal_testkit::chaos::{self, Fault, Options};

/// Start a cluster of real processes, inject faults under load, and check the clients' histories.
///
/// Prints a block for each kind of fault. The exit code is 1 if the cluster broke a promise; the report then names the
/// directory of the logs, histories and findings. The `shoal` binary is TEST_SHOAL_BIN, else the one beside this
/// program.
#[derive(Debug, Parser)]
#[command(after_help = kinds())]
struct Arguments {
    /// Faults to inject: kinds from the list below, separated by commas, or all, each in turn.
    #[arg(long, default_value = "all")]
    fault: String,
    #[command(flatten)]
    options: Options,
}

#[tokio::main]
async fn main() -> anyhow::Result<ExitCode> {
    let Arguments { fault, mut options } = Arguments::parse();
    let faults = faults(&fault)?;
    println!("seed {}", options.seed);
    let mut clean = true;
    for fault in faults {
        options.fault = fault;
        let report = chaos::run(&options).await?;
        println!("\n{report}");
        clean &= report.is_clean();
    }
    Ok(match clean {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    })
}

fn kinds() -> String {
    let mut text = "Kinds of faults:\n".to_owned();
    for kind in Fault::value_variants() {
        let value = kind.to_possible_value();
        let help = value.and_then(|value| value.get_help().map(ToString::to_string));
        text.push_str(&format!(
            "  {:<20} {}\n",
            kind.name(),
            help.unwrap_or_default()
        ));
    }
    text
}

fn faults(text: &str) -> anyhow::Result<Vec<Fault>> {
    if text == "all" {
        return Ok(Fault::all());
    }
    let one = |name| Fault::from_str(name, true).map_err(anyhow::Error::msg);
    text.split(',').map(one).collect()
}
