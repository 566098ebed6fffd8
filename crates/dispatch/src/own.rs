//! Lists that differ by caller, because of the server or of a session's own process.
//!
//! Workers announce these callers. Shoal calls the list methods in their names and keeps the
//! answers. All other items come from the shared catalog.
//!
//! | file | its part |
//! |---|---|
//! | `sight` | which callers have which own lists |
//! | `question` | asking the workers, once for all waiting requests |
//! | `known` | the answers, and the caller's catalog |
//! | `views` | the bounded cache |
//! | `plan` | the queries of planning and listing |

mod known;
mod plan;
mod question;
mod sight;
mod views;

pub(crate) use known::BRIEFLY;
pub(crate) use plan::{Sees, may_ask_again};
pub(crate) use sight::OwnPools;
pub(crate) use views::OwnViews;
