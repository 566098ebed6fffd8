use std::io;

/// Raises the limit as far as permitted, for this process and its later children. Returns the
/// limit.
#[cfg(unix)]
pub(crate) fn raise_limit(wanted: u64) -> io::Result<u64> {
    use nix::sys::resource::{Resource, getrlimit, setrlimit};
    let (soft, hard) = getrlimit(Resource::RLIMIT_NOFILE)?;
    // Raising the hard limit needs privileges.
    for (soft, hard) in [(wanted, wanted.max(hard)), (wanted.min(hard), hard)] {
        if setrlimit(Resource::RLIMIT_NOFILE, soft, hard).is_ok() {
            return Ok(soft);
        }
    }
    Ok(soft)
}

#[cfg(not(unix))]
pub(crate) fn raise_limit(wanted: u64) -> io::Result<u64> {
    Ok(wanted)
}

#[cfg(all(test, unix))]
mod tests {
    #[test]
    fn what_is_given_is_what_the_system_then_says() {
        use nix::sys::resource::{Resource, getrlimit};
        let (_, hard) = getrlimit(Resource::RLIMIT_NOFILE).unwrap();
        let limit = super::raise_limit(hard).unwrap();
        assert_eq!((limit, hard), getrlimit(Resource::RLIMIT_NOFILE).unwrap());
    }
}
