//! Elements that this process holds for itself, without a dump.

use std::fmt;
use std::fs::File;
use std::hash::{Hash, Hasher};
use std::io;
use std::sync::Arc;

use opscope_tensor::SharedBytes;

use crate::file_bytes::FileBytes;

/// The elements of a tensor in memory, or in a file that has no name. Clones share them, and are
/// equal to nothing but each other.
#[derive(Clone)]
pub struct HeldElements(Arc<ElementsHolder>);

enum ElementsHolder {
    Memory(SharedBytes),
    File {
        file: Arc<File>,
        offset: u64,
        n_bytes: usize,
    },
}

impl HeldElements {
    /// Elements in memory.
    pub fn in_memory(bytes: SharedBytes) -> HeldElements {
        HeldElements(Arc::new(ElementsHolder::Memory(bytes)))
    }

    /// Elements in a part of a file that is no longer changed or truncated.
    pub fn in_file(file: Arc<File>, offset: u64, n_bytes: usize) -> HeldElements {
        HeldElements(Arc::new(ElementsHolder::File {
            file,
            offset,
            n_bytes,
        }))
    }

    /// Whether they take memory of this process.
    pub fn is_in_memory(&self) -> bool {
        matches!(*self.0, ElementsHolder::Memory(_))
    }

    /// The bytes. Those of a file are mapped, because other programs cannot reach it.
    ///
    /// # Errors
    /// The operating system's, if the part of the file cannot be read.
    pub fn bytes(&self) -> io::Result<FileBytes> {
        match &*self.0 {
            ElementsHolder::Memory(bytes) => Ok(FileBytes::shared(bytes.clone())),
            ElementsHolder::File {
                file,
                offset,
                n_bytes,
            } => {
                let start = usize::try_from(*offset).map_err(|_| io::ErrorKind::OutOfMemory)?;
                let end = start.checked_add(*n_bytes);
                FileBytes::map_part(file, start..end.ok_or(io::ErrorKind::UnexpectedEof)?)
            }
        }
    }

    /// A number that no other elements have while these are held.
    pub fn number(&self) -> u64 {
        Arc::as_ptr(&self.0).addr() as u64
    }
}

impl PartialEq for HeldElements {
    fn eq(&self, other: &HeldElements) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for HeldElements {}

impl Hash for HeldElements {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.number().hash(state);
    }
}

impl fmt::Debug for HeldElements {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let place = if self.is_in_memory() {
            "memory"
        } else {
            "a file"
        };
        write!(f, "HeldElements(in {place})")
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn elements_are_the_same_in_memory_and_in_a_file() {
        // The larger part is mapped, and begins where no page does.
        for n_bytes in [0, 5, 200_000] {
            let content: Vec<u8> = (0..n_bytes).map(|i| (i % 251) as u8).collect();
            let mut file = tempfile::tempfile().unwrap();
            file.write_all(b"before").unwrap();
            file.write_all(&content).unwrap();
            file.write_all(b"behind").unwrap();
            let in_file = HeldElements::in_file(Arc::new(file), 6, n_bytes);
            let in_memory = HeldElements::in_memory(Arc::new(content.clone()));
            assert!(in_file.bytes().unwrap().as_ref() == content);
            assert!(in_memory.bytes().unwrap().as_ref() == content);
            assert!(in_memory.is_in_memory() && !in_file.is_in_memory());
            assert_eq!(in_file, in_file.clone());
            assert_ne!(in_file, in_memory);
        }
    }

    #[test]
    fn a_file_that_is_too_short_is_an_error() {
        for n_bytes in [5, 200_000] {
            let held = HeldElements::in_file(Arc::new(tempfile::tempfile().unwrap()), 3, n_bytes);
            assert!(held.bytes().is_err(), "{n_bytes}");
        }
    }
}
