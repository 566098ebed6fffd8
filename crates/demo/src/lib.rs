//! Demo and conformance pools, written as rmcp server handlers.
