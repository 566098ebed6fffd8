//! Creates the series of a counter at 0 when the process starts. Prometheus counts increases only from a known value,
//! so without the 0, a counter's first increase would raise no alert.

use opentelemetry::KeyValue;

use super::definition::{Definition, Values};

/// Maximum series that are prepared for a counter. A counter with more gets none, because most of them would remain at
/// 0.
const MOST: usize = 16;

pub(super) fn series(of: &Definition) -> Vec<Vec<KeyValue>> {
    let mut all = vec![Vec::new()];
    for attribute in of.attributes {
        let Values::OneOf {
            values,
            open: false,
            ..
        } = attribute.values
        else {
            return Vec::new();
        };
        if all.len() * values.len() > MOST {
            return Vec::new();
        }
        all = (all.iter())
            .flat_map(|before| {
                values.iter().map(move |value| {
                    let one = KeyValue::new(attribute.key, *value);
                    before.iter().cloned().chain([one]).collect()
                })
            })
            .collect();
    }
    all
}

#[cfg(test)]
mod tests {
    use super::super::definition::{Attribute, Definition, Kind};
    use super::series;

    const FOUR: &[&str] = &["a", "b", "c", "d"];
    const FIVE: &[&str] = &["a", "b", "c", "d", "e"];

    fn count(attributes: &'static [Attribute]) -> usize {
        series(&Definition::new(
            "x",
            "{x}",
            "X.",
            Kind::Counter,
            attributes,
        ))
        .len()
    }

    #[test]
    fn every_combination_of_few_values_that_are_known() {
        const OF_FOUR: Attribute = Attribute::one_of("one", FOUR);
        assert_eq!(count(&[]), 1);
        assert_eq!(count(&const { [OF_FOUR] }), 4);
        assert_eq!(
            count(&const { [OF_FOUR, Attribute::one_of("two", FOUR)] }),
            16
        );
        assert_eq!(
            count(&const { [OF_FOUR, Attribute::one_of("two", FIVE)] }),
            0
        );
        assert_eq!(
            count(&const { [OF_FOUR, Attribute::configured("two", "names")] }),
            0
        );
        assert_eq!(count(&const { [Attribute::one_or_other("one", FOUR)] }), 0);
        let first = &series(&Definition::new(
            "x",
            "{x}",
            "X.",
            Kind::Counter,
            &const { [OF_FOUR, Attribute::one_of("two", FOUR)] },
        ))[1];
        assert_eq!(
            (first[0].key.as_str(), first[1].key.as_str()),
            ("one", "two")
        );
        assert_eq!(
            (first[0].value.as_str(), first[1].value.as_str()),
            ("a".into(), "b".into())
        );
    }
}
