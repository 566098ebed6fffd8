//! A stateful server: each session has a game. A worker may end between two moves, because every worker of the pool can
//! continue the game.
//!
//! `cargo run --example nim`, or see `examples/rust-server/README.md`

use std::process::ExitCode;

use rmcp::handler::server::router::tool::ToolRouter;
use rmcp::handler::server::wrapper::Parameters;
use rmcp::model::{ServerCapabilities, ServerConfig};
use rmcp::service::RequestContext;
use rmcp::{ErrorData, RoleServer, ServerHandler, tool, tool_handler, tool_router};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use shoal::RequestContextExt as _;

const GAME: &str = "game";

#[derive(Deserialize, Serialize)]
struct Game {
    sticks: u32,
    moves: u32,
}

#[derive(Deserialize, JsonSchema)]
struct Heap {
    /// How many sticks there are at first.
    #[schemars(range(min = 4, max = 100))]
    sticks: u32,
}

#[derive(Deserialize, JsonSchema)]
struct Move {
    /// How many sticks you take.
    #[schemars(range(min = 1, max = 3))]
    sticks: u32,
}

struct Nim {
    tools: ToolRouter<Self>,
}

#[tool_router(router = tools)]
impl Nim {
    /// Begins a game of Nim: whoever takes the last stick wins.
    #[tool(annotations(idempotent_hint = true))]
    async fn begin(
        &self,
        Parameters(Heap { sticks }): Parameters<Heap>,
        ctx: RequestContext<RoleServer>,
    ) -> Result<String, ErrorData> {
        ctx.session().set(GAME, &Game { sticks, moves: 0 }).await?;
        Ok(format!("{sticks} sticks: take 1, 2 or 3"))
    }

    /// Takes sticks. Then the server takes some. It runs once for each call, also when a worker is lost.
    #[tool]
    async fn take(
        &self,
        Parameters(Move { sticks: taken }): Parameters<Move>,
        ctx: RequestContext<RoleServer>,
    ) -> Result<String, ErrorData> {
        let session = ctx.session();
        let Some(Game { sticks, moves }) = session.get(GAME).await? else {
            let text = "there is no game: call begin";
            return Err(ErrorData::invalid_params(text, None));
        };
        let Some(left) = sticks.checked_sub(taken) else {
            let text = format!("there are only {sticks} sticks");
            return Err(ErrorData::invalid_params(text, None));
        };
        let moves = moves + 1;
        if left == 0 {
            session.remove(GAME).await?;
            return Ok(format!("you win with move {moves}"));
        }
        let answer = (left % 4).max(1);
        let sticks = left - answer;
        if sticks == 0 {
            session.remove(GAME).await?;
            return Ok(format!("I take {answer} and win after your move {moves}"));
        }
        session.set(GAME, &Game { sticks, moves }).await?;
        Ok(format!("I take {answer}, {sticks} are left"))
    }
}

#[tool_handler(router = self.tools)]
impl ServerHandler for Nim {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
    }
}

fn main() -> ExitCode {
    shoal::server(Nim {
        tools: Nim::tools(),
    })
    .pool("nim")
    .serve()
}
