//! Names of converted arrays.

use uuid::Uuid;

/// Names of this many characters and more are replaced, as the vendor's converter does.
const NAME_CHARS_MAX: usize = 255;

/// The file name for an array, and the full name if that was too long.
///
/// A long name is replaced by the hexadecimal UUID (version 3, DNS name space) of the full name with
/// the same suffix; `mapping.csv` in the same directory keeps the full name.
pub(super) fn array_name(file: &str, slot: &str, suffix: &str) -> (String, Option<String>) {
    let name = format!("{file}.{slot}.{suffix}");
    if name.chars().count() < NAME_CHARS_MAX && name.len() <= NAME_CHARS_MAX {
        return (name, None);
    }
    let short = Uuid::new_v3(&Uuid::NAMESPACE_DNS, name.as_bytes()).simple();
    (format!("{short}.{suffix}"), Some(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_long_names_change() {
        assert_eq!(
            array_name("Add.a.1.0.5", "input.0", "npy"),
            ("Add.a.1.0.5.input.0.npy".into(), None)
        );
        let (short, full) = array_name(&"x".repeat(250), "output.12", "npy");
        assert_eq!(short.len(), 36);
        assert!(full.unwrap().ends_with("x.output.12.npy"));
    }

    #[test]
    fn digits_equal_pythons_uuid3() {
        // uuid.uuid3(uuid.NAMESPACE_DNS, "python.org")
        let id = Uuid::new_v3(&Uuid::NAMESPACE_DNS, b"python.org");
        assert_eq!(id.to_string(), "6fa459ea-ee8a-3ca4-894e-db77e160355e");
    }
}
