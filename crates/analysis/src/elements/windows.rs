//! Elements of a record, read in windows.

use std::ops::Range;

use opscope_store::file_parts::FilePart;
use opscope_store::reader::{IndexedTensor, StoredTensor, TensorFile};
use opscope_tensor::{DType, Shape};

use super::array::{described, find_tensor, open_file};
use super::{ElementsError, pace};

/// Maximum size of a window, unless a single range is larger.
const WINDOW_BYTES_MAX: usize = 1 << 20;

/// The stored elements of a record. Ranges are read on demand, so the tensor may exceed the memory.
pub(crate) struct ElementWindows {
    file: TensorFile,
    stored: StoredTensor,
    /// Element type.
    pub(crate) dtype: DType,
    /// Shape.
    pub(crate) shape: Shape,
    window: Option<FilePart>,
    /// Position of the window among the bytes of the tensor.
    window_at: usize,
    /// Size of the next window that continues this one.
    n_next: usize,
}

impl ElementWindows {
    /// Opens the file of a record.
    ///
    /// # Errors
    /// [`ElementsError`].
    pub(crate) fn open(record: &IndexedTensor) -> Result<ElementWindows, ElementsError> {
        let file = open_file(record)?;
        let stored = find_tensor(record, &file)?.clone();
        let (dtype, shape, _) = described(&file, &stored)?;
        Ok(ElementWindows {
            file,
            stored,
            dtype,
            shape,
            window: None,
            window_at: 0,
            n_next: 0,
        })
    }

    /// Some bytes of the elements.
    ///
    /// # Errors
    /// [`ElementsError`].
    pub(crate) fn bytes(&mut self, range: Range<usize>) -> Result<&[u8], ElementsError> {
        let n_bytes = range.len();
        if self.in_window(&range).is_none() {
            // Reading ahead pays off for a reader that continues, not for one that jumps.
            let end = self.window_at + self.window.as_ref().map_or(0, |part| part.as_ref().len());
            let is_next = (self.window_at..=end).contains(&range.start);
            self.n_next = if is_next {
                self.n_next.saturating_mul(2).min(WINDOW_BYTES_MAX)
            } else {
                n_bytes
            };
            let n_all = usize::try_from(self.stored.n_bytes).unwrap_or(usize::MAX);
            let n_window = n_bytes.max(self.n_next).min(n_all - range.start.min(n_all));
            let window = range.start..range.start + n_window.max(n_bytes);
            pace::wait(window.len());
            // Its buffer is reused.
            self.window = None;
            self.window = Some(self.file.elements_part(&self.stored, window)?);
            self.window_at = range.start;
        }
        Ok(self.in_window(&range).unwrap_or_default())
    }

    fn in_window(&self, range: &Range<usize>) -> Option<&[u8]> {
        let start = range.start.checked_sub(self.window_at)?;
        let window = self.window.as_ref()?.as_ref();
        window.get(start..start.checked_add(range.len())?)
    }
}
