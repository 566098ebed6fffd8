//! Pins this thread to a core. Pin before threads and processes start, because they inherit the
//! affinity.

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Cores {
    pub(crate) server: usize,
    pub(crate) generator: usize,
    pub(crate) collector: usize,
}

/// Returns `None` if this process may use only one core.
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

#[cfg(target_os = "linux")]
pub(crate) fn pin(core: usize) -> std::io::Result<()> {
    use nix::sched::{CpuSet, sched_setaffinity};
    use nix::unistd::Pid;

    let mut set = CpuSet::new();
    set.set(core)?;
    Ok(sched_setaffinity(Pid::from_raw(0), &set)?)
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn pair() -> Option<Cores> {
    None
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn pin(_core: usize) -> std::io::Result<()> {
    Err(std::io::ErrorKind::Unsupported.into())
}
