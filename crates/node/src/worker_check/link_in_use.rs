use std::ops::{Deref, DerefMut};
use std::sync::Arc;

use parking_lot::Mutex;

use super::check_failure::CheckResult;
use super::link::ProbeLink;

/// A link between two checks.
pub(super) type Spare = Arc<Mutex<Option<ProbeLink>>>;

/// On drop, passes its link to the next check through `spare`. Without `spare`, the link ends.
pub(super) struct LinkInUse {
    link: Option<ProbeLink>,
    spare: Option<Spare>,
}

impl LinkInUse {
    pub(super) fn new(link: ProbeLink, spare: Option<&Spare>) -> Self {
        Self {
            link: Some(link),
            spare: spare.cloned(),
        }
    }

    pub(super) fn hang_up(mut self) {
        self.spare = None;
    }

    pub(super) async fn close(mut self) -> CheckResult {
        match self.link.take() {
            Some(link) => link.close().await,
            None => Ok(()),
        }
    }
}

impl Deref for LinkInUse {
    type Target = ProbeLink;

    fn deref(&self) -> &ProbeLink {
        self.link.as_ref().expect("it is there until it is dropped")
    }
}

impl DerefMut for LinkInUse {
    fn deref_mut(&mut self) -> &mut ProbeLink {
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
