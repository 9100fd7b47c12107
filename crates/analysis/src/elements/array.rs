//! The elements of a tensor in a dump.

use std::borrow::Cow;
use std::collections::VecDeque;

use half::f16;
use opscope_store::SharedPath;
use opscope_store::file_format::npy;
use opscope_store::file_parts::FilePart;
use opscope_store::reader::{
    ElementsPlace, FileKind, IndexedTensor, OpenedTensor, StoredTensor, TensorFile,
};
use opscope_store::record::SlotSide;
use opscope_tensor::convert::dtype::DecodeError;
use opscope_tensor::{
    DType, Layout, PiecewiseNumbers, Shape, ShapeError, Stats, StatsError, TensorView,
    digest_and_stats,
};

use super::{DumpElements, ElementsError, WantedLayout, open_files, pace};

/// Elements that NumPy can hold: little-endian, contiguous, in row-major order.
pub struct NumpyArray {
    /// Element type.
    pub dtype: DType,
    /// Shape.
    pub shape: Shape,
    bytes: ArrayBytes,
}

enum ArrayBytes {
    /// A part of a file.
    Lent(FilePart),
    Own(Vec<u8>),
}

/// How the elements of an array reach memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ElementsAccess {
    /// Read: the array does not change with the file.
    Read,
    /// Mapped, unless they need a conversion. Such an array takes no memory until its first use.
    /// Using it after another program has truncated the file raises SIGBUS.
    Mapped,
}

impl NumpyArray {
    /// Wraps elements that are in memory; their number matches the shape.
    pub(crate) fn in_memory(dtype: DType, shape: Shape, bytes: Vec<u8>) -> NumpyArray {
        NumpyArray {
            dtype,
            shape,
            bytes: ArrayBytes::Own(bytes),
        }
    }

    /// The elements.
    pub fn bytes(&self) -> &[u8] {
        match &self.bytes {
            ArrayBytes::Lent(part) => part.as_ref(),
            ArrayBytes::Own(bytes) => bytes,
        }
    }
}

impl NumpyArray {
    /// The elements of a record, optionally in another layout.
    ///
    /// Floats that NumPy lacks become `float32`, integers the next wider type. Nothing is copied if
    /// the file already holds the array's bytes.
    ///
    /// # Errors
    /// [`ElementsError`].
    pub fn decoded(
        record: &IndexedTensor,
        relayout: Option<&WantedLayout>,
        access: ElementsAccess,
    ) -> Result<NumpyArray, ElementsError> {
        // A conversion copies the elements anyway.
        let dtype = record.stored_dtype.as_ref().or(record.dtype.as_ref());
        let dtype = dtype.and_then(|dtype| dtype.value());
        let is_kept = dtype.is_some_and(|dtype| npy::descr(dtype).is_some());
        let access = if relayout.is_none() && is_kept {
            access
        } else {
            ElementsAccess::Read
        };
        read_array(record, access, |slot, elements, tensor| {
            // Checked before decoding, because float8 also decodes to float16.
            let is_half = elements.dtype == DType::F16;
            let elements = match relayout {
                None => elements,
                Some(relayout) => relaid(relayout, elements, tensor, slot)?,
            };
            let decoded = elements.decode().map_err(failed(slot))?;
            // Decoding picks the narrowest dtype, which for one-byte floats is float16; the API
            // promises float32.
            if decoded.dtype == DType::F16 && !is_half {
                return Ok(widen(decoded));
            }
            Ok(decoded)
        })
    }

    /// The elements of a record in the file's dtype, optionally in another layout.
    ///
    /// # Errors
    /// [`ElementsError`].
    pub fn stored(
        record: &IndexedTensor,
        relayout: Option<&WantedLayout>,
        access: ElementsAccess,
    ) -> Result<NumpyArray, ElementsError> {
        read_array(record, access, |slot, elements, tensor| match relayout {
            None => elements.check_size().map_err(failed(slot)),
            Some(relayout) => relaid(relayout, elements, tensor, slot),
        })
    }

    /// The bytes of a record as stored, with byte order and axes normalized. One- and two-byte
    /// elements become `uint8` or `uint16` with the tensor's shape; all others become one axis of
    /// `uint8`.
    ///
    /// # Errors
    /// [`ElementsError`].
    pub fn raw(
        record: &IndexedTensor,
        access: ElementsAccess,
    ) -> Result<NumpyArray, ElementsError> {
        read_array(record, access, |_, elements, _| {
            let expected = elements.shape.n_bytes(elements.dtype);
            let is_whole = expected == Ok(elements.bytes.len());
            let (dtype, shape) = match elements.dtype.bytes() {
                Some(1) if is_whole => (DType::U8, elements.shape),
                Some(2) if is_whole => (DType::U16, elements.shape),
                // The bytes are in memory, so their number fits `usize`.
                _ => (
                    DType::U8,
                    Shape::new([elements.bytes.len()]).unwrap_or_default(),
                ),
            };
            Ok(DumpElements {
                dtype,
                shape,
                layout: elements.layout,
                bytes: elements.bytes,
            })
        })
    }
}

/// A digest, if it was requested, and statistics.
pub type ElementNumbers = (Option<[u8; 16]>, Result<Stats, StatsError>);

/// The most recently read file. A file of several tensors is opened once if they are read in
/// sequence.
#[derive(Default)]
pub struct LastFile {
    file: Option<(SharedPath, TensorFile)>,
    /// Numbers of the last tensors, as most outputs are inputs of the operators that follow.
    recent: VecDeque<(NumbersKey, ElementNumbers)>,
}

/// Maximum number of tensors whose numbers are kept.
const N_RECENT_MAX: usize = 16;

/// The elements of a file that have some numbers.
#[derive(PartialEq)]
struct NumbersKey {
    offset: u64,
    n_bytes: usize,
    dtype: DType,
    has_digest: bool,
    path: SharedPath,
}

impl LastFile {
    /// Calls `work` with the elements of a record in the file's dtype.
    ///
    /// # Errors
    /// [`ElementsError`].
    pub fn with_stored<R>(
        &mut self,
        record: &IndexedTensor,
        work: impl FnOnce(TensorView<'_>) -> R,
    ) -> Result<R, ElementsError> {
        let file = opened(&mut self.file, record)?;
        let stored = find_tensor(record, file)?;
        let slot = file.slot_of(stored);
        let part = file.elements(stored)?;
        let elements = DumpElements::from_tensor(OpenedTensor {
            stored,
            bytes: part.as_ref(),
        })?;
        let elements = elements.check_size().map_err(failed(&slot))?;
        pace::wait(elements.bytes.len());
        Ok(work(TensorView {
            dtype: elements.dtype,
            shape: &elements.shape,
            layout: elements.layout.unwrap_or(Layout::Nd),
            bytes: &elements.bytes,
        }))
    }

    /// The statistics of a record's elements in the file's dtype, and their digest if `has_digest`.
    /// A large tensor is read in pieces, never as a whole.
    ///
    /// # Errors
    /// [`ElementsError`].
    pub fn numbers(
        &mut self,
        record: &IndexedTensor,
        has_digest: bool,
    ) -> Result<ElementNumbers, ElementsError> {
        let file = opened(&mut self.file, record)?;
        let stored = find_tensor(record, file)?;
        let (dtype, _, n_bytes) = described(file, stored)?;
        // Elements in memory have no path.
        let offset = stored.offset.filter(|_| record.held.is_none());
        let key = offset.map(|offset| NumbersKey {
            offset,
            n_bytes,
            dtype,
            has_digest,
            path: record.path.clone(),
        });
        let mut recent = self.recent.iter();
        if let Some((_, numbers)) = recent.find(|(known, _)| key.as_ref() == Some(known)) {
            return Ok(numbers.clone());
        }
        let numbers = numbers_of(file, stored, has_digest)?;
        if let Some(key) = key {
            self.recent.truncate(N_RECENT_MAX - 1);
            self.recent.push_front((key, numbers.clone()));
        }
        Ok(numbers)
    }
}

/// The file of a record, which is the last one if possible.
fn opened<'f>(
    last: &'f mut Option<(SharedPath, TensorFile)>,
    record: &IndexedTensor,
) -> Result<&'f TensorFile, ElementsError> {
    // Of an archive, possibly only the requested tensor was read.
    let (_, file) = match last.take() {
        Some((path, mut file)) if path == record.path && may_be_kept(&file, record) => {
            if file.kind() == FileKind::Elements {
                file.turn_to(record)?;
            }
            last.insert((path, file))
        }
        _ => last.insert((record.path.clone(), open_file(record)?)),
    };
    Ok(file)
}

/// Reads the numbers of a tensor.
fn numbers_of(
    file: &TensorFile,
    stored: &StoredTensor,
    has_digest: bool,
) -> Result<ElementNumbers, ElementsError> {
    let (dtype, shape, n_bytes) = described(file, stored)?;
    let n_piece = PiecewiseNumbers::piece_bytes(dtype);
    if n_bytes <= n_piece && has_digest {
        pace::wait(n_bytes);
        let part = file.elements_part(stored, 0..n_bytes)?;
        let (digest, weighed) = digest_and_stats(TensorView {
            dtype,
            shape: &shape,
            layout: Layout::Nd,
            bytes: part.as_ref(),
        });
        return Ok((Some(digest), weighed.map(|weighed| weighed.stats)));
    }
    let mut numbers = PiecewiseNumbers::new(dtype, shape.n_elements(), has_digest);
    for start in (0..n_bytes).step_by(n_piece) {
        let end = n_bytes.min(start + n_piece);
        pace::wait(end - start);
        numbers.append(file.elements_part(stored, start..end)?.as_ref());
    }
    Ok(numbers.finish())
}

/// The dtype, shape and size of a tensor whose file has all of its elements.
pub(super) fn described(
    file: &TensorFile,
    stored: &StoredTensor,
) -> Result<(DType, Shape, usize), ElementsError> {
    let bytes = &[];
    let described = DumpElements::from_tensor(OpenedTensor { stored, bytes })?;
    let (dtype, shape) = (described.dtype, described.shape);
    let slot = file.slot_of(stored);
    let found = usize::try_from(stored.n_bytes).unwrap_or(usize::MAX);
    let expected = match shape.n_bytes(dtype) {
        // Texts are as long as they are.
        Err(ShapeError::Unsized(_)) => found,
        expected => expected.map_err(DecodeError::from).map_err(failed(&slot))?,
    };
    if found < expected {
        return Err(failed(&slot)(DecodeError::Size {
            dtype,
            shape,
            expected,
            found,
        }));
    }
    Ok((dtype, shape, expected))
}

/// Computes the statistics of a record's elements.
///
/// # Errors
/// [`ElementsError`].
pub fn stats_of(record: &IndexedTensor) -> Result<Stats, ElementsError> {
    let (_, stats) = LastFile::default().numbers(record, false)?;
    Ok(stats?)
}

pub(super) fn open_file(record: &IndexedTensor) -> Result<TensorFile, ElementsError> {
    let place = record.elements.as_ref().ok_or(ElementsError::NoElements)?;
    if is_in_place(place) {
        return open_files::of_elements(record);
    }
    let file = TensorFile::open_for(&record.path, &place.real_name, place.tensor);
    Ok(file?)
}

/// Whether an open file also holds the elements of a record.
fn may_be_kept(file: &TensorFile, record: &IndexedTensor) -> bool {
    let place = record.elements.as_ref();
    let is_in_place = place.is_some_and(is_in_place);
    // Elements held in this process belong to no shared file.
    record.held.is_none()
        // A view in an archive is gathered separately, whatever its neighbours are.
        && !file.kind().is_archive() && is_in_place == (file.kind() == FileKind::Elements)
}

/// Whether the record alone is enough to read its elements. The archive need not be scanned again
/// for each tensor then.
fn is_in_place(place: &ElementsPlace) -> bool {
    let is_archive = matches!(
        place.kind,
        Some(FileKind::Safetensors | FileKind::TorchSave | FileKind::OrtTrace)
    );
    // Elements in another order have no offset.
    place.kind == Some(FileKind::Elements) || (is_archive && place.offset.is_some())
}

/// The tensor in its file, which may have changed since it was listed.
pub(super) fn find_tensor<'f>(
    record: &IndexedTensor,
    file: &'f TensorFile,
) -> Result<&'f StoredTensor, ElementsError> {
    let place = record.elements.as_ref().ok_or(ElementsError::NoElements)?;
    let first = (SlotSide::Output, 0);
    let (side, index) = match file.kind() {
        // Opened in place, the file has only this tensor, even if it is an archive.
        FileKind::Elements => first,
        _ => place.tensor.unwrap_or(first),
    };
    file.tensor(side, index)
        .ok_or_else(|| ElementsError::NoSlot {
            slot: format!("{}.{index}", side.name()),
            n: file.n_tensors(side),
        })
}

fn relaid<'f>(
    relayout: &WantedLayout,
    elements: DumpElements<'f>,
    tensor: OpenedTensor<'f>,
    slot: &str,
) -> Result<DumpElements<'f>, ElementsError> {
    let result = relayout.apply(elements, tensor.stored);
    result.map_err(|source| ElementsError::Relayout {
        slot: slot.to_owned(),
        source,
    })
}

fn read_array(
    record: &IndexedTensor,
    access: ElementsAccess,
    bring: impl for<'f> FnOnce(
        &str,
        DumpElements<'f>,
        OpenedTensor<'f>,
    ) -> Result<DumpElements<'f>, ElementsError>,
) -> Result<NumpyArray, ElementsError> {
    let file = open_file(record)?;
    let stored = find_tensor(record, &file)?;
    let slot = file.slot_of(stored);
    let part = match access {
        ElementsAccess::Mapped => file.mapped_elements(stored)?,
        ElementsAccess::Read => file.elements(stored)?,
    };
    let (dtype, shape, bytes) = {
        let tensor = OpenedTensor {
            stored,
            bytes: part.as_ref(),
        };
        let DumpElements {
            dtype,
            shape,
            bytes,
            ..
        } = bring(&slot, DumpElements::from_tensor(tensor)?, tensor)?;
        pace::wait(bytes.len());
        let bytes = match bytes {
            Cow::Borrowed(bytes) => match part.part_of(bytes) {
                Some(part) => ArrayBytes::Lent(part),
                None => ArrayBytes::Own(bytes.to_vec()),
            },
            Cow::Owned(bytes) => ArrayBytes::Own(bytes),
        };
        (dtype, shape, bytes)
    };
    Ok(NumpyArray {
        dtype,
        shape,
        bytes,
    })
}

pub(super) fn failed(slot: &str) -> impl FnOnce(DecodeError) -> ElementsError {
    let slot = slot.to_owned();
    move |source| ElementsError::Decode { slot, source }
}

fn widen(elements: DumpElements<'_>) -> DumpElements<'static> {
    let halves = elements.bytes.as_chunks::<2>().0.iter();
    let bytes = halves
        .flat_map(|&half| f16::from_le_bytes(half).to_f32().to_le_bytes())
        .collect();
    DumpElements {
        dtype: DType::F32,
        shape: elements.shape,
        layout: elements.layout,
        bytes: Cow::Owned(bytes),
    }
}
