//! MCP on the wire: envelope, eras, headers, event ids, errors.
