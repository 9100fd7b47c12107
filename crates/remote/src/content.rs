//! The content of remote files on the local disk.

use std::fs::{self, File, Metadata};
use std::io;
use std::ops::Range;
use std::sync::Arc;

use opscope_store::file_bytes::FileBytes;
use opscope_store::{regular_file, space};

use crate::background::wait_for;
use crate::object::RemoteObject;
use crate::stand_in::StandIns;
use crate::{lock, transfer};

/// Opens a file with its whole content, fetching it first if necessary.
///
/// # Errors
/// Those of [`transfer::fetch`] and of the operating system.
pub(crate) fn open_whole(object: &Arc<RemoteObject>) -> io::Result<(File, Metadata)> {
    // Other threads that need the content wait here.
    let mut is_whole = lock(&object.is_whole);
    if !*is_whole {
        check_room(object, object.n_bytes())?;
        let arriving = object.arriving();
        let _ = fs::remove_file(&arriving);
        let file = Arc::new(object.new_file(&arriving)?);
        let result = fetch(object, 0..object.n_bytes(), file.clone());
        let result = result.and_then(|()| {
            object.settle(&file)?;
            fs::rename(&arriving, &object.place)
        });
        if let Err(error) = result {
            let _ = fs::remove_file(&arriving);
            return Err(error);
        }
        *is_whole = true;
    }
    regular_file::open_in_dump(&object.place)
}

/// Reads a part into an unnamed file, and maps it.
///
/// # Errors
/// As for [`open_whole`].
pub(crate) fn read_into_file(
    object: &Arc<RemoteObject>,
    range: Range<u64>,
    stand_ins: &StandIns,
) -> io::Result<FileBytes> {
    let n_bytes = range.end - range.start;
    check_room(object, n_bytes)?;
    let file = Arc::new(stand_ins.unnamed_file()?);
    fetch(object, range, file.clone())?;
    let n_bytes = usize::try_from(n_bytes).map_err(|_| io::ErrorKind::OutOfMemory)?;
    FileBytes::map_part(&file, 0..n_bytes)
}

fn fetch(object: &Arc<RemoteObject>, range: Range<u64>, file: Arc<File>) -> io::Result<()> {
    let object = object.clone();
    wait_for(async move { transfer::fetch(&object, range, &file).await })
}

fn check_room(object: &RemoteObject, n_bytes: u64) -> io::Result<()> {
    let Ok(space) = space(&object.place) else {
        return Ok(());
    };
    if n_bytes > space.n_bytes_free {
        let dir = std::env::temp_dir();
        let reason = format!(
            "{n_bytes} bytes of it do not fit into `{}`, where {} are free; TMPDIR names another \
             place",
            dir.display(),
            space.n_bytes_free
        );
        return Err(io::Error::new(io::ErrorKind::StorageFull, reason));
    }
    Ok(())
}
