//! Makes pools from objects of a Kubernetes cluster that are MCP servers: labelled Services, and the `MCPServer`
//! objects of operators that publish a URL in their status. The controller writes the pools to a ConfigMap and a
//! Secret. Shoal's other processes mount these and read them again on change
//! ([why](../../../docs/adr/0072-discovered-servers-are-pools-in-a-file.md)).
//!
//! | file | content |
//! |---|---|
//! | `kind` | the resources of each kind of server |
//! | `object` | the parts of an object that are kept |
//! | `target` | which URLs may become a pool |
//! | `translate` | one object becomes one pool, or is refused |
//! | `name` | the pool's name |
//! | `plan` | all objects become pools, within the limits |
//! | `render` | the published texts |
//! | `watch` | follows the objects at the API server |
//! | `tokens` | credentials in Secrets |
//! | `lease` | elects the controller that writes |
//! | `publish` | writes the ConfigMap and the Secret |
//! | `events` | reports refusals to the owners of objects |
//! | `controller` | the loop |
//! | `status` | the report for operators |
//! | `measure` | the metrics |

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

pub use self::controller::{Check, Controller};
pub use self::render::POOLS_KEY;
pub use self::status::Report;
