//! Drives a server with the official Rust SDK and reports what works.
//!
//! By hand: `cargo run -- --url http://127.0.0.1:PORT/mcp --era modern`

use std::process::ExitCode;

use anyhow::{Context, Result, ensure};
use clap::{Parser, ValueEnum};
use rmcp::{
    ClientLifecycleMode, ClientServiceExt, model::ProtocolVersion,
    transport::StreamableHttpClientTransport,
};

use crate::{
    demo::Demo,
    harness::{Runner, equal},
    peer::Peer,
};

mod demo;
mod harness;
mod peer;

#[derive(Parser)]
struct Arguments {
    /// Where the server is.
    #[arg(long)]
    url: String,
    /// How to talk to it.
    #[arg(long, value_enum, default_value_t = Era::Legacy)]
    era: Era,
    /// Which server it is.
    #[arg(long, value_enum, default_value_t = Expect::Demo)]
    expect: Expect,
    /// Run this check alone; may be repeated.
    #[arg(long)]
    only: Vec<String>,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Era {
    Legacy,
    Modern,
}

#[derive(Clone, Copy, ValueEnum)]
enum Expect {
    Demo,
}

#[tokio::main]
async fn main() -> ExitCode {
    let Arguments {
        url,
        era,
        expect: Expect::Demo,
        only,
    } = Arguments::parse();
    let mut runner = Runner::new(only);
    if let Some(demo) = runner.run("connect", connect(url, era)).await {
        demo.run(&mut runner).await;
        let Demo { client, .. } = demo;
        runner
            .run("close", async { Ok(client.cancel().await?) })
            .await;
    }
    runner.exit_code()
}

async fn connect(url: String, era: Era) -> Result<Demo> {
    let (version, lifecycle) = match era {
        Era::Legacy => (
            ProtocolVersion::V_2025_11_25,
            ClientLifecycleMode::Initialize,
        ),
        Era::Modern => {
            let version = ProtocolVersion::V_2026_07_28;
            let preferred_versions = vec![version.clone()];
            (
                version,
                ClientLifecycleMode::Discover { preferred_versions },
            )
        }
    };
    let peer = Peer::new(version.clone());
    let transport = StreamableHttpClientTransport::from_uri(url);
    let client = peer
        .clone()
        .serve_with_lifecycle(transport, lifecycle)
        .await?;
    let server = client
        .peer_info()
        .context("the server has said nothing about itself")?;
    equal("negotiated version", &server.protocol_version, &version)?;
    ensure!(server.capabilities.tools.is_some(), "no tools capability");
    Ok(Demo {
        client,
        peer,
        modern: era == Era::Modern,
    })
}
