use std::fmt;

use serde_path_to_error::Segment;

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum PathStep {
    Key(String),
    /// A position in a list, from 0.
    Index(usize),
}

#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct SettingPath(pub(super) Vec<PathStep>);

impl SettingPath {
    /// Parses bare keys such as `auth.tokens[1].name`. Parts that are no position are keys.
    pub(super) fn parse(text: &str) -> Self {
        let mut steps = Vec::new();
        for part in text.split('.') {
            let (key, positions) = part.split_at(part.find('[').unwrap_or(part.len()));
            steps.push(PathStep::Key(key.to_owned()));
            let positions = positions.split(['[', ']']).filter_map(|it| it.parse().ok());
            steps.extend(positions.map(PathStep::Index));
        }
        Self(steps)
    }

    pub(super) fn of_keys(keys: &[String]) -> Self {
        Self(keys.iter().cloned().map(PathStep::Key).collect())
    }

    pub(super) fn of_error(path: &serde_path_to_error::Path) -> Self {
        let steps = path.iter().map_while(|segment| match segment {
            Segment::Map { key } => Some(PathStep::Key(key.clone())),
            Segment::Enum { variant } => Some(PathStep::Key(variant.clone())),
            Segment::Seq { index } => Some(PathStep::Index(*index)),
            Segment::Unknown => None,
        });
        Self(steps.collect())
    }

    pub(super) fn key(&self, key: &str) -> Self {
        self.with(PathStep::Key(key.to_owned()))
    }

    /// The member may be several steps below.
    pub(super) fn member(&self, member: &str) -> Self {
        let mut steps = self.0.clone();
        steps.extend(Self::parse(member).0);
        Self(steps)
    }

    pub(super) fn is_within(&self, above: &Self) -> bool {
        self.below(above).is_some()
    }

    /// `None` if this path lies outside of `above`.
    pub(super) fn below(&self, above: &Self) -> Option<Self> {
        let rest = self.0.strip_prefix(&*above.0)?;
        Some(Self(rest.to_vec()))
    }

    pub(super) fn index(&self, index: usize) -> Self {
        self.with(PathStep::Index(index))
    }

    fn with(&self, step: PathStep) -> Self {
        let mut steps = self.0.clone();
        steps.push(step);
        Self(steps)
    }

    /// Returns the keys down to the first list, because a list comes from one source as a whole.
    pub(super) fn keys(&self) -> Vec<String> {
        let keys = self.0.iter().map_while(|step| match step {
            PathStep::Key(key) => Some(key.clone()),
            PathStep::Index(_) => None,
        });
        keys.collect()
    }

    pub(super) fn table(&self) -> Option<&str> {
        match self.0.first() {
            Some(PathStep::Key(key)) => Some(key),
            _ => None,
        }
    }
}

impl From<&str> for SettingPath {
    fn from(text: &str) -> Self {
        Self::parse(text)
    }
}

impl From<String> for SettingPath {
    fn from(text: String) -> Self {
        Self::parse(&text)
    }
}

impl fmt::Display for SettingPath {
    /// Writes the path as in TOML: keys that are not bare stand in quotes.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, step) in self.0.iter().enumerate() {
            match step {
                PathStep::Key(key) => {
                    f.write_str(if at == 0 { "" } else { "." })?;
                    match is_bare(key) {
                        true => f.write_str(key)?,
                        false => write!(f, "{}", toml::Value::from(key.as_str()))?,
                    }
                }
                PathStep::Index(index) => write!(f, "[{index}]")?,
            }
        }
        Ok(())
    }
}

pub(super) fn is_bare(key: &str) -> bool {
    let fits = |b: u8| b.is_ascii_alphanumeric() || b == b'-' || b == b'_';
    !key.is_empty() && key.bytes().all(fits)
}
