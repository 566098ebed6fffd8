//! Changes limits of running processes by `prlimit`.

use std::path::PathBuf;

use anyhow::Context as _;

use crate::process::output;

/// A program of util-linux.
const PRLIMIT: &str = "prlimit";

/// The size of each written file in bytes.
pub const FILE_SIZE: &str = "fsize";
/// The bound on the numbers of new file descriptors.
pub const DESCRIPTORS: &str = "nofile";

/// Sets the soft limit of a process, for example of [`DESCRIPTORS`]. `None` raises it to the hard limit.
///
/// # Errors
///
/// If `prlimit` is missing or not permitted.
pub async fn set(pid: u32, name: &str, limit: Option<u64>) -> anyhow::Result<()> {
    // A lowered hard limit could not be raised again.
    let limit = match limit {
        Some(limit) => limit.to_string(),
        None => hard_limit(pid, name).await?,
    };
    let (pid, limit) = (pid.to_string(), format!("--{name}={limit}:"));
    output(PRLIMIT, &["--pid", &pid, &limit]).await.map(drop)
}

/// Returns a process's lowest unused file descriptor. As a limit, it prevents new ones even if higher ones are open.
pub fn lowest_free_descriptor(pid: u32) -> anyhow::Result<u64> {
    let directory = PathBuf::from(format!("/proc/{pid}/fd"));
    (0..)
        .find(|number| {
            directory
                .join(number.to_string())
                .symlink_metadata()
                .is_err()
        })
        .filter(|_| directory.exists())
        .with_context(|| format!("process {pid} has ended"))
}

async fn hard_limit(pid: u32, name: &str) -> anyhow::Result<String> {
    let (pid, name) = (pid.to_string(), format!("--{name}"));
    let arguments = ["--pid", &pid, &name, "--output=HARD", "--noheadings"];
    let limit = output(PRLIMIT, &arguments).await?;
    Ok(limit.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use std::fs::File;

    use super::{DESCRIPTORS, lowest_free_descriptor, set};
    use crate::directory::Directory;
    use crate::process::{Launch, Process};

    #[tokio::test]
    async fn a_limit_is_set_and_lifted() {
        let directory = Directory::create("limits").unwrap();
        let launch = Launch::new("sleep", "sleep", directory.file("log")).arguments(["60"]);
        let process = Process::start(&launch).unwrap();
        let pid = process.pid();
        let limit = || {
            let limits = std::fs::read_to_string(format!("/proc/{pid}/limits")).unwrap();
            let line = limits.lines().find(|line| line.starts_with("Max open"));
            line.unwrap().split_whitespace().nth(3).unwrap().to_owned()
        };
        set(pid, DESCRIPTORS, Some(7)).await.unwrap();
        assert_eq!(limit(), "7");
        set(pid, DESCRIPTORS, None).await.unwrap();
        assert_ne!(limit(), "7");
    }

    #[test]
    fn the_lowest_free_descriptor_is_what_the_next_file_gets() {
        use std::os::fd::AsRawFd as _;
        let number = lowest_free_descriptor(std::process::id()).unwrap();
        let file = File::open("/dev/null").unwrap();
        // Other tests open and close files concurrently.
        assert!(u64::try_from(file.as_raw_fd()).unwrap() >= 3 && number >= 3);
        assert!(lowest_free_descriptor(u32::MAX).is_err());
    }
}
