//! Compiles the contracts in `proto/` with protox, so that builds do not need `protoc`.

use std::error::Error;

/// A symbolic link to the contracts at the repository's top. The published package has the files
/// themselves.
const INCLUDE: &str = "proto";
const CONTRACTS: [&str; 3] = [
    "shoal/worker/v1/worker.proto",
    "shoal/node/v1/node.proto",
    "shoal/node/v1/console.proto",
];

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo:rerun-if-changed={INCLUDE}/shoal");
    let files = protox::compile(CONTRACTS, [INCLUDE])?;
    tonic_prost_build::configure()
        .bytes(".")
        // Boxed, because queued frames are enums, as large as their largest variant.
        .boxed(".shoal.worker.v1.NodeFrame.frame.start")
        .boxed(".shoal.node.v1.EdgeFrame.frame.adopt")
        .emit_rerun_if_changed(false)
        .compile_fds(files)?;
    Ok(())
}
