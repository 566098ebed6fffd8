//! The `shoal` binary.
fn main() {}
