//! Tables of exported functions, with one macro for each shape of a result.
//!
//! A row is the C function with its parameters, an arrow, and the call that the function makes. The
//! macros add what every function of that shape does: the export, the guard against panics and, for
//! results that go through a pointer, the check of that pointer.

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
/// value stands for a panic.
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
/// parameter bears the vendor's name, which the report of a null pointer tells. The result may use
/// `?`, and `FUNCTION` for the function's own name.
macro_rules! results {
    ($(
        $(#[$doc:meta])*
        $name:ident($($parameter:ident: $type:ty),* $(,)?) => $out:ident = $result:expr;
    )+) => {$(
        $(#[$doc])*
        #[unsafe(no_mangle)]
        extern "C" fn $name($($parameter: $type),*) -> $crate::border::Code {
            // An item and no variable, so that the row, which is written elsewhere, can see it.
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

/// Functions that return nothing: `name(parameters) => answer;` A failure is noted for
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

/// Functions that return a text, which is kept for an object under a key:
/// `name(parameters) => text, for object, as key, or otherwise;` Null or the empty text stands for a
/// text that is not there.
macro_rules! texts {
    ($(
        $(#[$doc:meta])*
        $name:ident($($parameter:ident: $type:ty),* $(,)?)
            => $text:expr, for $object:expr, as $key:expr, or $otherwise:ident;
    )+) => {$(
        $(#[$doc])*
        #[unsafe(no_mangle)]
        extern "C" fn $name($($parameter: $type),*) -> *const std::ffi::c_char {
            // A closure, so that rows may use `?` for what is not there.
            let text: Option<String> = $crate::border::value(None, || $text);
            $crate::table::kept!($otherwise)($object, $key, text)
        }
    )+};
}
pub(crate) use texts;

/// The function that keeps a text, by what stands for one that is not there.
macro_rules! kept {
    (null) => {
        $crate::kept::keep
    };
    (empty) => {
        $crate::kept::keep_or_empty
    };
}
pub(crate) use kept;

/// Functions that are there so that programs link: `because advice; name(types of parameters);` They
/// report the advice and answer `ACL_ERROR_API_NOT_SUPPORT`, or 0 where a row has `-> type`.
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

/// The type that a refused function returns, and what it returns.
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
        // Noted for `aclrtGetLastError`, as this function has no place for it.
        let _ = $code;
        <$result>::default()
    }};
}
pub(crate) use refused;
