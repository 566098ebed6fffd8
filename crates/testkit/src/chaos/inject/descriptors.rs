use super::{Deed, Injector};
use crate::limits::{self, Resource};
use crate::process::SOON;

impl Injector<'_> {
    pub(super) async fn use_up_descriptors(&mut self, turn: usize) -> anyhow::Result<Vec<Deed>> {
        let member = self.one_in_turn(turn)?;
        let pid = member.pid();
        let free = limits::lowest_free_descriptor(pid)?;
        limits::set(pid, Resource::Descriptors, Some(free)).await?;
        self.wait_about(self.options.lease).await;
        limits::set(pid, Resource::Descriptors, None).await?;
        member.wait_until_ready(SOON).await?;
        Ok(vec![Deed::NoDescriptors(member.name().to_owned())])
    }
}
