//! Configuration, roles, wiring, shutdown order, and the `shoal` binary.
//!
//! | file | contents |
//! |---|---|
//! | [`program`], `main.rs` | the entry point, also of programs that embed their own server |
//! | [`worker`] | a worker embedded in another program |
//! | [`cli`], [`call_command`], [`client_config`], [`config_command`], [`install`], [`shell`], [`status_command`], [`worker_check`] | commands |
//! | `given.rs`, `print.rs`, `terminal.rs` | the server after `--`, standard output, the terminal |
//! | [`config`] | settings and their sources |
//! | [`serve`], `narrator.rs` | `shoal serve`, and its messages |
//! | `roles.rs`, `storage.rs`, [`node`] | the parts of a node, and their wiring |
//! | `pools.rs`, `scaled_pools.rs`, [`reload`] | pools, pools scaled to zero, reloads |
//! | [`cluster`] | links to other processes |
//! | [`http`], [`admin`], `certificates.rs` | ports and TLS |
//! | `policies.rs`, [`policy_command`] | policy rules, and their tests |
//! | `descriptors.rs` | the limit on open files |
//! | `inspect.rs` | this node, for the console |
//! | [`stdio`] | `shoal stdio` |
//! | `signals.rs`, `service_manager.rs`, `shutdown.rs`, [`exit`] | signals, `sd_notify`, shutdown, exit codes |

pub mod admin;
pub mod call_command;
mod certificates;
pub mod certificates_command;
pub mod cli;
pub mod client_config;
pub mod cluster;
pub mod config;
pub mod config_command;
#[cfg(feature = "controller")]
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
mod node_id;
mod policies;
pub mod policy_command;
mod pool_handler;
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
