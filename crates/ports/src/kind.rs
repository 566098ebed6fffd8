/// The kind of an error. Each protocol derives its own error code from it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// The request is malformed, or does not fit its target.
    Invalid,
    /// The caller is unknown.
    Unauthenticated,
    /// The caller lacks permission.
    Forbidden,
    /// The target does not exist for the caller.
    NotFound,
    /// The target existed and is gone.
    Gone,
    /// The request conflicts with existing state.
    Conflict,
    /// A limit is reached; retry later.
    Overloaded,
    /// The deadline has passed.
    Deadline,
    /// A required component cannot be reached.
    Unavailable,
    /// The caller cancelled.
    Cancelled,
    /// A fault in Shoal.
    Internal,
}

/// Whether an operation may be tried again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Retry {
    /// The operation has not begun.
    Always,
    /// The operation may have begun.
    IfIdempotent,
}
