//! Which core the server and which core the generator runs on.
//!
//! A thread hands its affinity to the threads and processes that it starts, so nothing has to be
//! pinned after the fact, while some of its threads already run.

/// The cores of a measurement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Cores {
    /// Where the servers run.
    pub(crate) server: usize,
    /// Where this process runs.
    pub(crate) generator: usize,
    /// Where what the servers talk to runs; the generator's where there are only two.
    pub(crate) collector: usize,
}

/// Two cores that this process may use, or `None` where it has only one.
#[cfg(target_os = "linux")]
pub(crate) fn pair() -> Option<Cores> {
    use nix::sched::{CpuSet, sched_getaffinity};
    use nix::unistd::Pid;

    let allowed = sched_getaffinity(Pid::from_raw(0)).ok()?;
    let mut cores = (0..CpuSet::count()).filter(|&core| allowed.is_set(core).unwrap_or(false));
    let (server, generator) = (cores.next()?, cores.next()?);
    Some(Cores {
        server,
        generator,
        collector: cores.next().unwrap_or(generator),
    })
}

/// Keeps the calling thread, and whatever it starts from now on, on `core`.
///
/// # Errors
///
/// Where the system refuses.
#[cfg(target_os = "linux")]
pub(crate) fn pin(core: usize) -> std::io::Result<()> {
    use nix::sched::{CpuSet, sched_setaffinity};
    use nix::unistd::Pid;

    let mut set = CpuSet::new();
    set.set(core)?;
    Ok(sched_setaffinity(Pid::from_raw(0), &set)?)
}

/// Two cores that this process may use: unknown on this system.
#[cfg(not(target_os = "linux"))]
pub(crate) fn pair() -> Option<Cores> {
    None
}

/// Keeps the calling thread on `core`: not possible on this system.
///
/// # Errors
///
/// Always.
#[cfg(not(target_os = "linux"))]
pub(crate) fn pin(_core: usize) -> std::io::Result<()> {
    Err(std::io::ErrorKind::Unsupported.into())
}
