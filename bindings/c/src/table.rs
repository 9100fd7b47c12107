//! Tables of exported functions, with one macro for each kind of result.
//!
//! A row is the C function with its parameters, an arrow, and the call that the function makes. The
//! macros add the common parts: the export, the guard against panics and, for results stored
//! through a pointer, the check of that pointer.

/// Functions that return a code: `name(parameters) => answer;`
macro_rules! codes {
    ($(
        $(#[$doc:meta])*
        $name:ident($($parameter:ident: $type:ty),* $(,)?) => $answer:expr;
    )+) => {$(
        $(#[$doc])*
        #[unsafe(no_mangle)]
        extern "C" fn $name($($parameter: $type),*) -> $crate::border::Code {
            $crate::border::call(|| $answer)
        }
    )+};
}
pub(crate) use codes;

/// Functions that return a value: `name(parameters) -> type => value, or otherwise;` The second
/// value is returned after a panic.
macro_rules! values {
    ($(
        $(#[$doc:meta])*
        $name:ident($($parameter:ident: $type:ty),* $(,)?) -> $result:ty
            => $value:expr, or $otherwise:expr;
    )+) => {$(
        $(#[$doc])*
        #[unsafe(no_mangle)]
        extern "C" fn $name($($parameter: $type),*) -> $result {
            $crate::border::value($otherwise, || $value)
        }
    )+};
}
pub(crate) use values;

/// Functions that return a code and store one result: `name(parameters) => parameter = result;` The
/// parameter has the vendor's name, for the report of a null pointer. The result may use `?`, and
/// `FUNCTION` for the function's name.
macro_rules! results {
    ($(
        $(#[$doc:meta])*
        $name:ident($($parameter:ident: $type:ty),* $(,)?) => $out:ident = $result:expr;
    )+) => {$(
        $(#[$doc])*
        #[unsafe(no_mangle)]
        extern "C" fn $name($($parameter: $type),*) -> $crate::border::Code {
            // A constant rather than a variable, so that the row, which is defined elsewhere, sees
            // it.
            const FUNCTION: &str = stringify!($name);
            $crate::border::call(|| {
                $out.require(FUNCTION, stringify!($out))?;
                $out.set($result);
                Ok(())
            })
        }
    )+};
}
pub(crate) use results;

/// Functions that return nothing: `name(parameters) => answer;` A failure is recorded for
/// `aclrtGetLastError`.
macro_rules! actions {
    ($(
        $(#[$doc:meta])*
        $name:ident($($parameter:ident: $type:ty),* $(,)?) => $answer:expr;
    )+) => {$(
        $(#[$doc])*
        #[unsafe(no_mangle)]
        extern "C" fn $name($($parameter: $type),*) {
            $crate::border::call(|| $answer);
        }
    )+};
}
pub(crate) use actions;

/// Functions that return a string, which is stored for an object under a key: `name(parameters) =>
/// text, for object, as key, or otherwise;` A missing string becomes null or the empty string.
macro_rules! texts {
    ($(
        $(#[$doc:meta])*
        $name:ident($($parameter:ident: $type:ty),* $(,)?)
            => $text:expr, for $object:expr, as $key:expr, or $otherwise:ident;
    )+) => {$(
        $(#[$doc])*
        #[unsafe(no_mangle)]
        extern "C" fn $name($($parameter: $type),*) -> *const std::ffi::c_char {
            // A closure, so that rows may use `?`.
            let text: Option<String> = $crate::border::value(None, || $text);
            $crate::table::stored!($otherwise)($object, $key, text)
        }
    )+};
}
pub(crate) use texts;

/// The function that stores a string, by the replacement for a missing one.
macro_rules! stored {
    (null) => {
        $crate::strings::keep
    };
    (empty) => {
        $crate::strings::keep_or_empty
    };
}
pub(crate) use stored;

/// Unsupported functions that exist so that programs link: `because advice; name(types of
/// parameters);` They report the advice and return `ACL_ERROR_API_NOT_SUPPORT`, or 0 where a row
/// has `-> type`.
macro_rules! refusals {
    (
        because $advice:expr;
        $($(#[$doc:meta])* $name:ident($($type:ty),* $(,)?) $(-> $result:ty)?;)+
    ) => {$(
        $(#[$doc])*
        #[unsafe(no_mangle)]
        extern "C" fn $name($(_: $type),*) -> $crate::table::refused!($($result)?) {
            let code = $crate::border::call(|| {
                Err($crate::border::process().refuse_function(stringify!($name), $advice))
            });
            $crate::table::refused!(code, $($result)?)
        }
    )+};
}
pub(crate) use refusals;

/// The return type of an unsupported function, and its value.
macro_rules! refused {
    () => {
        $crate::border::Code
    };
    ($result:ty) => {
        $result
    };
    ($code:ident,) => {
        $code
    };
    ($code:ident, $result:ty) => {{
        // Recorded for `aclrtGetLastError`, as this function cannot return it.
        let _ = $code;
        <$result>::default()
    }};
}
pub(crate) use refused;
