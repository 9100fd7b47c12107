//! Names of converted arrays.

use uuid::Uuid;

use super::Source;

/// Names of this many characters and more are replaced, as the vendor's converter does.
const NAME_CHARS_MAX: usize = 255;

/// The file name for an array, and the full name if the two differ.
///
/// The array of a dump file that itself goes by digits goes by the same digits. A name that is too
/// long is replaced by the hexadecimal UUID (version 3, DNS name space) of itself with the same
/// suffix. In both cases `mapping.csv` beside the array gives the full name.
pub(super) fn array_name(source: &Source, slot: &str, suffix: &str) -> (String, Option<String>) {
    let name = format!("{}.{slot}.{suffix}", source.file_name);
    let full_name = source
        .real_name
        .as_ref()
        .map(|real| format!("{real}.{slot}.{suffix}"));
    if name.chars().count() < NAME_CHARS_MAX && name.len() <= NAME_CHARS_MAX {
        return (name, full_name);
    }
    let short = Uuid::new_v3(&Uuid::NAMESPACE_DNS, name.as_bytes()).simple();
    (format!("{short}.{suffix}"), Some(full_name.unwrap_or(name)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(file_name: &str, real_name: Option<&str>) -> Source {
        Source {
            path: file_name.into(),
            file_name: file_name.into(),
            real_name: real_name.map(str::to_owned),
            subdir: "".into(),
            n_bytes: 0,
        }
    }

    #[test]
    fn only_long_names_change() {
        assert_eq!(
            array_name(&source("Add.a.1.0.5", None), "input.0", "npy"),
            ("Add.a.1.0.5.input.0.npy".into(), None)
        );
        assert_eq!(
            array_name(&source("77", Some("Add.x.1.0.5")), "input.0", "npy"),
            (
                "77.input.0.npy".into(),
                Some("Add.x.1.0.5.input.0.npy".into())
            )
        );
        let (short, full) = array_name(&source(&"x".repeat(250), None), "output.12", "npy");
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
