use std::ops::Range;

use crate::RawJson;
use crate::object::{key_is, spans};

/// Maximum indexed positions. Look-ups of later members scan the text.
const NOTED: usize = 8;

type MemberSpan = (Range<usize>, Range<usize>);

/// Positions of an object's first members; empty for other values.
pub struct Index<'a> {
    of: &'a RawJson,
    noted: [MemberSpan; NOTED],
    count: usize,
    has_more: bool,
}

impl RawJson {
    /// Indexes an object's members, for several look-ups.
    pub fn index(&self) -> Index<'_> {
        let mut index = Index {
            of: self,
            noted: std::array::from_fn(|_| (0..0, 0..0)),
            count: 0,
            has_more: false,
        };
        for span in spans(self.as_bytes()) {
            match index.noted.get_mut(index.count) {
                Some(place) => *place = span,
                None => {
                    index.has_more = true;
                    break;
                }
            }
            index.count += 1;
        }
        index
    }
}

impl<'a> Index<'a> {
    /// Returns the indexed value.
    pub fn whole(&self) -> &'a RawJson {
        self.of
    }

    /// Returns the value of the first member with this name.
    pub fn get(&self, name: &str) -> Option<RawJson> {
        match self.find(name) {
            Some((_, value)) => Some(self.of.part(value.clone())),
            None if self.has_more => self.of.member(name),
            None => None,
        }
    }

    /// Whether any of these members exists.
    pub fn has_any(&self, names: &[&str]) -> bool {
        names.iter().any(|name| {
            self.find(name).is_some() || self.has_more && self.of.member(name).is_some()
        })
    }

    fn find(&self, name: &str) -> Option<&MemberSpan> {
        let text = self.of.as_bytes();
        let mut noted = self.noted[..self.count].iter();
        noted.find(|(key, _)| key_is(&text[key.clone()], name))
    }
}

#[cfg(test)]
mod tests {
    use crate::RawJson;

    #[test]
    fn members_are_found_among_few_and_many() {
        let few = r#"{"a":{"c":1},"\u0062":2,"a":3}"#.to_owned();
        let rest: Vec<String> = (0..20).map(|at| format!(r#""m{at}":{at}"#)).collect();
        let many = format!(r#"{{{},"a":{{"c":1}},"b":2}}"#, rest.join(","));
        for text in [few, many] {
            let json = RawJson::parse_text(text.into()).unwrap();
            let index = json.index();
            assert_eq!(index.get("a").unwrap().as_str(), r#"{"c":1}"#);
            assert_eq!(index.get("b").unwrap().as_str(), "2");
            assert_eq!(index.get("c"), None);
            assert!(index.has_any(&["x", "b"]));
            assert!(!index.has_any(&["c", "x"]));
            assert_eq!(index.whole(), &json);
        }
        let none = RawJson::from_static("[]");
        assert!(!none.index().has_any(&["a"]));
        assert_eq!(none.index().get("a"), None);
    }
}
