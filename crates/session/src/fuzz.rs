//! Entry points for `scripts/fuzz`.

use crate::record::Record;

/// Reads and writes a session record.
pub fn session_record(text: &[u8]) {
    if let Ok(record) = Record::from_bytes(text) {
        let written = record.to_bytes();
        let again = Record::from_bytes(&written).expect("what was written reads");
        assert_eq!(again.to_bytes(), written);
    }
}
