//! Lists that differ by caller: the server decides, or each session has a server process of its own.
//!
//! Workers announce which callers have own lists. Shoal calls the list methods in these callers' names and keeps the
//! answers. All other items come from the shared catalog.
//!
//! | file | its part |
//! |---|---|
//! | `sight` | which callers have which own lists |
//! | `question` | asking the workers, once for all waiting requests |
//! | `known` | the answers, and the caller's catalog |
//! | `views` | the bounded cache |
//! | `plan` | what planning and listing look up |

mod known;
mod plan;
mod question;
mod sight;
mod views;

pub(crate) use known::BRIEFLY;
pub(crate) use plan::{Sees, may_ask_again};
pub(crate) use sight::OwnPools;
pub(crate) use views::OwnViews;
