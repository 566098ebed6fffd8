use std::path::{Path, PathBuf};

pub(crate) fn shoal(loadtest: &str) -> PathBuf {
    let named = std::env::var_os("TEST_SHOAL_BIN").map(PathBuf::from);
    let shoal = named.unwrap_or_else(|| Path::new(loadtest).with_file_name("shoal"));
    assert!(
        shoal.is_file(),
        "build it (cargo build -p shoal-node), or name it in the variable TEST_SHOAL_BIN"
    );
    shoal
}
