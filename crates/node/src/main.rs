//! The `shoal` binary.

use std::process::ExitCode;

use shoal_node::program::Program;

/// Measured on small echo calls, one core for the server: a good part of a call is small allocations that
/// are freed on another task, which this allocator does with less work than the C library's.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    Program::default().run()
}
