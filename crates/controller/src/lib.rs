//! Makes pools of MCP servers that are objects of a Kubernetes cluster: Services with a label, and the `MCPServer` objects of
//! operators that publish a URL in their status. The pools go into a ConfigMap and a Secret, which Shoal's other processes mount
//! and read again ([why](../../../docs/adr/0072-discovered-servers-are-pools-in-a-file.md)).
//!
//! | file | its part |
//! |---|---|
//! | `config` | what an operator can say |
//! | `kind` | the kinds of objects that can be servers |
//! | `object` | what is kept of an object |
//! | `target` | which URLs may become a pool |
//! | `translate` | one object becomes one pool, or is refused |
//! | `name` | the pool's name |
//! | `plan` | all objects become pools, within the limits |
//! | `render` | the texts that are published |
//! | `watch` | the objects as the API server tells of them |
//! | `tokens` | credentials in Secrets |
//! | `lease` | which of several controllers writes |
//! | `publish` | writes the ConfigMap and the Secret |
//! | `events` | tells the owner of an object why it was refused |
//! | `controller` | the loop |
//! | `status` | what operators are told |
//! | `measure` | the numbers that they see |

mod config;
mod controller;
mod events;
mod kind;
mod lease;
mod measure;
mod name;
mod object;
mod plan;
mod publish;
mod render;
mod status;
mod target;
mod tokens;
mod translate;
mod watch;

pub use self::config::{KubernetesConfig, MOST_POOLS};
pub use self::controller::{Check, Controller};
pub use self::kind::Kind;
pub use self::render::POOLS_KEY;
pub use self::status::Report;
