use std::sync::Arc;

use anyhow::Context as _;
use shoal_dispatch::Dispatch;
use shoal_policy::RulesInForce;
use shoal_ports::FileWatch;
use tokio_util::task::AbortOnDropHandle;

use crate::config::{Role, Settings};

#[derive(Default)]
pub(crate) struct Policies {
    pub(crate) rules: Option<Arc<RulesInForce>>,
    watch: Option<FileWatch>,
}

/// Fails if the rules are invalid, because without rules every caller could use everything.
pub(crate) fn open(settings: &Settings) -> anyhow::Result<Policies> {
    if !settings.node.is(Role::Edge) && !settings.node.is(Role::Session) {
        return Ok(Policies::default());
    }
    let watch = settings.policy.file.as_deref().map(FileWatch::new);
    let rules = RulesInForce::open(&settings.policy).context("cannot use the policy rules")?;
    Ok(Policies {
        rules: rules.map(Arc::new),
        watch,
    })
}

impl Policies {
    /// Dropping the handle ends the rereads.
    pub(crate) fn reread(
        self,
        settings: &Settings,
        dispatch: &Dispatch,
    ) -> Option<AbortOnDropHandle<()>> {
        let (rules, mut watch) = self.rules.zip(self.watch)?;
        let (every, dispatch) = (settings.policy.reread.get(), dispatch.clone());
        Some(AbortOnDropHandle::new(tokio::spawn(async move {
            loop {
                watch.changed(every).await;
                let rules = rules.clone();
                let read = tokio::task::spawn_blocking(move || rules.reread());
                if read.await.unwrap_or_default() {
                    dispatch.rules_changed();
                }
            }
        })))
    }
}
