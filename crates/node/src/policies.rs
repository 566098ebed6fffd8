//! The policy rules of a node, and their file while it runs.

use std::sync::Arc;

use anyhow::Context as _;
use shoal_dispatch::Dispatch;
use shoal_policy::RulesInForce;
use shoal_ports::FileWatch;
use tokio_util::task::AbortOnDropHandle;

use crate::config::{Role, Settings};

/// The rules where clients are served, and what sees that their file changes.
#[derive(Default)]
pub(crate) struct Policies {
    pub(crate) rules: Option<Arc<RulesInForce>>,
    watch: Option<FileWatch>,
}

/// Reads the rules, where clients are served.
///
/// # Errors
/// Rules that cannot be used: a node without them would let everybody do everything.
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
    /// Reads the rules' file again when it changes, until what is returned is dropped.
    ///
    /// # Panics
    /// Outside a Tokio runtime.
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
