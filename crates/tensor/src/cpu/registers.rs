//! Macros for machines whose lanes fill several registers.

/// Evaluates an expression of intrinsics.
macro_rules! on_machine {
    ($($body:tt)*) => {{
        // SAFETY: `self` proves that the CPU has the instructions, and pointers come from
        // references to arrays of the size that is read or written.
        unsafe { $($body)* }
    }};
}

/// The array of an expression's value for each register; `$i` is the register's number.
///
/// The number is a constant, so that no index is computed or checked when the code runs.
macro_rules! registers {
    (@ $i:ident [$($number:literal)*] $body:expr) => {
        on_machine!([$({ const $i: usize = $number; $body }),*])
    };
    (1, $i:ident => $body:expr) => { registers!(@ $i [0] $body) };
    (2, $i:ident => $body:expr) => { registers!(@ $i [0 1] $body) };
    (4, $i:ident => $body:expr) => { registers!(@ $i [0 1 2 3] $body) };
}

/// Whether the CPU has all of these features.
macro_rules! has_features {
    ($($feature:tt),*) => { $(is_x86_feature_detected!($feature))&&* };
}

/// The methods that reinterpret registers as an array, or an array as registers: both have the same
/// bytes.
macro_rules! array_methods {
    ($($name:ident($from:ty) -> $to:ty;)+) => {
        $(
            #[inline(always)]
            fn $name(self, a: $from) -> $to {
                on_machine!(std::mem::transmute::<$from, $to>(a))
            }
        )+
        #[inline(always)]
        fn reals_from_array(self, a: &[f64; LANES]) -> Self::Reals {
            on_machine!(std::mem::transmute::<[f64; LANES], Self::Reals>(*a))
        }
        #[inline(always)]
        fn words_from_array(self, a: &[i32; LANES]) -> Self::Words {
            on_machine!(std::mem::transmute::<[i32; LANES], Self::Words>(*a))
        }
    };
    () => {
        array_methods! {
            array(Self::Reals) -> [f64; LANES];
            word_array(Self::Words) -> [i32; LANES];
            long_array(Self::Longs) -> [i64; LANES];
            half_array(Self::Halves) -> [i16; 2 * LANES];
        }
    };
}
