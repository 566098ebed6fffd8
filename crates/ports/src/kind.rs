//! The closed set of error kinds, and whether a retry is safe.

/// What kind of thing went wrong; every component's error maps onto one of these, and each wire has
/// one total table from here.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// The caller sent something wrong.
    Invalid,
    /// Nobody, or nobody known, is calling.
    Unauthenticated,
    /// Known, but not allowed.
    Forbidden,
    /// There is no such thing, or not for this caller.
    NotFound,
    /// It was there and is no more.
    Gone,
    /// It clashes with something that is there.
    Conflict,
    /// A limit is reached; come back later.
    Overloaded,
    /// The time for it is over.
    Deadline,
    /// A part that is needed cannot be reached.
    Unavailable,
    /// The caller took it back.
    Cancelled,
    /// A fault of ours.
    Internal,
}

/// Whether the same thing may be tried again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Retry {
    /// It would fail again.
    Never,
    /// Nothing has happened yet.
    Safe,
    /// Something may have happened: only where repeating is harmless.
    OnlyIfIdempotent,
}
