//! Worker runtime and backends.
