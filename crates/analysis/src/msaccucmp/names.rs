//! Names of output files.

use std::path::PathBuf;

use opscope_store::StoreError;
use opscope_store::atomic_file::Creator;
use opscope_store::file_format::mapping_csv;
use uuid::Uuid;

/// Names of this length and more are replaced.
const NAME_BYTES_MAX: usize = 255;

/// Gives output files names that the file system takes.
pub(super) struct Namer {
    dir: PathBuf,
    creator: Creator,
}

impl Namer {
    /// Names for files in `dir`.
    pub(super) fn new(dir: PathBuf) -> Namer {
        let creator = Creator::default();
        Namer { dir, creator }
    }

    /// Creates files and directories for their owner only.
    pub(super) fn creator(&self) -> &Creator {
        &self.creator
    }

    /// The path of the file `name` in the directory, however long its name.
    pub(super) fn exact(&self, name: &str) -> PathBuf {
        self.dir.join(name)
    }

    /// The path of the file `{stem}{suffix}`. A name that is too long is replaced by one made from
    /// its hash, and `mapping.csv` in the directory keeps it.
    ///
    /// # Errors
    /// [`StoreError::Io`] if `mapping.csv` cannot be written.
    pub(super) fn shortened(&self, stem: &str, suffix: &str) -> Result<PathBuf, StoreError> {
        let name = format!("{stem}{suffix}");
        if name.len() < NAME_BYTES_MAX {
            return Ok(self.dir.join(name));
        }
        let hash = Uuid::new_v3(&Uuid::NAMESPACE_DNS, name.as_bytes()).simple();
        let short = format!("{hash}{suffix}");
        let line = mapping_csv::line(&short, &name);
        self.creator
            .append_line(&self.dir.join(mapping_csv::FILE_NAME), &line)?;
        Ok(self.dir.join(short))
    }
}

/// The file name with the operator's name put back, as `msnpy` files have it.
///
/// Only the last part of the name, and only in file names of exactly five fields.
pub(super) fn mindspore(file_name: &str, op_name: &str) -> String {
    let fields: Vec<&str> = file_name.split('.').collect();
    match (&fields[..], op_name.rsplit('/').next()) {
        ([op_type, _, rest @ ..], Some(last)) if rest.len() == 3 && !op_name.is_empty() => {
            format!("{op_type}.{last}.{}", rest.join("."))
        }
        _ => file_name.to_owned(),
    }
}

/// Extents with `separator` between them.
pub(super) fn join(dims: &[usize], separator: &str) -> String {
    let dims: Vec<String> = dims.iter().map(usize::to_string).collect();
    dims.join(separator)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_names_are_replaced_and_kept() {
        let dir = tempfile::tempdir().unwrap();
        let namer = Namer::new(dir.path().to_owned());
        let short = "x".repeat(250);
        assert_eq!(
            namer.shortened(&short, ".npy").unwrap(),
            dir.path().join(short + ".npy")
        );
        let long = "x".repeat(251);
        let path = namer.shortened(&long, ".npy").unwrap();
        // Computed by Python's uuid module.
        let expected = "f7a09a48895f3786a6a095170f166ff8.npy";
        let mapping = std::fs::read_to_string(dir.path().join("mapping.csv")).unwrap();
        assert_eq!(mapping, format!("{expected},{long}.npy\n"));
        assert_eq!(path, dir.path().join(expected));
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
