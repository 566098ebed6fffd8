//! A pattern search cannot be stopped, so its cost is bounded in advance.

use serde_json::Value;

use super::pattern_text::{PatternShape, leading_look_aheads};

/// Maximum backtracking steps on one string.
pub(super) const MAX_BACKTRACKS: usize = 2_000;
/// Bytes that one automaton reads per step.
const BYTES_OF_STEP: u64 = 64;
/// States for the patterns of formats and meta-schemas, which are not in the schema.
const UNWRITTEN: u64 = 4;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SearchCost {
    /// States of automata, each of which reads each byte once.
    states: u64,
    /// States of patterns that backtrack, and so may read a byte many times.
    again: u64,
    /// Nesting depth of repeated look-arounds. Each level may read the rest of the string anew at each byte.
    depth: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SearchCosts {
    pub(super) value: SearchCost,
    pub(super) name: SearchCost,
}

impl SearchCost {
    pub(super) const NONE: Self = Self {
        states: 0,
        again: 0,
        depth: 0,
    };

    pub(super) fn of(self, bytes: usize) -> u64 {
        let bytes = (bytes as u64).max(1);
        let times = bytes.saturating_pow(self.depth).max(MAX_BACKTRACKS as u64);
        let again = self.again.saturating_mul(times);
        let each = self.states.saturating_add(again).saturating_add(1);
        bytes.saturating_mul(each) / BYTES_OF_STEP
    }

    fn of_pattern(pattern: &str, linear: &impl Fn(&str) -> bool) -> Self {
        let PatternShape { atoms, depth } = PatternShape::of(pattern);
        if linear(pattern) || reads_once(pattern, linear) {
            return Self {
                states: atoms,
                ..Self::NONE
            };
        }
        Self {
            states: 0,
            again: atoms,
            depth,
        }
    }

    fn or(self, other: Self) -> Self {
        Self {
            states: self.states.max(other.states),
            again: self.again.max(other.again),
            depth: self.depth.max(other.depth),
        }
    }

    fn and(self, other: Self) -> Self {
        Self {
            states: self.states.saturating_add(other.states),
            again: self.again.saturating_add(other.again),
            depth: self.depth.max(other.depth),
        }
    }
}

impl SearchCosts {
    pub(super) const NONE: Self = Self {
        value: SearchCost::NONE,
        name: SearchCost::NONE,
    };

    pub(super) fn of_schema(schema: &Value, linear: &impl Fn(&str) -> bool) -> Self {
        let unwritten = SearchCost {
            states: UNWRITTEN,
            ..SearchCost::NONE
        };
        let mut costs = Self {
            value: unwritten,
            name: SearchCost::NONE,
        };
        costs.add(schema, linear);
        costs
    }

    fn add(&mut self, schema: &Value, linear: &impl Fn(&str) -> bool) {
        match schema {
            Value::Array(items) => items.iter().for_each(|item| self.add(item, linear)),
            Value::Object(members) => {
                for (keyword, value) in members {
                    match (keyword.as_str(), value) {
                        ("pattern", Value::String(pattern)) => {
                            let cost = SearchCost::of_pattern(pattern, linear);
                            self.value = self.value.or(cost);
                        }
                        ("patternProperties", Value::Object(by_pattern)) => {
                            for pattern in by_pattern.keys() {
                                let cost = SearchCost::of_pattern(pattern, linear);
                                self.name = self.name.and(cost);
                            }
                        }
                        _ => {}
                    }
                    self.add(value, linear);
                }
            }
            _ => {}
        }
    }
}

fn reads_once(pattern: &str, linear: &impl Fn(&str) -> bool) -> bool {
    leading_look_aheads(pattern).is_some_and(|parts| parts.into_iter().all(linear))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{MAX_BACKTRACKS, SearchCost, SearchCosts};

    fn linear(pattern: &str) -> bool {
        !["(?=", "(?!", "\\1"]
            .iter()
            .any(|hard| pattern.contains(hard))
    }

    fn cost(pattern: &str) -> SearchCost {
        SearchCost::of_pattern(pattern, &linear)
    }

    #[test]
    fn what_is_read_once_costs_what_it_has_states() {
        for (pattern, states) in [
            ("^[a-z]+$", 3),
            ("^(?:a|bc){1,20}$", 62),
            ("^(?=.*[A-Z])(?!.*--).{8}$", 15),
        ] {
            let cost = cost(pattern);
            assert_eq!((cost.states, cost.again), (states, 0), "{pattern}");
            assert_eq!(cost.of(64_000), (states + 1) * 1000);
        }
    }

    #[test]
    fn what_may_be_read_again_costs_all_its_attempts() {
        for pattern in [
            "(?=a*b)a",
            "^(?=(?!b)a)a",
            "^(?=a)b|c",
            "(.)\\1",
            "^(?=a)*b(?!c)",
        ] {
            let cost = cost(pattern);
            assert!(cost.states == 0 && cost.again > 0, "{pattern}");
            assert!(cost.of(640) >= 10 * MAX_BACKTRACKS as u64, "{pattern}");
        }
        let nested = cost("(?:(?=(?:(?=.*b)a)*)a)*");
        assert_eq!(nested.depth, 2);
        assert!(nested.of(10_000) > 10_000_u64.pow(3) / 64);
        assert_eq!(nested.of(usize::MAX), u64::MAX / 64);
    }

    #[test]
    fn names_are_asked_every_pattern_and_values_one() {
        let schema = json!({
            "properties": {"pattern": {"pattern": "^aaa"}, "b": {"items": {"pattern": "bbbbbb"}}},
            "patternProperties": {"^a$": {"pattern": "(?=c)"}, "bb": {}}
        });
        let costs = SearchCosts::of_schema(&schema, &linear);
        assert_eq!(
            costs.name,
            SearchCost {
                states: 5,
                again: 0,
                depth: 0
            }
        );
        assert_eq!(
            costs.value,
            SearchCost {
                states: 6,
                again: 1,
                depth: 0
            }
        );
    }
}
