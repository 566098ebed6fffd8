//! The link that a check has, and leaves to the next one.

use std::ops::{Deref, DerefMut};
use std::sync::Arc;

use parking_lot::Mutex;

use super::check_failure::Checked;
use super::link::Link;

/// Where a check leaves its link.
pub(super) type Spare = Arc<Mutex<Option<Link>>>;

/// A link. Dropping it leaves it to the next check, if it is one that goes on.
pub(super) struct LinkInUse {
    /// Always there, until it is dropped.
    link: Option<Link>,
    spare: Option<Spare>,
}

impl LinkInUse {
    /// A link that is left to `spare`, or ends.
    pub(super) fn new(link: Link, spare: Option<&Spare>) -> Self {
        Self {
            link: Some(link),
            spare: spare.cloned(),
        }
    }

    /// Ends the link as a node does that is gone.
    pub(super) fn hang_up(mut self) {
        self.spare = None;
    }

    /// Ends the link as a node does that leaves, and waits until the worker has ended its half.
    pub(super) async fn close(mut self) -> Checked {
        match self.link.take() {
            Some(link) => link.close().await,
            None => Ok(()),
        }
    }
}

impl Deref for LinkInUse {
    type Target = Link;

    fn deref(&self) -> &Link {
        self.link.as_ref().expect("it is there until it is dropped")
    }
}

impl DerefMut for LinkInUse {
    fn deref_mut(&mut self) -> &mut Link {
        self.link.as_mut().expect("it is there until it is dropped")
    }
}

impl Drop for LinkInUse {
    fn drop(&mut self) {
        if let (Some(link), Some(spare)) = (self.link.take(), &self.spare) {
            *spare.lock() = Some(link);
        }
    }
}
