//! Configuration, roles, wiring, shutdown order, and the shoal binary.

pub mod cli;
pub mod config;
pub mod config_command;
pub mod exit;
