//! Checks the contents of a dump, independently of the code that wrote it.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::Read;
use std::ops::Range;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};

use super::NET_NAME;

/// Magic, version and the length of the header's text.
const FIXED_HEADER_LEN: usize = 10;
const MAGIC: &[u8] = b"\x93NUMPY\x01\x00";

/// The expected contents of a dump.
pub(super) struct ExpectedTree {
    pub(super) iterations: Range<usize>,
    /// Files per iteration.
    pub(super) n_files: u64,
    /// Bytes of elements in them.
    pub(super) n_bytes: u64,
    /// Bytes of the network's result.
    pub(super) result: Vec<u8>,
}

/// The directory with the iterations of a dump.
pub(super) fn steps_dir(tree: &Path) -> PathBuf {
    tree.join("rank_0").join(NET_NAME).join("0")
}

/// Fails unless the tree holds the expected iterations, files and bytes, and the expected result in
/// each iteration. `last_operator` is the prefix of the last operator's file names.
pub(super) fn check(tree: &Path, last_operator: &str, expected: &ExpectedTree) -> Result<()> {
    let steps = steps_dir(tree);
    let found: BTreeSet<String> = names(&steps)?.into_iter().collect();
    let wanted: BTreeSet<String> = expected.iterations.clone().map(|i| i.to_string()).collect();
    ensure!(found == wanted, "holds the steps {found:?} of {wanted:?}");
    for step in wanted {
        let dir = steps.join(&step);
        let (mut n_files, mut n_bytes) = (0, 0);
        for name in names(&dir)? {
            n_files += 1;
            n_bytes += n_element_bytes(&dir.join(name))?;
        }
        ensure!(
            (n_files, n_bytes) == (expected.n_files, expected.n_bytes),
            "step {step} holds {n_files} files with {n_bytes} bytes of elements instead of {} with {}",
            expected.n_files,
            expected.n_bytes
        );
        let result = elements(&result_file(&dir, last_operator)?)?;
        ensure!(
            result == expected.result,
            "step {step} has another result than a run without the dump"
        );
    }
    Ok(())
}

/// The file with the output of the operator whose files have this prefix.
pub(super) fn result_file(dir: &Path, last_operator: &str) -> Result<PathBuf> {
    let mut files = names(dir)?;
    files.retain(|name| name.starts_with(last_operator) && name.contains(".output.0."));
    ensure!(
        files.len() == 1,
        "`{}` has {} files that begin with `{last_operator}`",
        dir.display(),
        files.len()
    );
    Ok(dir.join(&files[0]))
}

/// The bytes of an array's elements.
pub(super) fn elements(path: &Path) -> Result<Vec<u8>> {
    let mut bytes = fs::read(path).with_context(|| format!("cannot read `{}`", path.display()))?;
    let header_len = header_len(&bytes).with_context(|| format!("in `{}`", path.display()))?;
    ensure!(
        bytes.len() >= header_len,
        "`{}` ends inside its header",
        path.display()
    );
    Ok(bytes.split_off(header_len))
}

fn n_element_bytes(path: &Path) -> Result<u64> {
    let read = || -> Result<u64> {
        let mut file = File::open(path)?;
        let mut fixed = [0; FIXED_HEADER_LEN];
        file.read_exact(&mut fixed)?;
        let header_len = header_len(&fixed)?;
        let n_bytes = file.metadata()?.len().checked_sub(header_len as u64);
        n_bytes.context("it ends inside its header")
    };
    read().with_context(|| format!("in `{}`", path.display()))
}

/// Length of the header of an array file that begins with these bytes.
fn header_len(bytes: &[u8]) -> Result<usize> {
    ensure!(
        bytes.len() >= FIXED_HEADER_LEN && bytes.starts_with(MAGIC),
        "it is not an array file of version 1.0"
    );
    let text_len = u16::from_le_bytes([bytes[8], bytes[9]]);
    Ok(FIXED_HEADER_LEN + usize::from(text_len))
}

fn names(dir: &Path) -> Result<Vec<String>> {
    let entries = fs::read_dir(dir).with_context(|| format!("cannot list `{}`", dir.display()))?;
    entries
        .map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned()))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn array(elements: &[u8]) -> Vec<u8> {
        [MAGIC, &[4, 0], b"{}\n\n", elements].concat()
    }

    #[test]
    fn a_tree_is_checked() {
        let tree = tempfile::tempdir().unwrap();
        let step = steps_dir(tree.path()).join("3");
        fs::create_dir_all(&step).unwrap();
        let result = "Add.add.0.0.1.output.0.DefaultFormat.Float32.npy";
        fs::write(step.join("Relu.r.npy"), array(&[0; 8])).unwrap();
        fs::write(step.join(result), array(&[7; 4])).unwrap();
        let expected = |iterations, n_files, n_bytes, result: [u8; 4]| ExpectedTree {
            iterations,
            n_files,
            n_bytes,
            result: result.into(),
        };
        let check = |expected, message: &str| {
            let found = match check(tree.path(), "Add.add.", &expected) {
                Ok(()) => String::new(),
                Err(error) => format!("{error:#}"),
            };
            assert!(found.contains(message), "{found}");
            assert_eq!(found.is_empty(), message.is_empty(), "{found}");
        };
        check(expected(3..4, 2, 12, [7; 4]), "");
        check(expected(3..5, 2, 12, [7; 4]), "holds the steps");
        check(expected(3..4, 3, 12, [7; 4]), "2 files with 12 bytes");
        check(expected(3..4, 2, 13, [7; 4]), "2 files with 12 bytes");
        check(expected(3..4, 2, 12, [8; 4]), "another result");
        fs::write(
            step.join("Relu.r.npy"),
            [&array(&[])[..13], &[0; 8]].concat(),
        )
        .unwrap();
        check(expected(3..4, 2, 12, [7; 4]), "2 files with 11 bytes");
        fs::write(step.join("Relu.r.npy"), b"\x93NUMPY\x02\x00").unwrap();
        check(expected(3..4, 2, 12, [7; 4]), "Relu.r.npy");
        fs::write(step.join("Relu.r.npy"), array(&[0; 8])).unwrap();
        fs::write(step.join(result.replace(".1.", ".2.")), array(&[7; 4])).unwrap();
        check(expected(3..4, 3, 16, [7; 4]), "2 files that begin");
    }
}
