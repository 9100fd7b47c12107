//! The elements of a tensor in a dump.

use std::borrow::Cow;
use std::ops::Range;

use half::f16;
use opscope_store::SharedPath;
use opscope_store::file_bytes::FileBytes;
use opscope_store::reader::{ElementsPlace, FileKind, IndexedTensor, OpenedTensor, TensorFile};
use opscope_store::record::SlotSide;
use opscope_tensor::convert::dtype::DecodeError;
use opscope_tensor::{DType, Layout, Shape, Stats, StatsError, TensorView, stats};

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
    /// A range of a file, which may be memory-mapped.
    Lent(FileBytes, Range<usize>),
    Own(Vec<u8>),
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
            ArrayBytes::Lent(bytes, range) => bytes.as_ref().get(range.clone()).unwrap_or_default(),
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
    ) -> Result<NumpyArray, ElementsError> {
        read_array(record, |slot, elements, tensor| {
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
    ) -> Result<NumpyArray, ElementsError> {
        read_array(record, |slot, elements, tensor| match relayout {
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
    pub fn raw(record: &IndexedTensor) -> Result<NumpyArray, ElementsError> {
        read_array(record, |_, elements, _| {
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

/// The most recently read file. A file of several tensors is opened once if they are read in
/// sequence.
#[derive(Default)]
pub struct LastFile(Option<(SharedPath, TensorFile)>);

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
        // Of an archive, possibly only the requested tensor was read.
        let (_, file) = match self.0.take() {
            Some((path, mut file)) if path == record.path && may_be_kept(&file, record) => {
                if file.kind() == FileKind::Elements {
                    file.turn_to(record)?;
                }
                self.0.insert((path, file))
            }
            _ => self.0.insert((record.path.clone(), open_file(record)?)),
        };
        let tensor = find_tensor(record, file)?;
        let slot = file.slot_of(tensor);
        let elements = DumpElements::from_tensor(tensor)?;
        let elements = elements.check_size().map_err(failed(&slot))?;
        pace::wait(elements.bytes.len());
        Ok(work(TensorView {
            dtype: elements.dtype,
            shape: &elements.shape,
            layout: elements.layout.unwrap_or(Layout::Nd),
            bytes: &elements.bytes,
        }))
    }
}

/// Computes the statistics of a record's elements.
///
/// # Errors
/// [`ElementsError`].
pub fn stats_of(record: &IndexedTensor) -> Result<Stats, ElementsError> {
    let file = open_file(record)?;
    let tensor = find_tensor(record, &file)?;
    let slot = file.slot_of(tensor);
    let elements = DumpElements::from_tensor(tensor)?;
    // Bytes of an unknown dtype have no numeric value.
    if elements.dtype.bits().is_none() {
        return Err(StatsError::Dtype(elements.dtype).into());
    }
    let elements = elements.check_size().map_err(failed(&slot))?;
    Ok(stats(TensorView {
        dtype: elements.dtype,
        shape: &elements.shape,
        layout: Layout::Nd,
        bytes: &elements.bytes,
    })?)
}

fn open_file(record: &IndexedTensor) -> Result<TensorFile, ElementsError> {
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
fn find_tensor<'f>(
    record: &IndexedTensor,
    file: &'f TensorFile,
) -> Result<OpenedTensor<'f>, ElementsError> {
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
    bring: impl for<'f> FnOnce(
        &str,
        DumpElements<'f>,
        OpenedTensor<'f>,
    ) -> Result<DumpElements<'f>, ElementsError>,
) -> Result<NumpyArray, ElementsError> {
    let file = open_file(record)?;
    let (dtype, shape, found) = {
        let tensor = find_tensor(record, &file)?;
        let slot = file.slot_of(tensor);
        let DumpElements {
            dtype,
            shape,
            bytes,
            ..
        } = bring(&slot, DumpElements::from_tensor(tensor)?, tensor)?;
        pace::wait(bytes.len());
        // The file moves into the array, so its bytes cannot stay borrowed: a range records their
        // position.
        let found = match bytes {
            Cow::Borrowed(bytes) => file.range_of(bytes).ok_or_else(|| bytes.to_vec()),
            Cow::Owned(bytes) => Err(bytes),
        };
        (dtype, shape, found)
    };
    let bytes = match found {
        Ok(range) => ArrayBytes::Lent(file.into_bytes(), range),
        Err(bytes) => ArrayBytes::Own(bytes),
    };
    Ok(NumpyArray {
        dtype,
        shape,
        bytes,
    })
}

fn failed(slot: &str) -> impl FnOnce(DecodeError) -> ElementsError {
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
