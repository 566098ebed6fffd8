use std::time::Duration;

use super::definition::Attribute;
use super::labels::Pair;

/// The value of one attribute.
pub trait Label {
    /// The argument type of the recording method.
    type Given<'a>;

    #[doc(hidden)]
    const ATTRIBUTE: Attribute;

    #[doc(hidden)]
    fn pair(given: Self::Given<'_>) -> Pair;
}

pub(super) trait Measured {
    fn float(self) -> Option<f64>;
}

#[expect(clippy::cast_precision_loss, reason = "counts stay below 2^53")]
impl Measured for u64 {
    fn float(self) -> Option<f64> {
        Some(self as f64)
    }
}

impl Measured for bool {
    fn float(self) -> Option<f64> {
        Some(f64::from(u8::from(self)))
    }
}

impl Measured for Duration {
    fn float(self) -> Option<f64> {
        Some(self.as_secs_f64())
    }
}

/// A missing value is not reported.
impl<M: Measured> Measured for Option<M> {
    fn float(self) -> Option<f64> {
        self.and_then(M::float)
    }
}

/// Declares the metrics of one area: method, kind, attributes, name, unit and description.
///
/// | kind | its method |
/// |---|---|
/// | `Counter` | counts one |
/// | `Sum` | counts its last argument |
/// | `Histogram(bounds)` | records its first argument, a duration |
/// | `UpDownCounter(type)`, `Gauge(type)`, `Observed(type)` (a counter) | registers a value that is read at collection |
///
/// With `[in ATTRIBUTES]`, the area writes the method itself, because an argument may set several attributes.
macro_rules! area {
    ($(#[$meta:meta])* $area:ident {
        $($(#[$doc:meta])* $vis:vis $name:ident: $kind:ident $(($($of:tt)+))? [$($labels:tt)*]
            = $metric:literal, $unit:literal, $description:literal;)+
    }) => {
        pub(super) const DEFINITIONS: &[$crate::metrics::Definition] = &[$(
            $crate::metrics::Definition::new(
                $metric, $unit, $description, area!(@kind $kind $(($($of)+))?), area!(@attributes $($labels)*),
            )
        ),+];

        $(#[$meta])*
        #[derive(Debug)]
        pub struct $area {
            $($name: area!(@instrument $kind),)+
        }

        impl $area {
            pub(super) fn new(factory: &$crate::metrics::Factory) -> Self {
                let mut definitions = DEFINITIONS.iter();
                Self {
                    $($name: factory.make(definitions.next().expect("each has one")),)+
                }
            }

            $(area! { @method $kind $(($($of)+))? $vis $name [$($labels)*] $(#[$doc])* })+
        }
    };

    (@kind Histogram ($bounds:expr)) => { $crate::metrics::Kind::Histogram($bounds) };
    (@kind UpDownCounter ($value:ty)) => { $crate::metrics::Kind::UpDownCounter };
    (@kind Gauge ($value:ty)) => { $crate::metrics::Kind::Gauge };
    (@kind $counter:ident $(($value:ty))?) => { $crate::metrics::Kind::Counter };

    (@attributes in $attributes:expr) => { $attributes };
    (@attributes $($arg:ident: $label:ty),*) => { &[$(<$label as $crate::metrics::area::Label>::ATTRIBUTE),*] };

    (@instrument Counter) => { $crate::metrics::instrument::Counter };
    (@instrument Sum) => { $crate::metrics::instrument::Counter };
    (@instrument Histogram) => { $crate::metrics::instrument::Histogram };
    (@instrument $observed:ident) => { $crate::metrics::observed::ObservedInstrument };

    (@given $label:ty) => { <$label as $crate::metrics::area::Label>::Given<'_> };
    (@pair $arg:ident: $label:ty) => { <$label as $crate::metrics::area::Label>::pair($arg) };

    (@method Histogram ($bounds:expr) $vis:vis $name:ident [in $attributes:expr]) => {};
    (@method Counter $vis:vis $name:ident [$($arg:ident: $label:ty),*] $(#[$doc:meta])*) => {
        $(#[$doc])*
        $vis fn $name(&self, $($arg: area!(@given $label)),*) {
            self.$name.add(1, || [$(area!(@pair $arg: $label)),*]);
        }
    };
    (@method Sum $vis:vis $name:ident [$($arg:ident: $label:ty),*] $(#[$doc:meta])*) => {
        $(#[$doc])*
        $vis fn $name(&self, $($arg: area!(@given $label),)* count: u64) {
            self.$name.add(count, || [$(area!(@pair $arg: $label)),*]);
        }
    };
    (@method Histogram ($bounds:expr) $vis:vis $name:ident [$($arg:ident: $label:ty),*] $(#[$doc:meta])*) => {
        $(#[$doc])*
        $vis fn $name(&self, duration: std::time::Duration, $($arg: area!(@given $label)),*) {
            self.$name.record(duration, || [$(area!(@pair $arg: $label)),*]);
        }
    };
    (@method $observed:ident ($value:ty) $vis:vis $name:ident [] $(#[$doc:meta])*) => {
        $(#[$doc])*
        $vis fn $name(&self, read: impl Fn() -> $value + Send + Sync + 'static) -> $crate::metrics::Registration {
            self.$name.observe(move |to| to(read(), Vec::new()))
        }
    };
    (@method $observed:ident ($value:ty) $vis:vis $name:ident [$($arg:ident: $label:ty),+] $(#[$doc:meta])*) => {
        $(#[$doc])*
        $vis fn $name(
            &self,
            read: impl Fn(&mut dyn FnMut($(area!(@given $label),)+ $value)) + Send + Sync + 'static,
        ) -> $crate::metrics::Registration {
            self.$name.observe(move |to| {
                read(&mut |$($arg: area!(@given $label),)+ value: $value| {
                    to(value, vec![$(area!(@pair $arg: $label)),+]);
                });
            })
        }
    };
}

pub(super) use area;
