//! Watches files by their content, so that Kubernetes' directory swaps count as changes and mere
//! touches do not.

use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use sha2::{Digest as _, Sha256};
use tokio::task::spawn_blocking;
use tokio::time::sleep;

use crate::read_file::open_file;

/// Maximum bytes of a watched file.
const LONGEST: u64 = 64 << 20;

/// Polls a file for changes.
#[derive(Debug)]
pub struct FileWatch {
    file: PathBuf,
    read: FileDigest,
}

/// The file's SHA-256; `None` if unreadable.
type FileDigest = Option<[u8; 32]>;

impl FileWatch {
    /// Starts to watch a file for later changes. Blocks.
    pub fn new(file: &Path) -> Self {
        Self {
            file: file.to_owned(),
            read: contents(file),
        }
    }

    /// Waits for a change. Two reads in a row must find the same new content, because a writer may
    /// not have finished. Cancellation safe.
    pub async fn changed(&mut self, every: Duration) {
        let mut before = self.read;
        loop {
            sleep(every).await;
            let file = self.file.clone();
            let Ok(now) = spawn_blocking(move || contents(&file)).await else {
                continue;
            };
            if now != self.read && now == before {
                self.read = now;
                return;
            }
            before = now;
        }
    }
}

fn contents(file: &Path) -> FileDigest {
    let mut part = open_file(file).ok()?.take(LONGEST);
    let mut hash = Sha256::new();
    io::copy(&mut part, &mut hash).ok()?;
    Some(hash.finalize().into())
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;
    use std::time::Duration;

    use tokio::time::{Instant, timeout};

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

    async fn is_seen(watch: &mut FileWatch) -> bool {
        timeout(EVERY * 5 / 2, watch.changed(EVERY)).await.is_ok()
    }

    #[tokio::test(start_paused = true)]
    async fn a_change_is_seen_once() {
        let at = directory();
        let file = at.0.join("shoal.toml");
        std::fs::write(&file, "a").unwrap();
        let mut watch = FileWatch::new(&file);
        assert!(!is_seen(&mut watch).await);
        std::fs::write(&file, "b").unwrap();
        assert!(is_seen(&mut watch).await);
        std::fs::write(&file, "b").unwrap();
        assert!(!is_seen(&mut watch).await, "it says the same");
        std::fs::remove_file(&file).unwrap();
        assert!(is_seen(&mut watch).await);
    }

    #[tokio::test(start_paused = true)]
    async fn a_file_is_read_once_it_is_whole() {
        let at = directory();
        let file = at.0.join("shoal.toml");
        let mut watch = FileWatch::new(&file);
        std::fs::write(&file, "half").unwrap();
        let began = Instant::now();
        let write = async {
            tokio::time::sleep(EVERY * 3 / 2).await;
            std::fs::write(&file, "whole").unwrap();
        };
        tokio::join!(watch.changed(EVERY), write);
        assert_eq!(began.elapsed().as_secs(), (EVERY * 3).as_secs());
    }

    #[cfg(unix)]
    #[tokio::test(start_paused = true)]
    async fn a_link_that_leads_elsewhere_is_a_change() {
        use std::os::unix::fs::symlink;
        let at = directory();
        for name in ["one", "two"] {
            std::fs::create_dir(at.0.join(name)).unwrap();
            std::fs::write(at.0.join(name).join("shoal.toml"), name).unwrap();
        }
        symlink("one", at.0.join("data")).unwrap();
        symlink("data/shoal.toml", at.0.join("shoal.toml")).unwrap();
        let mut watch = FileWatch::new(&at.0.join("shoal.toml"));
        symlink("two", at.0.join("next")).unwrap();
        std::fs::rename(at.0.join("next"), at.0.join("data")).unwrap();
        assert!(is_seen(&mut watch).await);
    }

    #[cfg(unix)]
    #[test]
    fn a_pipe_is_left_to_its_reader() {
        let at = directory();
        let pipe = at.0.join("pipe");
        let made = std::process::Command::new("mkfifo").arg(&pipe).status();
        assert!(made.unwrap().success());
        assert!(FileWatch::new(&pipe).read.is_none());
    }
}
