//! Lists that differ by caller: a server may list other items to each caller, and a session's own
//! process may have changed its lists.
//!
//! Workers announce which callers have their own lists. For such a caller, Shoal calls the list
//! methods in the caller's name and keeps the answers for that caller. All other items come from
//! the shared catalog.
//!
//! | file | its part |
//! |---|---|
//! | `sight` | which callers have their own lists, and which lists |
//! | `question` | asking the workers, once for all waiting requests |
//! | `known` | the answers, and the caller's catalog made from them |
//! | `views` | the bounded cache for all callers |
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
