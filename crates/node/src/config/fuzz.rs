use std::path::Path;

use super::layers::Layers;
use super::load::{finding, understand};
use super::{Settings, document, reference};

/// Reads a configuration file, and formats its errors.
pub(crate) fn read(text: &str) -> Option<Settings> {
    let mut layers = Layers::default();
    let (table, places) = document::read(text).ok()?;
    layers.apply_file(table, places, Path::new("fuzzed.toml"));
    let (settings, deviations) = understand(&reference::inlined(), &layers);
    for deviation in deviations {
        let _ = finding(deviation, &layers).to_string();
    }
    settings
}
