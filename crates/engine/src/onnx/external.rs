//! Elements in external files.

use std::collections::HashMap;
use std::path::{Component, Path, PathBuf};

use opscope_store::file_parts::{FilePart, FileParts};

use super::schema::StringStringEntryProto;

/// The value of an entry of a tensor's external data.
pub(super) fn entry<'a>(entries: &'a [StringStringEntryProto], key: &str) -> Option<&'a str> {
    let entry = entries.iter().find(|entry| entry.key == key)?;
    Some(&entry.value)
}

/// The entries of a tensor whose elements are these bytes of a file.
pub(super) fn entries(file: &str, offset: u64, n_bytes: u64) -> Vec<StringStringEntryProto> {
    let entries = [
        ("location", file.to_owned()),
        ("offset", offset.to_string()),
        ("length", n_bytes.to_string()),
    ];
    let entries = entries.map(|(key, value)| StringStringEntryProto {
        key: key.to_owned(),
        value,
    });
    entries.to_vec()
}

/// The files that a model keeps data in, opened once each.
pub(super) struct ExternalFiles {
    folder: PathBuf,
    opened: HashMap<String, Option<FileParts>>,
}

impl ExternalFiles {
    /// Files in this folder, and below it.
    pub(super) fn new(folder: &Path) -> ExternalFiles {
        ExternalFiles {
            folder: folder.to_owned(),
            opened: HashMap::new(),
        }
    }

    /// The bytes that the `entries` of a tensor name; `None` if they are not there or are not
    /// `n_bytes` long.
    ///
    /// Large parts are mapped, because a copy of all weights would stay in memory as long as the
    /// model. ONNX Runtime maps these files too.
    pub(super) fn part(
        &mut self,
        entries: &[StringStringEntryProto],
        n_bytes: usize,
    ) -> Option<FilePart> {
        let start = entry(entries, "offset").map_or(Some(0), |text| text.parse().ok())?;
        let length = entry(entries, "length").map_or(Some(n_bytes), |text| text.parse().ok())?;
        // A length that contradicts the shape is for the engine to judge; reading on would show
        // wrong elements.
        if length != n_bytes {
            return None;
        }
        let file = self.open(entry(entries, "location")?)?;
        file.mapped_part(start..usize::checked_add(start, length)?)
            .ok()
    }

    fn open(&mut self, location: &str) -> Option<FileParts> {
        if let Some(known) = self.opened.get(location) {
            return known.clone();
        }
        let file = self
            .place(location)
            .and_then(|path| FileParts::open(&path).ok());
        self.opened.insert(location.to_owned(), file.clone());
        file
    }

    /// Where a file is; `None` if it is not a regular file, or is outside the folder, links
    /// included.
    fn place(&self, location: &str) -> Option<PathBuf> {
        let relative = Path::new(location);
        if !relative
            .components()
            .all(|part| matches!(part, Component::Normal(_) | Component::CurDir))
        {
            return None;
        }
        let folder = if self.folder.as_os_str().is_empty() {
            Path::new(".")
        } else {
            &self.folder
        };
        // Links are resolved on both sides before they are compared: a model must not read files
        // outside of its folder.
        let folder = folder.canonicalize().ok()?;
        let path = folder.join(relative).canonicalize().ok()?;
        (path.starts_with(&folder) && path.is_file()).then_some(path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entries(pairs: &[(&str, &str)]) -> Vec<StringStringEntryProto> {
        let entry = |(key, value): &(&str, &str)| StringStringEntryProto {
            key: (*key).to_owned(),
            value: (*value).to_owned(),
        };
        pairs.iter().map(entry).collect()
    }

    #[test]
    fn a_part_lies_in_a_file_below_the_folder() {
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path().join("model");
        std::fs::create_dir_all(folder.join("sub")).unwrap();
        std::fs::write(folder.join("data"), b"0123456789").unwrap();
        std::fs::write(folder.join("sub/data"), b"abc").unwrap();
        std::fs::write(dir.path().join("outside"), b"0123456789").unwrap();
        std::os::unix::fs::symlink(dir.path().join("outside"), folder.join("link")).unwrap();
        let mut files = ExternalFiles::new(&folder);
        let mut check = |pairs: &[(&str, &str)], expected: Option<&[u8]>| {
            let part = files.part(&entries(pairs), 3);
            assert_eq!(part.as_ref().map(FilePart::as_ref), expected, "{pairs:?}");
        };
        check(&[("location", "data")], Some(b"012"));
        check(
            &[("location", "./data"), ("offset", "7"), ("length", "3")],
            Some(b"789"),
        );
        check(&[("location", "sub/data")], Some(b"abc"));
        check(&[("location", "data"), ("offset", "8")], None);
        check(
            &[("location", "data"), ("offset", "18446744073709551615")],
            None,
        );
        check(&[("location", "data"), ("offset", "-1")], None);
        check(&[("location", "data"), ("length", "4")], None);
        check(&[("location", "none")], None);
        check(&[("location", "sub")], None);
        check(&[("location", "../outside")], None);
        check(&[("location", "sub/../data")], None);
        check(&[("location", "link")], None);
        let absolute = folder.join("data");
        check(&[("location", absolute.to_str().unwrap())], None);
        check(&[("offset", "0")], None);
    }
}
