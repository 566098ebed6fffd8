//! The `shoal` binary.

use std::process::ExitCode;

use shoal_node::program::Program;

/// mimalloc costs less than the C library's allocator here, because calls make many small allocations that
/// another task frees.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    Program::default().run()
}
