use std::hash::{Hash, Hasher};

use opentelemetry::{Key, KeyValue};

/// Declares an enum of recorded texts. The reference page prints the comments of the values.
macro_rules! labels {
    ($(#[$meta:meta])* $name:ident: $key:ident { $($(#[doc = $meaning:literal])+ $variant:ident = $text:literal,)+ }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum $name {
            $($(#[doc = $meaning])+ $variant,)+
        }

        impl $name {
            /// Every value, as recorded.
            pub const VALUES: &'static [&'static str] = &[$($text),+];

            /// The meaning of each value, for the reference page.
            pub const MEANINGS: &'static [&'static str] = &[$(concat!($($meaning),+)),+];

            /// Returns the recorded value.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$variant => $text,)+
                }
            }
        }

        impl $crate::metrics::area::Label for $name {
            type Given<'a> = Self;

            const ATTRIBUTE: $crate::metrics::Attribute =
                $crate::metrics::Attribute::explained($key, Self::VALUES, Self::MEANINGS);

            fn pair(given: Self) -> $crate::metrics::labels::Pair {
                $crate::metrics::labels::label($key, given.as_str())
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
pub(super) const PROTOCOL_VERSION: &str = "network.protocol.version";
pub(super) const REASON: &str = "shoal.reason";
pub(super) const ROLE: &str = "shoal.role";
pub(super) const STATE: &str = "shoal.state";
pub(super) const TRANSPORT: &str = "network.transport";

/// Pairs are compared by the addresses of their static texts, so two equal texts may count as different.
#[derive(Clone, Copy, Debug)]
pub struct Pair {
    key: &'static str,
    value: Value,
}

#[derive(Clone, Copy, Debug)]
enum Value {
    Text(&'static str),
    Number(i64),
}

impl Pair {
    fn identity(&self) -> (usize, usize, i64) {
        let address = |text: &'static str| text.as_ptr().addr();
        match self.value {
            // Literals may share an address if one begins with the other, so their lengths count too.
            Value::Text(text) => (
                address(self.key),
                address(text),
                text.len().cast_signed() as i64,
            ),
            Value::Number(number) => (address(self.key), 0, number),
        }
    }
}

impl PartialEq for Pair {
    fn eq(&self, other: &Self) -> bool {
        self.identity() == other.identity()
    }
}

impl Eq for Pair {}

impl Hash for Pair {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.identity().hash(state);
    }
}

impl From<Pair> for KeyValue {
    fn from(pair: Pair) -> Self {
        let key = Key::from_static_str(pair.key);
        match pair.value {
            Value::Text(text) => Self::new(key, text),
            Value::Number(number) => Self::new(key, number),
        }
    }
}

pub(super) const fn label(key: &'static str, value: &'static str) -> Pair {
    Pair {
        key,
        value: Value::Text(value),
    }
}

pub(super) const fn number(key: &'static str, value: i64) -> Pair {
    Pair {
        key,
        value: Value::Number(value),
    }
}
