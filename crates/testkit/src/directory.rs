//! A directory for one run, which is removed at the end unless it is kept.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, OnceLock};

use anyhow::Context as _;

const MEMORY: &str = "/dev/shm";

/// With less free space in `/dev/shm`, data goes to the disk. A long run writes some hundred MiB.
const ROOM_KIB: u64 = 1 << 20;

static NEXT: AtomicU32 = AtomicU32::new(0);

/// A temporary directory. The last clone removes it.
#[derive(Clone, Debug)]
pub struct Directory(Arc<Owned>);

#[derive(Debug)]
struct Owned {
    path: PathBuf,
    memory: Option<PathBuf>,
    kept: AtomicBool,
}

impl Directory {
    /// Creates an empty directory with `purpose` in its name.
    pub fn create(purpose: &str) -> anyhow::Result<Self> {
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("shoal-{purpose}-{}-{number}", std::process::id());
        let path = std::env::temp_dir().join(&name);
        make_anew(&path)?;
        // The temporary directory may be in `/dev/shm` too.
        let memory = has_room_in_memory().then(|| Path::new(MEMORY).join(format!("{name}-data")));
        if let Some(memory) = &memory {
            make_anew(memory)?;
        }
        let kept = AtomicBool::new(false);
        Ok(Self(Arc::new(Owned { path, memory, kept })))
    }

    /// Uses a directory that stays.
    pub fn at(path: &Path) -> anyhow::Result<Self> {
        std::fs::create_dir_all(path).with_context(|| format!("cannot make {}", path.display()))?;
        Ok(Self(Arc::new(Owned {
            path: path.to_owned(),
            memory: None,
            kept: AtomicBool::new(true),
        })))
    }

    /// Creates a subdirectory for a server that syncs its writes, in memory if there is room, so that a busy disk
    /// does not slow the run.
    pub fn data(&self, name: &str) -> anyhow::Result<PathBuf> {
        let Some(memory) = &self.0.memory else {
            let data = self.file(name);
            make_anew(&data)?;
            return Ok(data);
        };
        let data = memory.join(name);
        make_anew(&data)?;
        std::os::unix::fs::symlink(&data, self.file(name))
            .with_context(|| format!("cannot link to {}", data.display()))?;
        Ok(data)
    }

    /// Returns the directory's path.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.0.path
    }

    /// Returns the path of a file in the directory.
    #[must_use]
    pub fn file(&self, name: &str) -> PathBuf {
        self.0.path.join(name)
    }

    /// Keeps the directory for later analysis, and returns its path.
    pub fn keep(&self) -> &Path {
        self.0.kept.store(true, Ordering::Relaxed);
        &self.0.path
    }
}

impl Drop for Owned {
    fn drop(&mut self) {
        if !*self.kept.get_mut() {
            let _ = std::fs::remove_dir_all(&self.path);
            if let Some(memory) = &self.memory {
                let _ = std::fs::remove_dir_all(memory);
            }
        }
    }
}

fn make_anew(path: &Path) -> anyhow::Result<()> {
    let _ = std::fs::remove_dir_all(path);
    std::fs::create_dir_all(path).with_context(|| format!("cannot make {}", path.display()))
}

fn has_room_in_memory() -> bool {
    static ROOM: OnceLock<bool> = OnceLock::new();
    let free = || {
        let df = Command::new("df")
            .args(["-k", "--output=avail", MEMORY])
            .output();
        let free = String::from_utf8_lossy(&df.ok()?.stdout).into_owned();
        free.lines().nth(1)?.trim().parse::<u64>().ok()
    };
    *ROOM.get_or_init(|| free().is_some_and(|free| free >= ROOM_KIB))
}
