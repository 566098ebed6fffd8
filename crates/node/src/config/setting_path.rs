use std::fmt;

use serde_path_to_error::Segment;

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Step {
    Key(String),
    /// A position in a list, from 0.
    Index(usize),
}

#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct SettingPath(pub(super) Vec<Step>);

impl SettingPath {
    /// Parses a path such as `auth.tokens[1].name`. Parts that are no position are keys.
    pub(super) fn parse(text: &str) -> Self {
        let mut steps = Vec::new();
        for part in text.split('.') {
            let (key, positions) = part.split_at(part.find('[').unwrap_or(part.len()));
            steps.push(Step::Key(key.to_owned()));
            let positions = positions.split(['[', ']']).filter_map(|it| it.parse().ok());
            steps.extend(positions.map(Step::Index));
        }
        Self(steps)
    }

    pub(super) fn of_error(path: &serde_path_to_error::Path) -> Self {
        let steps = path.iter().map_while(|segment| match segment {
            Segment::Map { key } => Some(Step::Key(key.clone())),
            Segment::Enum { variant } => Some(Step::Key(variant.clone())),
            Segment::Seq { index } => Some(Step::Index(*index)),
            Segment::Unknown => None,
        });
        Self(steps.collect())
    }

    pub(super) fn key(&self, key: &str) -> Self {
        self.with(Step::Key(key.to_owned()))
    }

    pub(super) fn index(&self, index: usize) -> Self {
        self.with(Step::Index(index))
    }

    fn with(&self, step: Step) -> Self {
        let mut steps = self.0.clone();
        steps.push(step);
        Self(steps)
    }

    /// The keys down to the first list, which comes from one source as a whole.
    pub(super) fn keys(&self) -> Vec<String> {
        let keys = self.0.iter().map_while(|step| match step {
            Step::Key(key) => Some(key.clone()),
            Step::Index(_) => None,
        });
        keys.collect()
    }

    pub(super) fn table(&self) -> Option<&str> {
        match self.0.first() {
            Some(Step::Key(key)) => Some(key),
            _ => None,
        }
    }
}

impl fmt::Display for SettingPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, step) in self.0.iter().enumerate() {
            match step {
                Step::Key(key) if at == 0 => f.write_str(key)?,
                Step::Key(key) => write!(f, ".{key}")?,
                Step::Index(index) => write!(f, "[{index}]")?,
            }
        }
        Ok(())
    }
}
