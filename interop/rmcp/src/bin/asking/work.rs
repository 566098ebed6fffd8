use std::io::Write as _;
use std::time::Duration;

use rmcp::{
    ErrorData, RoleServer,
    model::ProgressNotificationParam,
    schemars::{self, JsonSchema},
    service::RequestContext,
};
use serde::Deserialize;

#[derive(Deserialize, JsonSchema)]
pub(crate) struct Job {
    steps: u32,
    label: String,
}

/// Works in steps with progress, unless it is cancelled.
pub(crate) async fn run(job: Job, ctx: RequestContext<RoleServer>) -> Result<String, ErrorData> {
    let Job { steps, label } = job;
    record(&format!("started {label}"))?;
    for step in 1..=steps {
        if let Some(token) = ctx.meta.get_progress_token() {
            let progress = ProgressNotificationParam::new(token, f64::from(step));
            let said = ctx
                .peer
                .notify_progress(progress.with_total(f64::from(steps)));
            said.await
                .map_err(|error| ErrorData::internal_error(error.to_string(), None))?;
        }
        tokio::select! {
            () = ctx.ct.cancelled() => {
                record(&format!("cancelled {label}"))?;
                return Err(ErrorData::internal_error("cancelled", None));
            }
            () = tokio::time::sleep(Duration::from_millis(50)) => {}
        }
    }
    Ok(format!("worked {steps} steps"))
}

/// Records an event in a file, because a killed process loses its memory.
fn record(what: &str) -> Result<(), ErrorData> {
    let path = std::env::var_os("INTEROP_RECORD").unwrap_or_default();
    let mut options = std::fs::File::options();
    let written = options
        .append(true)
        .create(true)
        .open(path)
        .and_then(|mut file| writeln!(file, "{what}"));
    written.map_err(|error| ErrorData::internal_error(error.to_string(), None))
}
