//! Attribute values that are enums, and the keys that several metrics share.

use opentelemetry::{Key, KeyValue};

/// Declares an enum whose values are recorded as texts.
macro_rules! labels {
    ($(#[$meta:meta])* $name:ident { $($(#[$doc:meta])* $variant:ident = $text:literal,)+ }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum $name {
            $($(#[$doc])* $variant,)+
        }

        impl $name {
            /// Every value, as it is recorded.
            pub const VALUES: &'static [&'static str] = &[$($text),+];

            /// The value as it is recorded.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$variant => $text,)+
                }
            }
        }

        impl $crate::metrics::labels::Label for $name {
            fn text(self) -> &'static str {
                self.as_str()
            }
        }
    };
}

pub(super) use labels;

pub(super) const DIRECTION: &str = "shoal.direction";
pub(super) const KIND: &str = "shoal.kind";
pub(super) const OPERATION: &str = "shoal.operation";
pub(super) const OUTCOME: &str = "shoal.outcome";
pub(super) const POOL: &str = "shoal.pool";
pub(super) const REASON: &str = "shoal.reason";
pub(super) const ROLE: &str = "shoal.role";
pub(super) const STATE: &str = "shoal.state";

/// An attribute whose value is a literal of the code.
pub(super) fn label(key: &'static str, value: &'static str) -> KeyValue {
    KeyValue::new(Key::from_static_str(key), value)
}

/// An enum that [`labels`] declared.
pub(super) trait Label: Copy {
    fn text(self) -> &'static str;
}
