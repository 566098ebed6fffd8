use std::fmt;
use std::sync::Arc;

use bytes::Bytes;

/// Client headers that pools [asked for](crate::PoolCatalog::headers), with lower-case names.
///
/// Headers may be credentials: Shoal does not store them, and logs show only their names. A call that another node
/// resumes lacks them.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct ForwardedHeaders(Option<Arc<[ForwardedHeader]>>);

type ForwardedHeader = (Arc<str>, Bytes);

impl ForwardedHeaders {
    /// Collects headers, also repeated ones.
    pub fn new(headers: impl IntoIterator<Item = ForwardedHeader>) -> Self {
        let headers: Vec<_> = headers.into_iter().collect();
        Self((!headers.is_empty()).then(|| headers.into()))
    }

    /// Whether there are no headers.
    pub fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    /// Returns all headers.
    pub fn iter(&self) -> impl Iterator<Item = (&Arc<str>, &Bytes)> {
        let headers = self.0.as_deref().unwrap_or_default();
        headers.iter().map(|(name, value)| (name, value))
    }

    /// Returns the first value of a header.
    pub fn get(&self, name: &str) -> Option<&Bytes> {
        let mut headers = self.iter();
        headers
            .find(|(given, _)| &***given == name)
            .map(|(_, value)| value)
    }

    /// Returns the headers of these names.
    #[must_use]
    pub fn only(&self, names: &[Arc<str>]) -> Self {
        let named = self.iter().filter(|(name, _)| names.contains(name));
        Self::new(named.map(|(name, value)| (name.clone(), value.clone())))
    }
}

impl fmt::Debug for ForwardedHeaders {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list()
            .entries(self.iter().map(|(name, _)| name))
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::ForwardedHeaders;

    #[test]
    fn values_are_not_shown_and_pools_get_what_they_name() {
        let headers = [("authorization", "Bearer secret"), ("x-team", "blue")];
        let headers = headers.map(|(name, value)| (name.into(), value.into()));
        let headers = ForwardedHeaders::new(headers);
        assert_eq!(format!("{headers:?}"), r#"["authorization", "x-team"]"#);
        let team = headers.only(&["x-team".into(), "x-other".into()]);
        assert_eq!(team.get("x-team").unwrap(), "blue");
        assert_eq!(team.get("authorization"), None);
        assert!(headers.only(&[]).is_empty());
    }
}
