//! What a member of a cluster does.

use std::fmt;

/// What a member does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Role {
    /// HTTP in, SSE out.
    Edge,
    /// Legacy sessions.
    Session,
    /// Tools.
    Worker,
    /// All of it, in one process.
    Whole,
}

impl Role {
    /// Its name on the command line.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Edge => "edge",
            Self::Session => "session",
            Self::Worker => "worker",
            Self::Whole => "whole",
        }
    }

    pub(super) fn serves_clients(self) -> bool {
        matches!(self, Self::Edge | Self::Whole)
    }

    pub(super) fn has_cluster_listener(self) -> bool {
        matches!(self, Self::Edge | Self::Session)
    }

    pub(super) fn runs_tools(self) -> bool {
        matches!(self, Self::Worker | Self::Whole)
    }
}

impl fmt::Display for Role {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.as_str())
    }
}
