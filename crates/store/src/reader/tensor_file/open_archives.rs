//! Archives that stay open while a thread does work of one kind.
//!
//! Their arrays are requested one after the other, and listing all of them for each one takes a
//! time that grows with the square of their number.

use std::path::{Path, PathBuf};

use crate::StoreError;
use crate::atomic_file::FileIdentity;
use crate::file_format::hdf5::Hdf5Array;
use crate::file_format::npz::Archive;
use crate::kept_open::KeptOpen;

/// Archives of a thread that are open at once: those of two dumps, and the next ones.
const N_OPEN_MAX: usize = 4;

/// An archive with the list of its arrays.
pub(super) enum OpenArchive {
    Npz(Archive),
    Hdf5(Vec<NamedDataset>),
}

/// A dataset, and the name that its tensor has.
pub(super) type NamedDataset = (Hdf5Array, String);

struct KnownArchive {
    path: PathBuf,
    identity: FileIdentity,
    archive: OpenArchive,
}

thread_local! {
    static OPEN: KeptOpen<KnownArchive> = const { KeptOpen::new() };
}

/// Does `work`, during which archives of this thread stay open.
pub fn keep_archives_open<R>(work: impl FnOnce() -> R) -> R {
    KeptOpen::during(&OPEN, work)
}

/// Calls `read` with the archive at `path`, which `open` opens unless it is open already. One that
/// was changed or replaced is opened again.
pub(super) fn with_archive<R>(
    path: &Path,
    open: impl FnOnce() -> Result<OpenArchive, StoreError>,
    read: impl FnOnce(&mut OpenArchive) -> Result<R, StoreError>,
) -> Result<R, StoreError> {
    // Before it is opened: what changes between is seen by the next one that asks.
    let identity = FileIdentity::read(path).ok();
    let known = OPEN.with(|open| {
        let mut known = open.list()?;
        let at = known.iter().position(|archive| archive.path == path)?;
        Some(known.remove(at))
    });
    let known = known.filter(|known| Some(known.identity) == identity);
    let mut archive = match known {
        Some(known) => known.archive,
        None => open()?,
    };
    let result = read(&mut archive);
    OPEN.with(|open| {
        // What no file system knows, as a remote store's object, stays closed.
        if let (Some(mut known), Some(identity)) = (open.list(), identity) {
            if known.len() >= N_OPEN_MAX {
                known.remove(0);
            }
            known.push(KnownArchive {
                path: path.to_owned(),
                identity,
                archive,
            });
        }
    });
    result
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::file_format::npy;

    fn write(path: &Path, value: u8) {
        let mut zip = zip::ZipWriter::new(std::fs::File::create(path).unwrap());
        zip.start_file("a.npy", zip::write::SimpleFileOptions::default())
            .unwrap();
        let header = npy::encode_header(
            opscope_tensor::DType::U8,
            &opscope_tensor::Shape::new(vec![1]).unwrap(),
        )
        .unwrap();
        std::io::Write::write_all(&mut zip, &header).unwrap();
        std::io::Write::write_all(&mut zip, &[value]).unwrap();
        zip.finish().unwrap();
    }

    #[test]
    fn archives_are_opened_once_and_again_after_a_change() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.npz");
        write(&path, 7);
        let n_opened = std::cell::Cell::new(0);
        let value = || {
            let open = || {
                n_opened.set(n_opened.get() + 1);
                Ok(OpenArchive::Npz(Archive::open(&path)?))
            };
            with_archive(&path, open, |archive| match archive {
                OpenArchive::Npz(archive) => {
                    let tensor = archive.read("a", None)?;
                    Ok(tensor.host_bytes().unwrap()[0])
                }
                OpenArchive::Hdf5(_) => unreachable!(),
            })
            .unwrap()
        };
        assert_eq!([value(), value()], [7, 7]);
        assert_eq!(n_opened.get(), 2);
        keep_archives_open(|| {
            assert_eq!([value(), value(), value()], [7, 7, 7]);
            assert_eq!(n_opened.get(), 3);
            std::fs::remove_file(&path).unwrap();
            write(&path, 9);
            assert_eq!([value(), value()], [9, 9]);
            assert_eq!(n_opened.get(), 4);
        });
        assert_eq!((value(), n_opened.get()), (9, 5));
    }
}
