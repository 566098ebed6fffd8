//! Which operations of a document an operator has chosen, before anything is made of them.

use shoal_ports::matches_pattern;

use super::config::OpenApiConfig;

/// Tools of a pool by name, as the pool's own rules choose them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ToolChoice {
    /// Patterns of which a name must match one; any name does if there is none.
    pub allow: Vec<String>,
    /// Patterns of which a name must match none.
    pub deny: Vec<String>,
}

impl ToolChoice {
    /// Whether a tool is offered.
    pub(super) fn has(&self, name: &str) -> bool {
        let named = |patterns: &[String]| patterns.iter().any(|it| matches_pattern(it, name));
        (self.allow.is_empty() || named(&self.allow)) && !named(&self.deny)
    }
}

/// Whether an operation with these tags at this path is one of those that can be tools.
pub(super) fn is_chosen(config: &OpenApiConfig, path: &str, tags: &[String]) -> bool {
    let (paths, wanted) = (&config.paths, &config.tags);
    let has_path = paths.is_empty() || paths.iter().any(|it| matches_pattern(it, path));
    let has_tag = |tag: &String| wanted.iter().any(|it| matches_pattern(it, tag));
    has_path && (wanted.is_empty() || tags.iter().any(has_tag))
}
