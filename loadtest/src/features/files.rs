use std::fs;
use std::time::Duration;

use anyhow::ensure;
use tempfile::NamedTempFile;
use tokio::time::sleep;

use super::case::Features;
use super::quotas::Quotas;

const LOOKS: usize = 100;
const BETWEEN: Duration = Duration::from_millis(20);

pub(super) struct Files {
    quotas: Option<Quotas>,
    trail: Option<NamedTempFile>,
}

impl Files {
    pub(super) fn of(features: &Features) -> anyhow::Result<Self> {
        Ok(Self {
            quotas: features.quotas.then(Quotas::write).transpose()?,
            trail: features.audit.then(NamedTempFile::new).transpose()?,
        })
    }

    pub(super) fn settings(&self) -> impl Iterator<Item = (&'static str, String)> {
        let quotas = self.quotas.as_ref().map(Quotas::path);
        let trail = self
            .trail
            .as_ref()
            .map(|file| file.path().display().to_string());
        let named = [("SHOAL_CONFIG", quotas), ("SHOAL_AUDIT__FILE", trail)];
        named
            .into_iter()
            .filter_map(|(name, path)| Some((name, path?)))
    }

    pub(super) async fn expect_a_trail(&self) -> anyhow::Result<()> {
        let Some(trail) = &self.trail else {
            return Ok(());
        };
        let mut has_calls = false;
        for _ in 0..LOOKS {
            has_calls = fs::read_to_string(trail.path())?.contains("shoal.audit.call");
            if has_calls {
                break;
            }
            sleep(BETWEEN).await;
        }
        ensure!(
            has_calls,
            "the server has recorded no call in its audit trail"
        );
        Ok(())
    }
}
