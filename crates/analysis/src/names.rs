//! Output file names, by the rules of the vendor's converter.

use opscope_tensor::digest::{hex, uuid_v3_dns};

/// Names of this length or longer are replaced.
const NAME_LENGTH_MAX: usize = 255;

/// The name `{stem}{suffix}`, or its hexadecimal UUID (version 3, DNS name space) with the same
/// suffix if it is too long for a file system.
pub fn fitting(stem: &str, suffix: &str) -> String {
    let name = format!("{stem}{suffix}");
    if name.len() < NAME_LENGTH_MAX {
        return name;
    }
    format!("{}{suffix}", hex(&uuid_v3_dns(name.as_bytes())))
}

/// The file name with the operator's name restored, as in `msnpy` files.
///
/// Only the last part of the operator's name is used, and only in file names of exactly five
/// fields.
pub fn mindspore(file_name: &str, op_name: &str) -> String {
    let fields: Vec<&str> = file_name.split('.').collect();
    match (&fields[..], op_name.rsplit('/').next()) {
        ([op_type, _, rest @ ..], Some(last)) if rest.len() == 3 && !op_name.is_empty() => {
            format!("{op_type}.{last}.{}", rest.join("."))
        }
        _ => file_name.to_owned(),
    }
}

/// Joins dimensions with `separator`; a scalar yields an empty string.
pub fn join(dims: &[usize], separator: &str) -> String {
    let dims: Vec<String> = dims.iter().map(usize::to_string).collect();
    dims.join(separator)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_long_names_are_replaced() {
        let short = "x".repeat(250);
        assert_eq!(fitting(&short, ".npy"), short + ".npy");
        // Computed by Python's uuid module.
        let expected = "f7a09a48895f3786a6a095170f166ff8.npy";
        assert_eq!(fitting(&"x".repeat(251), ".npy"), expected);
    }

    #[test]
    fn the_operator_comes_back() {
        let cases = [
            ("Add.x.3.7.17", "net/layer/add", "Add.add.3.7.17"),
            ("Add.x.3.7.17", "", "Add.x.3.7.17"),
            ("Add.x.3.17", "net/add", "Add.x.3.17"),
            ("Add.x.3.7.17.0.1.2.3", "net/add", "Add.x.3.7.17.0.1.2.3"),
            ("noext", "net/add", "noext"),
        ];
        for (file_name, op_name, expected) in cases {
            assert_eq!(mindspore(file_name, op_name), expected);
        }
    }
}
