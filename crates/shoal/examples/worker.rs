//! A worker inside another program. `cargo run --example worker -- HOST:PORT` joins the cluster of the node at
//! `HOST:PORT`.

use std::time::Duration;

use rmcp::handler::server::router::tool::ToolRouter;
use rmcp::model::{ServerCapabilities, ServerConfig};
use rmcp::{ServerHandler, tool, tool_handler, tool_router};

struct Clock {
    tools: ToolRouter<Self>,
    started: std::time::Instant,
}

#[tool_router(router = tools)]
impl Clock {
    /// Tells for how many seconds this program has been running.
    #[tool(annotations(read_only_hint = true))]
    async fn uptime(&self) -> String {
        self.started.elapsed().as_secs().to_string()
    }
}

#[tool_handler(router = self.tools)]
impl ServerHandler for Clock {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let node = std::env::args().nth(1).ok_or("usage: worker HOST:PORT")?;
    let clock = Clock {
        tools: Clock::tools(),
        started: std::time::Instant::now(),
    };
    let worker = shoal::worker(clock)
        .pool("clock")
        .capacity(8)
        .drain(Duration::from_secs(10))
        .join(node)
        .start()
        .await?;
    // The program's other work goes here.
    worker.run_until_signal().await?;
    Ok(())
}
