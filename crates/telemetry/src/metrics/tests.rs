use std::collections::HashSet;

use super::{Kind, Values, definitions};

#[test]
fn definitions_are_sound() {
    let mut names = HashSet::new();
    for definition in definitions() {
        let name = definition.name;
        assert!(names.insert(name), "{name} is there twice");
        let is_plain = |text: &str| {
            (text.bytes())
                .all(|it| it.is_ascii_lowercase() || it.is_ascii_digit() || b"._".contains(&it))
        };
        assert!(is_plain(name), "{name}");
        assert!(definition.description.ends_with('.'), "{name}");
        // Prometheus appends the unit to the name.
        assert!(
            matches!(definition.unit, "s" | "By") || definition.unit.starts_with('{'),
            "{name}: {}",
            definition.unit
        );
        let last = name.rsplit('.').next();
        for taken in ["count", "sum", "bucket", "total", "bytes", "seconds"] {
            assert_ne!(
                last,
                Some(taken),
                "{name}: Prometheus appends this, or means something else by it"
            );
        }
        let mut keys = HashSet::new();
        for attribute in definition.attributes {
            assert!(keys.insert(attribute.key), "{name}: {}", attribute.key);
            assert!(is_plain(attribute.key), "{name}: {}", attribute.key);
            if let Values::OneOf { values, .. } = attribute.values {
                let distinct: HashSet<_> = values.iter().collect();
                assert_eq!(distinct.len(), values.len(), "{name}: {}", attribute.key);
            }
        }
        if let Kind::Histogram(bounds) = definition.kind {
            assert!(bounds.is_sorted(), "{name}");
        }
    }
    assert!(names.len() > 50);
}
