//! Compiles the contracts in `proto/` with protox, so that builds do not need `protoc`.

use std::error::Error;

/// A link to the top of the repository; in the published package, the files themselves.
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
        // Payloads are slices of the received buffer instead of copies.
        .bytes(".")
        // The one large frame is boxed, so that the others stay small in queues.
        .boxed(".shoal.worker.v1.NodeFrame.frame.start")
        .emit_rerun_if_changed(false)
        .compile_fds(files)?;
    Ok(())
}
