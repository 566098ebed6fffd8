use std::time::Duration;

use rmcp::{
    RoleServer,
    handler::server::wrapper::Parameters,
    model::{MetaObject, ProgressNotificationParam, object},
    service::RequestContext,
    tool, tool_router,
};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use tokio::{select, task::yield_now, time::sleep};

use super::DemoServer;

#[cfg(test)]
mod tests;

const MAX_STEPS: u32 = 10_000;
const MAX_INTERVAL_MS: u32 = 60_000;

#[derive(Deserialize, JsonSchema)]
struct JobArguments {
    /// How many steps to take.
    #[schemars(range(min = 1, max = MAX_STEPS))]
    steps: u32,
    /// How long each step takes, in milliseconds.
    #[schemars(range(max = MAX_INTERVAL_MS))]
    interval_ms: u32,
}

#[tool_router(router = job_tools, vis = "pub(super)")]
impl DemoServer {
    /// Works step by step and reports each as it begins, if the request carries a progress token.
    #[tool(meta = may_be_task(), annotations(
        read_only_hint = false,
        destructive_hint = false,
        idempotent_hint = false,
        open_world_hint = false
    ))]
    async fn long_job(
        &self,
        Parameters(JobArguments { steps, interval_ms }): Parameters<JobArguments>,
        ctx: RequestContext<RoleServer>,
    ) -> Result<String, String> {
        if !(1..=MAX_STEPS).contains(&steps) {
            return Err(format!("steps must be between 1 and {MAX_STEPS}"));
        }
        if interval_ms > MAX_INTERVAL_MS {
            return Err(format!("interval_ms must be at most {MAX_INTERVAL_MS}"));
        }
        let token = ctx.meta.get_progress_token();
        for step in 1..=steps {
            if let Some(token) = &token {
                let progress = ProgressNotificationParam::new(token.clone(), f64::from(step))
                    .with_total(f64::from(steps))
                    .with_message(format!("step {step} of {steps}"));
                // The job continues even if its client is gone.
                ctx.peer.notify_progress(progress).await.ok();
            }
            // Works after the report, because some clients drop progress that arrives together with the result.
            select! {
                biased;
                () = ctx.ct.cancelled() => return Err(format!("cancelled in step {step}")),
                () = work(interval_ms) => {}
            }
        }
        Ok(format!("done after {steps} steps"))
    }
}

/// Clients of 2025-11-25 may call a tool as a task only with this mark.
pub(super) fn may_be_task() -> MetaObject {
    MetaObject(object(json!({ "shoal/taskSupport": "optional" })))
}

async fn work(interval_ms: u32) {
    if interval_ms == 0 {
        // A timer would round 0 up to a millisecond.
        yield_now().await;
    } else {
        sleep(Duration::from_millis(interval_ms.into())).await;
    }
}
