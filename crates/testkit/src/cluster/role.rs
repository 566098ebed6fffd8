use std::fmt;

/// The role of a member.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Role {
    /// Serves clients over HTTP.
    Edge,
    /// Holds legacy sessions.
    Session,
    /// Edge and session node in one process.
    Combined,
    /// Runs tools.
    Worker,
    /// Every role in one process.
    Whole,
}

impl Role {
    /// Returns the role's name.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Edge => "edge",
            Self::Session => "session",
            Self::Combined => "combined",
            Self::Worker => "worker",
            Self::Whole => "whole",
        }
    }

    pub(super) const fn flag(self) -> Option<&'static str> {
        match self {
            Self::Combined => Some("edge,session"),
            Self::Whole => None,
            one => Some(one.as_str()),
        }
    }

    pub(super) fn serves_clients(self) -> bool {
        matches!(self, Self::Edge | Self::Combined | Self::Whole)
    }

    pub(super) fn holds_sessions(self) -> bool {
        matches!(self, Self::Session | Self::Combined)
    }

    pub(super) fn has_cluster_listener(self) -> bool {
        matches!(self, Self::Edge | Self::Session | Self::Combined)
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
