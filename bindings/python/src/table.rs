//! Tables of pyACL's functions.
//!
//! A row is the function with its parameters, an arrow, and the call that the function makes. Rows
//! are grouped by the shape of their result. The macro adds the code common to each shape, and a
//! function `fill`, which adds all functions to a module. Functions that need more than a row are
//! written out and listed after `also`.

/// Makes a table's functions, and `fill`, which adds them to a module:
///
/// ```text
/// table! {
///     [also functions, that, are, written, out]
///
///     codes   { name(parameters) => answer; }               // a code
///     actions { name(parameters) => answer; }               // nothing; the code is dropped, as in C
///     values  { name(parameters) -> type => value, or otherwise; } // a value, another after a panic
///     pairs   { name(parameters) -> type => answer; }       // a value, zero or empty on failure, and a code
///     sizes   { name(parameters) => answer; }               // two sizes, 0 on failure, and a code
///     dicts   { name(parameters) => answer, into fill; }    // a dictionary that `fill` fills, and a code
/// }
/// ```
macro_rules! table {
    (
        $([also $($written_out:ident),+])?
        $($shape:ident {$(
            $(#[$attribute:meta])*
            $name:ident($($parameter:ident: $type:ty),* $(,)?) $(-> $result:ty)?
                => $work:expr $(, or $otherwise:expr)? $(, into $fill:expr)?;
        )*})+
    ) => {
        $($($crate::table::function! {
            $shape
            [#[pyo3::pyfunction] $(#[$attribute])*]
            $name [$($parameter: $type),*] [$($result)?] [$work] [$($otherwise)?] [$($fill)?]
        })*)+

        pub(crate) fn fill(
            module: &pyo3::Bound<'_, pyo3::types::PyModule>,
        ) -> pyo3::PyResult<()> {
            use pyo3::types::PyModuleMethods;
            $($crate::functions!(module, $($written_out),+);)?
            $($($crate::functions!(module, $name);)*)+
            Ok(())
        }
    };
}
pub(crate) use table;

/// One function of a [`table`]: an arm for each shape.
macro_rules! function {
    (codes [$($attributes:tt)*] $name:ident [$($parameters:tt)*] [] [$answer:expr] [] []) => {
        $($attributes)*
        fn $name(py: pyo3::Python<'_>, $($parameters)*) -> i32 {
            $crate::call::code(py, || $answer)
        }
    };
    (actions [$($attributes:tt)*] $name:ident [$($parameters:tt)*] [] [$answer:expr] [] []) => {
        $($attributes)*
        fn $name(py: pyo3::Python<'_>, $($parameters)*) {
            $crate::call::code(py, || $answer);
        }
    };
    (values [$($attributes:tt)*] $name:ident [$($parameters:tt)*] [$result:ty] [$value:expr]
        [$otherwise:expr] []) => {
        $($attributes)*
        fn $name(py: pyo3::Python<'_>, $($parameters)*) -> $result {
            $crate::call::value(py, || $value).unwrap_or($otherwise)
        }
    };
    (pairs [$($attributes:tt)*] $name:ident [$($parameters:tt)*] [$result:ty] [$answer:expr] [] []) => {
        $($attributes)*
        fn $name(py: pyo3::Python<'_>, $($parameters)*) -> $crate::call::Pair<$result> {
            $crate::call::pair(py, || $answer)
        }
    };
    (sizes [$($attributes:tt)*] $name:ident [$($parameters:tt)*] [] [$answer:expr] [] []) => {
        $($attributes)*
        fn $name(py: pyo3::Python<'_>, $($parameters)*) -> $crate::call::Sizes {
            $crate::call::sizes(py, || $answer)
        }
    };
    (dicts [$($attributes:tt)*] $name:ident [$($parameters:tt)*] [] [$answer:expr] [] [$fill:expr]) => {
        $($attributes)*
        fn $name<'py>(py: pyo3::Python<'py>, $($parameters)*) -> $crate::dims::Described<'py> {
            $crate::dims::described(py, $crate::call::answer(py, || $answer), $fill)
        }
    };
}
pub(crate) use function;
