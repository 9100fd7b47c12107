//! Where a model's own outputs lie: `{root}/{step}/{name}.npy`, so that each step's directory is a
//! set of inputs for another model, with a list of them in `{root}/{step}/outputs.json`.

use std::path::{Path, PathBuf};

use super::acl::clean_name;

/// The list of a step's outputs.
pub const LIST_FILE: &str = "outputs.json";
/// Longest name of an output that names its file.
const NAME_BYTES_MAX: usize = 200;

/// The directory of one step.
pub fn step_dir(root: &Path, step: u64) -> PathBuf {
    root.join(step.to_string())
}

/// The file of an output: a numpy array, or only its elements if numpy has no such dtype.
///
/// An output whose name is not suitable for a file is named after its position,
/// `output.{position}`. No two outputs share a file, because suitable names contain no dot.
pub fn file_name(name: &str, position: usize, is_array: bool) -> String {
    let suffix = if is_array { "npy" } else { "bin" };
    let is_usable = !name.is_empty() && name.len() <= NAME_BYTES_MAX && clean_name(name) == name;
    if is_usable {
        format!("{name}.{suffix}")
    } else {
        format!("output.{position}.{suffix}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_stay_inside_their_directory_and_apart() {
        let long = "x".repeat(NAME_BYTES_MAX + 1);
        for (name, expected) in [
            ("y", "y.npy"),
            ("logits:0", "logits:0.npy"),
            ("", "output.3.npy"),
            ("../y", "output.3.npy"),
            ("a/b", "output.3.npy"),
            ("..", "output.3.npy"),
            ("output.1", "output.3.npy"),
            (long.as_str(), "output.3.npy"),
        ] {
            assert_eq!(file_name(name, 3, true), expected, "{name}");
        }
        assert_eq!(file_name("y", 0, false), "y.bin");
    }
}
