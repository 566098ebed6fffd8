//! The `shoal` binary.

use std::process::ExitCode;

use shoal_node::program::Program;

/// Calls make many small allocations that another task frees, for which mimalloc costs less than the C library's
/// allocator.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    Program::default().run()
}
