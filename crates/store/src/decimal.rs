//! Decimal numbers in names and texts.

use std::str::FromStr;

/// Whether a text is a number without a sign: digits alone, and at least one.
pub fn is_digits(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// A number without a sign.
pub(crate) fn number<T: FromStr>(text: &str) -> Option<T> {
    // `parse` alone accepts a plus sign, and the same number would have several texts.
    is_digits(text).then(|| text.parse().ok()).flatten()
}
