//! Processes whose clock is wrong, by libfaketime.

use std::path::Path;

use anyhow::Context as _;

/// Where Debian's and others' libfaketime is.
const LIBRARIES: [&str; 4] = [
    "/usr/lib/x86_64-linux-gnu/faketime/libfaketimeMT.so.1",
    "/usr/lib/aarch64-linux-gnu/faketime/libfaketimeMT.so.1",
    "/usr/lib64/faketime/libfaketimeMT.so.1",
    "/usr/lib/faketime/libfaketimeMT.so.1",
];

/// By how many seconds clocks are wrong: by more than a lease, and by more than anything is kept for.
pub const SKEWS: [i64; 4] = [5, -5, 3600, -3600];

/// Gives processes wrong clocks.
#[derive(Clone, Copy, Debug)]
pub struct WrongClock {
    library: &'static str,
}

impl WrongClock {
    /// Looks for the library that it takes.
    ///
    /// # Errors
    /// When it is not installed.
    pub fn find() -> anyhow::Result<Self> {
        let library = LIBRARIES.into_iter().find(|path| Path::new(path).exists());
        let library =
            library.context("libfaketime is missing: install the package libfaketime (Debian)")?;
        Ok(Self { library })
    }

    /// The variables of a process whose clock is ahead by so many seconds.
    #[must_use]
    pub fn variables(self, seconds: i64) -> [(&'static str, String); 3] {
        [
            ("LD_PRELOAD", self.library.to_owned()),
            ("FAKETIME", format!("{seconds:+}")),
            // Only the time of day is wrong: what a process measures by itself is not.
            ("FAKETIME_DONT_FAKE_MONOTONIC", "1".to_owned()),
        ]
    }
}

/// Removes what the library left in memory for a process that was killed.
pub fn clean_up_after(pid: u32) {
    for file in ["faketime_shm", "sem.faketime_sem"] {
        // It is not there if the process ended in order, or its clock was right.
        let _ = std::fs::remove_file(format!("/dev/shm/{file}_{pid}"));
    }
}
