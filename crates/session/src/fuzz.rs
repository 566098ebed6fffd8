//! What `scripts/fuzz` gets at: there only with `--cfg fuzzing`.

use crate::record::Record;

/// A session's record from Redis: what is read is written so that it reads the same.
pub fn session_record(text: &[u8]) {
    if let Ok(record) = Record::from_bytes(text) {
        let written = record.to_bytes();
        let again = Record::from_bytes(&written).expect("what was written reads");
        assert_eq!(again.to_bytes(), written);
    }
}
