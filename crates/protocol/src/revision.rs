/// A revision of MCP that Shoal speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Revision {
    /// 2024-11-05: HTTP+SSE transport.
    V2024_11_05,
    /// 2025-03-26: Streamable HTTP, JSON-RPC batches.
    V2025_03_26,
    /// 2025-06-18: batches gone, `MCP-Protocol-Version` header, elicitation.
    V2025_06_18,
    /// 2025-11-25: priming events and polling of SSE streams, URL elicitation.
    V2025_11_25,
    /// 2026-07-28: stateless, multi round-trip requests.
    V2026_07_28,
}

/// How a revision's clients connect.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Era {
    /// 2025-11-25 and earlier.
    Legacy,
    /// 2026-07-28 and later.
    Modern,
}

/// An unsupported protocol version.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("protocol version {0:?} is not supported")]
pub struct UnsupportedRevision(pub String);

impl Revision {
    /// All revisions, the oldest first.
    pub const ALL: [Self; 5] = [
        Self::V2024_11_05,
        Self::V2025_03_26,
        Self::V2025_06_18,
        Self::V2025_11_25,
        Self::V2026_07_28,
    ];
    /// The newest revision with `initialize`.
    pub const LATEST_LEGACY: Self = Self::V2025_11_25;
    /// The newest revision.
    pub const LATEST: Self = Self::V2026_07_28;

    /// Returns the name in messages.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::V2024_11_05 => "2024-11-05",
            Self::V2025_03_26 => "2025-03-26",
            Self::V2025_06_18 => "2025-06-18",
            Self::V2025_11_25 => "2025-11-25",
            Self::V2026_07_28 => "2026-07-28",
        }
    }

    /// Returns the revision's era.
    pub const fn era(self) -> Era {
        match self {
            Self::V2026_07_28 => Era::Modern,
            _ => Era::Legacy,
        }
    }

    /// Whether SSE streams open with an event of empty data (SEP-1699), which earlier clients cannot parse.
    pub const fn primes_streams(self) -> bool {
        matches!(self, Self::V2025_11_25)
    }

    /// Whether the revision itself has tasks (2025-11-25, Tasks). For 2026-07-28, they are an extension.
    pub const fn has_tasks(self) -> bool {
        matches!(self, Self::V2025_11_25)
    }

    /// Returns the error code for an unknown resource.
    pub const fn resource_not_found(self) -> i64 {
        match self.era() {
            Era::Legacy => crate::code::RESOURCE_NOT_FOUND,
            Era::Modern => crate::code::INVALID_PARAMS,
        }
    }

    /// Chooses the revision for `initialize`: the requested one if legacy, or the newest legacy one.
    pub fn negotiate(requested: &str) -> Self {
        requested
            .parse()
            .ok()
            .filter(|revision: &Self| revision.era() == Era::Legacy)
            .unwrap_or(Self::LATEST_LEGACY)
    }
}

impl std::str::FromStr for Revision {
    type Err = UnsupportedRevision;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::ALL
            .into_iter()
            .find(|revision| revision.as_str() == text)
            .ok_or_else(|| UnsupportedRevision(text.to_owned()))
    }
}

impl std::fmt::Display for Revision {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

impl serde::Serialize for Revision {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

impl<'de> serde::Deserialize<'de> for Revision {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::Revision;

    #[test]
    fn initialize_never_negotiates_a_modern_revision() {
        assert_eq!(Revision::negotiate("2025-03-26"), Revision::V2025_03_26);
        assert_eq!(Revision::negotiate("2026-07-28"), Revision::LATEST_LEGACY);
        assert_eq!(Revision::negotiate("1999-01-01"), Revision::LATEST_LEGACY);
    }
}
