//! The sum of two values of a type, field by field.

/// Implements `Add` for a struct whose fields can be added: `add_fields!(Counts: a, b);`.
#[macro_export]
macro_rules! add_fields {
    ($type:ident: $($field:ident),+) => {
        impl std::ops::Add for $type {
            type Output = $type;

            fn add(self, other: $type) -> $type {
                $type {
                    $($field: self.$field + other.$field,)+
                }
            }
        }
    };
}
