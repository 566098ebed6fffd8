//! A file of rules with conditions in CEL.
#![no_main]

use shoal_policy::{Policy, RulesFile};

libfuzzer_sys::fuzz_target!(|text: &str| {
    if let Ok(file) = toml::from_str::<RulesFile>(text) {
        let _ = Policy::compile(&file.rules.unwrap_or_default());
    }
});
