//! A directory for one run: logs, data, configuration. Removed at the end, unless somebody must look at it.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, OnceLock};

use anyhow::Context as _;

/// Where files lie in memory.
const MEMORY: &str = "/dev/shm";

/// How much must be free there, in KiB. Containers often have less; a long run writes some hundred MiB.
const ROOM_KIB: u64 = 1 << 20;

static NEXT: AtomicU32 = AtomicU32::new(0);

/// A directory under the system's temporary one. Clones name the same; the last one removes it.
#[derive(Clone, Debug)]
pub struct Directory(Arc<Owned>);

#[derive(Debug)]
struct Owned {
    path: PathBuf,
    /// The same in memory, for what is written all the time.
    memory: Option<PathBuf>,
    kept: AtomicBool,
}

impl Directory {
    /// A new, empty one; `purpose` is part of its name.
    ///
    /// # Errors
    /// When it cannot be made.
    pub fn create(purpose: &str) -> anyhow::Result<Self> {
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("shoal-{purpose}-{}-{number}", std::process::id());
        let path = std::env::temp_dir().join(&name);
        make_anew(&path)?;
        // The temporary directory may be that one.
        let memory = has_room_in_memory().then(|| Path::new(MEMORY).join(format!("{name}-data")));
        if let Some(memory) = &memory {
            make_anew(memory)?;
        }
        let kept = AtomicBool::new(false);
        Ok(Self(Arc::new(Owned { path, memory, kept })))
    }

    /// A directory in it for data of a server that waits for each of its writes. It lies in memory if there is room, so that
    /// nothing depends on how busy the disk is; a link leads there.
    ///
    /// # Errors
    /// When it cannot be made.
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

    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.0.path
    }

    /// A file in it.
    #[must_use]
    pub fn file(&self, name: &str) -> PathBuf {
        self.0.path.join(name)
    }

    /// Leaves it where it is, for whoever wants to know what happened.
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

/// Makes a directory, without what a killed run of the same number left behind.
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
