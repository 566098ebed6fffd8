//! Writes JSON directly, in a buffer of the thread, to keep the cost low.

use std::cell::Cell;

use super::config::Kind;
use super::time::write_now;
use crate::trace::Key;
use crate::trace::attributes::{Recorded, write_text};

const USUAL: usize = 512;

/// Long arguments need more.
const KEPT: usize = 4096;

thread_local! {
    /// While the buffer is in use, further lines allocate their own.
    static BUFFER: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
}

pub(super) struct AuditLine(Vec<u8>);

impl AuditLine {
    pub(super) fn new(kind: Kind) -> Self {
        let mut line = Self(BUFFER.take());
        line.0.clear();
        line.0.reserve(USUAL);
        line.0.extend_from_slice(b"{\"time\":\"");
        write_now(&mut line.0);
        line.0.extend_from_slice(after_time(kind).as_bytes());
        line
    }

    pub(super) fn member<T: Recorded + ?Sized>(&mut self, key: Key<T>, value: T::Given<'_>) {
        self.0.extend_from_slice(key.member().as_bytes());
        T::write(value, &mut self.0);
    }

    pub(super) fn text(&mut self, key: Key<str>, text: &str) {
        self.0.extend_from_slice(key.member().as_bytes());
        write_text(text, &mut self.0);
    }

    pub(super) fn finish(&mut self) -> &[u8] {
        self.0.extend_from_slice(b"}\n");
        &self.0
    }
}

impl Drop for AuditLine {
    fn drop(&mut self) {
        if self.0.capacity() <= KEPT {
            BUFFER.set(std::mem::take(&mut self.0));
        }
    }
}

const fn after_time(kind: Kind) -> &'static str {
    macro_rules! after_time {
        ($name:literal) => {
            concat!("\",\"event.name\":\"shoal.audit.", $name, "\"")
        };
    }
    match kind {
        Kind::Authentication => after_time!("authentication"),
        Kind::Policy => after_time!("policy"),
        Kind::Approval => after_time!("approval"),
        Kind::Quota => after_time!("quota"),
        Kind::Call => after_time!("call"),
        Kind::Admin => after_time!("admin"),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::super::Kind;
    use super::super::keys::{DURATION, ENDUSER_ID};
    use super::AuditLine;
    use crate::trace::attributes::OUTCOME;

    #[test]
    fn lines_are_json_also_where_one_is_told_within_another() {
        let mut outer = AuditLine::new(Kind::Call);
        outer.member(OUTCOME, "completed");
        let mut inner = AuditLine::new(Kind::Quota);
        inner.member(ENDUSER_ID, "a \"b\"\n\\ ä");
        inner.member(DURATION, Duration::from_millis(500));
        let read = |line: &mut AuditLine| -> serde_json::Value {
            let text = line.finish();
            assert_eq!(text.last(), Some(&b'\n'));
            serde_json::from_slice(text).unwrap()
        };
        let (inner, outer) = (read(&mut inner), read(&mut outer));
        assert_eq!(inner["event.name"], "shoal.audit.quota");
        assert_eq!(inner["enduser.id"], "a \"b\"\n\\ ä");
        assert_eq!(inner["shoal.duration"], 0.5);
        assert_eq!(outer["event.name"], "shoal.audit.call");
        assert_eq!(outer["shoal.outcome"], "completed");
    }

    #[test]
    fn lines_of_every_kind_have_its_name() {
        for kind in Kind::ALL {
            let line: serde_json::Value =
                serde_json::from_slice(AuditLine::new(kind).finish()).unwrap();
            assert_eq!(line["event.name"], kind.event_name());
            assert_eq!(line["time"].as_str().map(str::len), Some(27));
        }
    }

    #[test]
    fn a_line_holds_nothing_of_the_one_before_it() {
        drop(AuditLine::new(Kind::Admin));
        let text = AuditLine::new(Kind::Call).finish().to_vec();
        assert!(text.starts_with(b"{\"time\":\"") && text.ends_with(b"\"shoal.audit.call\"}\n"));
    }
}
