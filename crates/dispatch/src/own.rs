//! Lists that differ by caller: of servers that list to each caller what that one may use, and of a session's own process that
//! has changed its lists.
//!
//! The workers say who sees other lists. A caller who does is asked for nothing: Shoal calls the list methods in the caller's
//! name, over the way that calls go, and keeps the answers for that caller. Whatever else a caller sees is what all see.
//!
//! | file | its part |
//! |---|---|
//! | `sight` | whose lists are others, and which |
//! | `question` | asking the workers, once for all who wait |
//! | `known` | what came of it, and the catalog that the caller sees |
//! | `views` | what is kept for all callers, bounded |
//! | `plan` | what planning and listing ask |

mod known;
mod plan;
mod question;
mod sight;
mod views;

pub(crate) use known::BRIEFLY;
pub(crate) use plan::{Sees, may_ask_again};
pub(crate) use sight::OwnPools;
pub(crate) use views::OwnViews;
