use shoal_ports::matches_pattern;

use super::config::OpenApiConfig;

/// Patterns that choose a pool's tools by name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ToolChoice {
    /// Patterns, one of which must match. An empty list allows every name.
    pub allow: Vec<String>,
    /// Patterns of excluded names.
    pub deny: Vec<String>,
}

impl ToolChoice {
    pub(super) fn has(&self, name: &str) -> bool {
        let named = |patterns: &[String]| patterns.iter().any(|it| matches_pattern(it, name));
        (self.allow.is_empty() || named(&self.allow)) && !named(&self.deny)
    }
}

pub(super) fn is_chosen(config: &OpenApiConfig, path: &str, tags: &[String]) -> bool {
    let (paths, wanted) = (&config.paths, &config.tags);
    let has_path = paths.is_empty() || paths.iter().any(|it| matches_pattern(it, path));
    let has_tag = |tag: &String| wanted.iter().any(|it| matches_pattern(it, tag));
    has_path && (wanted.is_empty() || tags.iter().any(has_tag))
}
