//! Names of output files.

use std::path::PathBuf;

use opscope_store::StoreError;
use opscope_store::atomic_file::Creator;
use opscope_store::file_format::mapping_csv;

use opscope_analysis::names::fitting;

/// Creates names of output files that the file system accepts.
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

    /// Creates files and directories with access for the owner only.
    pub(super) fn creator(&self) -> &Creator {
        &self.creator
    }

    /// The path of the file `name` in the directory, of any length.
    pub(super) fn exact(&self, name: &str) -> PathBuf {
        self.dir.join(name)
    }

    /// The path of the file `{stem}{suffix}`. A name that is too long is replaced by its hash, and
    /// recorded in `mapping.csv` in the directory.
    ///
    /// # Errors
    /// [`StoreError::Io`] if `mapping.csv` cannot be written.
    pub(super) fn shortened(&self, stem: &str, suffix: &str) -> Result<PathBuf, StoreError> {
        let name = format!("{stem}{suffix}");
        let short = fitting(stem, suffix);
        if short != name {
            let line = mapping_csv::line(&short, &name);
            self.creator
                .append_line(&self.dir.join(mapping_csv::FILE_NAME), &line)?;
        }
        Ok(self.dir.join(short))
    }
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
}
