use std::any::Any;
use std::sync::{Arc, Weak};

use parking_lot::Mutex;

/// Remembers a value's parsed form for as long as a reader holds it.
///
/// All memos are equal, so that they do not affect their values' equality.
#[derive(Default)]
pub struct Memo(Mutex<Option<Weak<dyn Any + Send + Sync>>>);

impl Memo {
    /// Returns the parsed form, if it has this type and is in use.
    pub fn get<T: Any + Send + Sync>(&self) -> Option<Arc<T>> {
        let read = self.0.lock().as_ref()?.upgrade()?;
        read.downcast().ok()
    }

    /// Remembers the parsed form.
    pub fn set<T: Any + Send + Sync>(&self, read: &Arc<T>) {
        let read: Weak<T> = Arc::downgrade(read);
        *self.0.lock() = Some(read);
    }
}

impl PartialEq for Memo {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for Memo {}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::Memo;

    #[test]
    fn what_was_read_last_is_found_as_long_as_somebody_keeps_it() {
        let memo = Memo::default();
        assert!(memo.get::<u8>().is_none());
        let (first, last) = (Arc::new(1_u8), Arc::new(2_u8));
        memo.set(&first);
        memo.set(&last);
        assert_eq!(memo.get::<u8>().as_deref(), Some(&2));
        assert!(memo.get::<u16>().is_none());
        drop(last);
        assert!(memo.get::<u8>().is_none());
    }
}
