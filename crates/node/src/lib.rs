//! Configuration, roles, wiring, shutdown order, and the shoal binary.
//!
//! | file | what it holds |
//! |---|---|
//! | [`program`], `main.rs` | the way through a command, in the `shoal` binary or around a server of its author |
//! | [`worker`] | a worker in a program that does more |
//! | [`cli`], [`call_command`], [`client_config`], [`config_command`], [`install`], [`shell`], [`status_command`], [`worker_check`] | what can be typed |
//! | `given.rs`, `print.rs`, `terminal.rs` | the server that is typed after `--`; standard output; whoever sits at the terminal |
//! | [`config`] | every setting, and where it came from |
//! | [`serve`], `narrator.rs` | settings to a serving node, and to its end; what is told of that |
//! | `roles.rs`, `storage.rs`, [`node`] | the parts of a node, and their wiring |
//! | `pools.rs`, `scaled_pools.rs`, [`reload`] | the pools of this process, what those offer that have no worker, and reading the configuration again |
//! | [`cluster`] | the other processes |
//! | [`http`], [`admin`], `certificates.rs` | the sockets: clients, operators; their TLS |
//! | `policies.rs`, [`policy_command`] | the rules that say who may use what, and their tests |
//! | `descriptors.rs` | how many of them there can be |
//! | `inspect.rs` | this node as the operators' console sees it |
//! | [`stdio`] | a client on the standard streams |
//! | `signals.rs`, `service_manager.rs`, `shutdown.rs`, [`exit`] | staying alive, telling who supervises that, and ending in order |

pub mod admin;
pub mod call_command;
mod certificates;
pub mod certificates_command;
pub mod cli;
pub mod client_config;
pub mod cluster;
pub mod config;
pub mod config_command;
pub mod controller_command;
mod descriptors;
pub mod exit;
#[cfg(fuzzing)]
pub mod fuzz;
mod given;
pub mod http;
mod inspect;
pub mod install;
mod narrator;
pub mod node;
mod policies;
pub mod policy_command;
mod pools;
mod print;
pub mod program;
pub mod reload;
mod roles;
mod scaled_pools;
pub mod serve;
mod service_manager;
pub mod shell;
mod shutdown;
mod signals;
pub mod starting;
pub mod status_command;
pub mod stdio;
mod storage;
mod terminal;
pub mod worker;
pub mod worker_check;
