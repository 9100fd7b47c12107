//! Numbers as a C++ stream prints them by default, but for the sign of NaN, which says nothing.

use crate::file_format::number_text;

/// The text of `value`. The sign of NaN is not shown; that of zero is.
pub(super) fn general(value: f64) -> String {
    if value.is_nan() {
        return "nan".to_owned();
    }
    number_text::general(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nan_has_no_sign() {
        assert_eq!(general(f64::NAN), "nan");
        assert_eq!(general(-f64::NAN), "nan");
        assert_eq!(general(-0.0), "-0");
    }
}
