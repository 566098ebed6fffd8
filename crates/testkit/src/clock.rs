//! Gives processes wrong clocks by libfaketime.

use std::path::Path;

use anyhow::Context as _;

const LIBRARIES: [&str; 4] = [
    "/usr/lib/x86_64-linux-gnu/faketime/libfaketimeMT.so.1",
    "/usr/lib/aarch64-linux-gnu/faketime/libfaketimeMT.so.1",
    "/usr/lib64/faketime/libfaketimeMT.so.1",
    "/usr/lib/faketime/libfaketimeMT.so.1",
];

/// Offsets in seconds. Some exceed a lease, some every retention time.
pub const SKEWS: [i64; 4] = [5, -5, 3600, -3600];

/// The libfaketime library.
#[derive(Clone, Copy, Debug)]
pub struct WrongClock {
    library: &'static str,
}

impl WrongClock {
    /// Finds the installed library.
    pub fn find() -> anyhow::Result<Self> {
        let library = LIBRARIES.into_iter().find(|path| Path::new(path).exists());
        let library =
            library.context("libfaketime is missing: install the package libfaketime (Debian)")?;
        Ok(Self { library })
    }

    /// Returns the environment variables for a clock that is this much ahead.
    #[must_use]
    pub fn variables(self, seconds: i64) -> [(&'static str, String); 3] {
        [
            ("LD_PRELOAD", self.library.to_owned()),
            ("FAKETIME", format!("{seconds:+}")),
            ("FAKETIME_DONT_FAKE_MONOTONIC", "1".to_owned()),
        ]
    }
}

/// Removes the shared memory of a killed process that had a wrong clock.
pub fn clean_up_after(pid: u32) {
    for file in ["faketime_shm", "sem.faketime_sem"] {
        let _ = std::fs::remove_file(format!("/dev/shm/{file}_{pid}"));
    }
}
