//! HTTP in, SSE out.
