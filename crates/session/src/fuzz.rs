//! Entry points for `scripts/fuzz`, with `--cfg fuzzing`.

use crate::record::Record;

/// Checks that a session record survives reading and writing.
pub fn session_record(text: &[u8]) {
    if let Ok(record) = Record::from_bytes(text) {
        let written = record.to_bytes();
        let again = Record::from_bytes(&written).expect("what was written reads");
        assert_eq!(again.to_bytes(), written);
    }
}
