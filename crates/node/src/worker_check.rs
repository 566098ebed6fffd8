//! `shoal worker-check`: drives a worker, in any language, through the contract as a node does.
//!
//! | | |
//! |---|---|
//! | `listener` | the address that the worker joins, and its command |
//! | `link` | the node's side of a link: batches, fragments, pings |
//! | `link_in_use` | the link of a check, reused by the next one |
//! | `call_reader` | one reader of one call |
//! | `calls` | the calls of the checks |
//! | `check_failure` | why a check did not pass |
//! | `checks` | the checks |
//! | `report` | the printed results |

mod call_reader;
mod calls;
mod check_failure;
mod checks;
mod link;
mod link_in_use;
mod listener;
mod report;

use crate::cli::WorkerCheck;
use crate::exit::Failure;
use crate::print::{Output, json, print};
use check_failure::CheckFailure;
use checks::CHECKS;
use listener::WorkerListener;
use report::CheckReport;

/// Checks a worker and prints each result.
///
/// # Errors
///
/// If no worker joins in time, a named check is unknown, or the worker violates the contract.
pub async fn run(command: &WorkerCheck) -> Result<(), Failure> {
    if let Some(unknown) =
        (command.only.iter()).find(|name| CHECKS.iter().all(|c| c.name != **name))
    {
        let names: Vec<&str> = CHECKS.iter().map(|check| check.name).collect();
        return Err(Failure::usage(format!(
            "no check is called {unknown:?}; there are {}",
            names.join(", ")
        )));
    }
    let mut listener = WorkerListener::start(command).await?;
    let mut report = CheckReport::new(listener.meet().await?);
    for check in CHECKS {
        if !command.only.is_empty() && !command.only.iter().any(|name| name == check.name) {
            continue;
        }
        let missing = check.tools.iter().find(|tool| !report.offers(tool));
        let result = match missing {
            Some(tool) => Err(CheckFailure::Skipped(format!(
                "the worker offers no tool {tool}"
            ))),
            None => (check.run)(&mut listener).await,
        };
        if matches!(result, Err(CheckFailure::Failed { .. })) {
            listener.hang_up();
        }
        report.add(check, result);
        if command.output == Output::Text {
            print(&report.last_line())?;
        }
    }
    listener.stop().await;
    match command.output {
        Output::Text => print(&report.summary())?,
        Output::Json => print(&json(&report)?)?,
    }
    match report.failed() {
        0 => Ok(()),
        failed => Err(Failure::shown(format!(
            "the worker does not keep the contract: {failed} checks failed"
        ))),
    }
}
