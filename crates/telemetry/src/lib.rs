#![doc = include_str!("../README.md")]

pub mod audit;
pub mod config;
mod export;
mod guard;
mod lines;
pub mod logging;
pub mod metrics;
mod otlp;
mod setup;
mod state;
pub mod trace;

pub use guard::Guard;
pub use setup::{Error, init};
