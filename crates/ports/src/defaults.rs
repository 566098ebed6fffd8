/// Declares a struct of settings with defaults (`name: Type = value`).
#[macro_export]
macro_rules! settings {
    ($(#[$meta:meta])* $vis:vis struct $name:ident {
        $($(#[$doc:meta])* $field_vis:vis $field:ident: $type:ty = $default:expr,)+
    }) => {
        $(#[$meta])*
        $vis struct $name {
            $($(#[$doc])* $field_vis $field: $type,)+
        }

        impl Default for $name {
            fn default() -> Self {
                Self {
                    $($field: $default,)+
                }
            }
        }
    };
}
