//! What `scripts/fuzz` gets at: there only with `--cfg fuzzing`.

use super::{Error, Layers, Settings, Source, Table, typed};

pub(crate) fn read(text: &str) -> Result<Settings, Error> {
    let mut layers = Layers::default();
    layers.apply(text.parse::<Table>().unwrap_or_default(), &Source::Program);
    typed(&layers)
}
