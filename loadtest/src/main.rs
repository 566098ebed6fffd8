//! Load generator and verifier for any MCP server.
fn main() {}
