//! Whether a file has changed, by looking at it now and then.
//!
//! What is looked at is what a path leads to. So a directory that is put in place of another by a link, which is how
//! Kubernetes changes a ConfigMap, is a change like any other, and no kernel has to tell of it.

use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use tokio::time::sleep;

/// Looks at a file.
pub(super) struct FileWatch {
    file: PathBuf,
    every: Duration,
    /// How it looked when it was read.
    read: Looks,
}

/// How a file looks; nothing where there is none.
type Looks = Option<Look>;

#[derive(Clone, Debug, PartialEq, Eq)]
struct Look {
    bytes: u64,
    modified: Option<SystemTime>,
    /// Which file it is, and when anything about it was changed.
    identity: (u64, u64, i64, i64),
}

impl FileWatch {
    /// The file has just been read.
    pub(super) fn new(file: &Path, every: Duration) -> Self {
        Self {
            file: file.to_owned(),
            every,
            read: look(file),
        }
    }

    /// Waits until the file looks otherwise than when this returned last, twice in a row: it may be half written when that is
    /// seen first. Cancellation safe: what was seen is seen again.
    pub(super) async fn changed(&mut self) {
        let mut before = self.read.clone();
        loop {
            sleep(self.every).await;
            let now = look(&self.file);
            if now != self.read && now == before {
                self.read = now;
                return;
            }
            before = now;
        }
    }
}

fn look(file: &Path) -> Looks {
    let about = std::fs::metadata(file).ok()?;
    Some(Look {
        bytes: about.len(),
        modified: about.modified().ok(),
        identity: identity(&about),
    })
}

#[cfg(unix)]
fn identity(about: &std::fs::Metadata) -> (u64, u64, i64, i64) {
    use std::os::unix::fs::MetadataExt as _;
    (about.dev(), about.ino(), about.ctime(), about.ctime_nsec())
}

/// Elsewhere its length and time must do.
#[cfg(not(unix))]
fn identity(_about: &std::fs::Metadata) -> (u64, u64, i64, i64) {
    (0, 0, 0, 0)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;
    use std::path::PathBuf;
    use std::time::Duration;

    use futures::FutureExt as _;
    use tokio::time::timeout;

    use super::FileWatch;

    const EVERY: Duration = Duration::from_secs(2);

    struct Directory(PathBuf);

    impl Drop for Directory {
        fn drop(&mut self) {
            let _ = std::fs::remove_dir_all(&self.0);
        }
    }

    fn directory() -> Directory {
        let path = std::env::temp_dir().join(format!("shoal-{}", uuid::Uuid::new_v4()));
        std::fs::create_dir(&path).unwrap();
        Directory(path)
    }

    #[tokio::test(start_paused = true)]
    async fn a_change_is_seen_once_it_is_whole() {
        let at = directory();
        let file = at.0.join("shoal.toml");
        std::fs::write(&file, "a").unwrap();
        let mut watch = FileWatch::new(&file, EVERY);
        assert!(timeout(EVERY * 5, watch.changed()).await.is_err());
        std::fs::write(&file, "").unwrap();
        let mut changed = Box::pin(watch.changed());
        assert!(changed.as_mut().now_or_never().is_none());
        tokio::time::advance(EVERY).await;
        assert!(changed.as_mut().now_or_never().is_none(), "half of it");
        std::fs::write(&file, "whole").unwrap();
        tokio::time::advance(EVERY).await;
        assert!(changed.as_mut().now_or_never().is_none());
        changed.await;
        assert!(timeout(EVERY * 5, watch.changed()).await.is_err());
    }

    #[tokio::test(start_paused = true)]
    async fn a_link_that_leads_elsewhere_is_a_change() {
        let at = directory();
        for (name, text) in [("one", "same"), ("two", "same")] {
            std::fs::create_dir(at.0.join(name)).unwrap();
            std::fs::write(at.0.join(name).join("shoal.toml"), text).unwrap();
        }
        symlink("one", at.0.join("data")).unwrap();
        symlink("data/shoal.toml", at.0.join("shoal.toml")).unwrap();
        let mut watch = FileWatch::new(&at.0.join("shoal.toml"), EVERY);
        symlink("two", at.0.join("next")).unwrap();
        std::fs::rename(at.0.join("next"), at.0.join("data")).unwrap();
        assert!(timeout(EVERY * 5, watch.changed()).await.is_ok());
    }
}
