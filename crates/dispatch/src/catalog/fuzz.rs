use std::time::Duration;

use shoal_protocol::RawJson;

use super::Catalog;
use super::budget::Budget;
use super::checker::Checker;
use super::schema;
use super::template::UriTemplate;

const BUDGET: Budget = Budget {
    steps: 100_000,
    stack: 1 << 20,
    time: Duration::from_secs(5),
};

pub(crate) fn readings(uri: &str, template: &str) {
    for template in [UriTemplate::parse(template), UriTemplate::pattern(template)] {
        template.matches(uri);
        for reading in Catalog::readings(uri).iter().flat_map(|it| &it.whole) {
            template.matches(reading);
        }
    }
}

pub(crate) fn check(schema: &RawJson, arguments: &RawJson) {
    let checker = schema::read(schema).and_then(|schema| Checker::of(&schema));
    if let Ok(checker) = checker {
        let _ = checker.check(arguments, BUDGET);
    }
}
