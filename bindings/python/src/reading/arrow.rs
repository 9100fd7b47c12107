//! Arrow's C data and stream interfaces: tables in memory, for other libraries of this process.
//!
//! The structures and their rules are those of
//! <https://arrow.apache.org/docs/format/CDataInterface.html> and `CStreamInterface.html` there.
//! The consumer of a structure owns it, and calls its `release` once, on any thread.

#![allow(
    unsafe_code,
    reason = "the structures are of pointers, and C calls what they point to"
)]

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr;
use std::sync::Arc;

/// The error code, `EIO`.
const FAILURE: c_int = 5;
/// The flag of a nullable column.
const NULLABLE: i64 = 2;
/// Values of lists are not nullable.
const REQUIRED: i64 = 0;

/// A column: its name, its type, and whether it is nullable.
#[derive(Clone)]
pub(super) struct Field {
    pub(super) name: String,
    pub(super) kind: Kind,
}

/// Types of columns.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Bool,
    Int,
    Number,
    Text,
    /// Lists of integers.
    Ints,
}

/// The values of a column; `None` marks missing ones.
pub(super) enum Cells {
    Bool(Vec<Option<bool>>),
    Int(Vec<Option<i64>>),
    Number(Vec<Option<f64>>),
    Text(Vec<Option<Arc<str>>>),
    Ints(Vec<Option<Arc<[i64]>>>),
}

impl Cells {
    pub(super) fn len(&self) -> usize {
        match self {
            Cells::Bool(cells) => cells.len(),
            Cells::Int(cells) => cells.len(),
            Cells::Number(cells) => cells.len(),
            Cells::Text(cells) => cells.len(),
            Cells::Ints(cells) => cells.len(),
        }
    }
}

/// Columns with the same number of rows.
pub(super) struct Batch {
    pub(super) n_rows: usize,
    pub(super) columns: Vec<Cells>,
}

/// Successive batches, or the reason why reading stopped.
pub(super) type Batches = Box<dyn Iterator<Item = Result<Batch, String>> + Send>;

#[repr(C)]
pub(super) struct ArrowSchema {
    format: *const c_char,
    name: *const c_char,
    metadata: *const c_char,
    flags: i64,
    n_children: i64,
    children: *mut *mut ArrowSchema,
    dictionary: *mut ArrowSchema,
    release: Option<unsafe extern "C" fn(*mut ArrowSchema)>,
    private_data: *mut c_void,
}

#[repr(C)]
struct ArrowArray {
    length: i64,
    null_count: i64,
    offset: i64,
    n_buffers: i64,
    n_children: i64,
    buffers: *mut *const c_void,
    children: *mut *mut ArrowArray,
    dictionary: *mut ArrowArray,
    release: Option<unsafe extern "C" fn(*mut ArrowArray)>,
    private_data: *mut c_void,
}

#[repr(C)]
pub(super) struct ArrowArrayStream {
    get_schema: Option<unsafe extern "C" fn(*mut ArrowArrayStream, *mut ArrowSchema) -> c_int>,
    get_next: Option<unsafe extern "C" fn(*mut ArrowArrayStream, *mut ArrowArray) -> c_int>,
    get_last_error: Option<unsafe extern "C" fn(*mut ArrowArrayStream) -> *const c_char>,
    release: Option<unsafe extern "C" fn(*mut ArrowArrayStream)>,
    private_data: *mut c_void,
}

// SAFETY: all that the pointers lead to belongs to the structure alone, and may be used on any
// thread.
unsafe impl Send for ArrowSchema {}
// SAFETY: as above; the batches are `Send`.
unsafe impl Send for ArrowArrayStream {}

/// The memory that a schema points to.
struct SchemaOwner {
    _format: CString,
    _name: CString,
    children: Vec<*mut ArrowSchema>,
}

/// The memory that an array points to.
struct ArrayOwner {
    _held: Vec<Buffer>,
    _pointers: Vec<*const c_void>,
    children: Vec<*mut ArrowArray>,
}

/// A contiguous buffer of a column.
enum Buffer {
    Bytes(Vec<u8>),
    Offsets(Vec<i32>),
    Ints(Vec<i64>),
    Numbers(Vec<f64>),
    None,
}

struct StreamOwner {
    fields: Vec<Field>,
    batches: Batches,
    error: Option<CString>,
}

/// A text without NUL, which would end it in C.
fn c_text(text: &str) -> CString {
    CString::new(text.replace('\0', "")).unwrap_or_default()
}

impl ArrowSchema {
    /// The schema of a table.
    pub(super) fn of_table(fields: &[Field]) -> ArrowSchema {
        let children = fields.iter().map(ArrowSchema::of_field).collect();
        ArrowSchema::new(c"+s", "", REQUIRED, children)
    }

    fn of_field(field: &Field) -> ArrowSchema {
        let format = match field.kind {
            Kind::Bool => c"b",
            Kind::Int => c"l",
            Kind::Number => c"g",
            Kind::Text => c"u",
            Kind::Ints => c"+l",
        };
        let children = if field.kind == Kind::Ints {
            vec![ArrowSchema::new(c"l", "element", REQUIRED, Vec::new())]
        } else {
            Vec::new()
        };
        ArrowSchema::new(format, &field.name, NULLABLE, children)
    }

    fn new(format: &CStr, name: &str, flags: i64, children: Vec<ArrowSchema>) -> ArrowSchema {
        // A consumer may move out children and release them separately, so each has a box.
        let children = children.into_iter();
        let mut owner = Box::new(SchemaOwner {
            _format: format.to_owned(),
            _name: c_text(name),
            children: children
                .map(|child| Box::into_raw(Box::new(child)))
                .collect(),
        });
        ArrowSchema {
            format: owner._format.as_ptr(),
            name: owner._name.as_ptr(),
            metadata: ptr::null(),
            flags,
            n_children: owner.children.len() as i64,
            children: owner.children.as_mut_ptr(),
            dictionary: ptr::null_mut(),
            release: Some(release_schema),
            private_data: Box::into_raw(owner).cast(),
        }
    }
}

/// # Safety
/// `schema` was made here, and is not released yet.
unsafe extern "C" fn release_schema(schema: *mut ArrowSchema) {
    // SAFETY: the caller hands over a structure of ours, whose owner was leaked by `new`.
    unsafe {
        let owner: Box<SchemaOwner> = Box::from_raw((*schema).private_data.cast());
        for child in owner.children {
            // A child that was moved out has no release function.
            drop(Box::from_raw(child));
        }
        (*schema).release = None;
    }
}

impl Drop for ArrowSchema {
    fn drop(&mut self) {
        if let Some(release) = self.release {
            // SAFETY: it is not released yet, or there would be no function.
            unsafe { release(self) }
        }
    }
}

impl Drop for ArrowArray {
    fn drop(&mut self) {
        if let Some(release) = self.release {
            // SAFETY: as for a schema.
            unsafe { release(self) }
        }
    }
}

impl Drop for ArrowArrayStream {
    fn drop(&mut self) {
        if let Some(release) = self.release {
            // SAFETY: as for a schema.
            unsafe { release(self) }
        }
    }
}

impl Buffer {
    fn pointer(&self) -> *const c_void {
        match self {
            Buffer::Bytes(all) => all.as_ptr().cast(),
            Buffer::Offsets(all) => all.as_ptr().cast(),
            Buffer::Ints(all) => all.as_ptr().cast(),
            Buffer::Numbers(all) => all.as_ptr().cast(),
            Buffer::None => ptr::null(),
        }
    }
}

/// A bitmap, least significant bit first.
fn bits(all: impl ExactSizeIterator<Item = bool>) -> Buffer {
    let mut bytes = vec![0_u8; all.len().div_ceil(8)];
    for (at, is_set) in all.enumerate() {
        bytes[at / 8] |= u8::from(is_set) << (at % 8);
    }
    Buffer::Bytes(bytes)
}

/// End offsets of consecutive items, after a first 0.
fn offsets(lengths: impl Iterator<Item = usize>) -> Result<Buffer, String> {
    let mut end = 0_usize;
    let mut all = vec![0_i32];
    for length in lengths {
        end += length;
        let offset = i32::try_from(end);
        all.push(offset.map_err(|_| "a column has more than 2 GiB in one batch".to_owned())?);
    }
    Ok(Buffer::Offsets(all))
}

fn filled<T: Default + Copy>(cells: &[Option<T>]) -> Vec<T> {
    cells.iter().map(|cell| cell.unwrap_or_default()).collect()
}

fn column(cells: Cells) -> Result<ArrowArray, String> {
    Ok(match cells {
        Cells::Bool(cells) => {
            let values = bits(cells.iter().map(|cell| cell.unwrap_or(false)));
            primitive(&cells, values)
        }
        Cells::Int(cells) => primitive(&cells, Buffer::Ints(filled(&cells))),
        Cells::Number(cells) => primitive(&cells, Buffer::Numbers(filled(&cells))),
        Cells::Text(cells) => {
            let lengths = cells
                .iter()
                .map(|cell| cell.as_ref().map_or(0, |text| text.len()));
            let offsets = offsets(lengths)?;
            // Missing texts are empty; the validity bitmap marks them.
            let bytes = cells
                .iter()
                .flatten()
                .flat_map(|text| text.bytes())
                .collect();
            ArrowArray::new(
                cells.len(),
                validity(&cells),
                vec![offsets, Buffer::Bytes(bytes)],
                Vec::new(),
            )
        }
        Cells::Ints(cells) => {
            let offsets = offsets(
                cells
                    .iter()
                    .map(|cell| cell.as_ref().map_or(0, |list| list.len())),
            )?;
            let values: Vec<i64> = cells
                .iter()
                .flatten()
                .flat_map(|list| list.iter().copied())
                .collect();
            let n = values.len();
            let values =
                ArrowArray::new(n, (0, Buffer::None), vec![Buffer::Ints(values)], Vec::new());
            ArrowArray::new(cells.len(), validity(&cells), vec![offsets], vec![values])
        }
    })
}

fn primitive<T>(cells: &[Option<T>], values: Buffer) -> ArrowArray {
    ArrowArray::new(cells.len(), validity(cells), vec![values], Vec::new())
}

/// Number of missing cells, and the validity bitmap; empty if none is missing.
fn validity<T>(cells: &[Option<T>]) -> (usize, Buffer) {
    let n_missing = cells.iter().filter(|cell| cell.is_none()).count();
    let is_there = match n_missing {
        0 => Buffer::None,
        _ => bits(cells.iter().map(Option::is_some)),
    };
    (n_missing, is_there)
}

impl ArrowArray {
    fn of_batch(batch: Batch) -> Result<ArrowArray, String> {
        let columns = batch.columns.into_iter().map(column);
        let columns = columns.collect::<Result<Vec<_>, _>>()?;
        // A table is a column of structures without missing values.
        Ok(ArrowArray::new(
            batch.n_rows,
            (0, Buffer::None),
            Vec::new(),
            columns,
        ))
    }

    fn new(
        length: usize,
        (n_missing, is_there): (usize, Buffer),
        buffers: Vec<Buffer>,
        children: Vec<ArrowArray>,
    ) -> ArrowArray {
        let held: Vec<Buffer> = std::iter::once(is_there).chain(buffers).collect();
        let children = children.into_iter();
        let mut owner = Box::new(ArrayOwner {
            _pointers: held.iter().map(Buffer::pointer).collect(),
            _held: held,
            children: children
                .map(|child| Box::into_raw(Box::new(child)))
                .collect(),
        });
        ArrowArray {
            length: length as i64,
            null_count: n_missing as i64,
            offset: 0,
            n_buffers: owner._pointers.len() as i64,
            n_children: owner.children.len() as i64,
            buffers: owner._pointers.as_mut_ptr(),
            children: owner.children.as_mut_ptr(),
            dictionary: ptr::null_mut(),
            release: Some(release_array),
            private_data: Box::into_raw(owner).cast(),
        }
    }
}

/// # Safety
/// `array` was made here, and is not released yet.
unsafe extern "C" fn release_array(array: *mut ArrowArray) {
    // SAFETY: the caller hands over a structure of ours, whose owner was leaked by `new`.
    unsafe {
        let owner: Box<ArrayOwner> = Box::from_raw((*array).private_data.cast());
        for child in owner.children {
            drop(Box::from_raw(child));
        }
        (*array).release = None;
    }
}

impl ArrowArrayStream {
    /// A stream of these batches.
    pub(super) fn new(fields: Vec<Field>, batches: Batches) -> ArrowArrayStream {
        let owner = Box::new(StreamOwner {
            fields,
            batches,
            error: None,
        });
        ArrowArrayStream {
            get_schema: Some(get_schema),
            get_next: Some(get_next),
            get_last_error: Some(get_last_error),
            release: Some(release_stream),
            private_data: Box::into_raw(owner).cast(),
        }
    }
}

/// # Safety
/// `stream` was made here, and `out` is room for a schema.
unsafe extern "C" fn get_schema(stream: *mut ArrowArrayStream, out: *mut ArrowSchema) -> c_int {
    // SAFETY: the owner lives as long as the stream, and a consumer makes one call at a time.
    let owner = unsafe { &mut *(*stream).private_data.cast::<StreamOwner>() };
    let schema = ArrowSchema::of_table(&owner.fields);
    // SAFETY: the memory at `out` does not contain a schema yet, so none is dropped.
    unsafe { out.write(schema) };
    0
}

/// # Safety
/// As for [`get_schema`], with room for an array.
unsafe extern "C" fn get_next(stream: *mut ArrowArrayStream, out: *mut ArrowArray) -> c_int {
    // SAFETY: as in `get_schema`.
    let owner = unsafe { &mut *(*stream).private_data.cast::<StreamOwner>() };
    // A panic must not unwind into the consumer's foreign code. The consumer gets an error code,
    // and can query the reason.
    let next = catch_unwind(AssertUnwindSafe(|| {
        owner
            .batches
            .next()
            .map(|batch| batch.and_then(ArrowArray::of_batch))
    }));
    let array = match next {
        Ok(Some(Ok(array))) => array,
        Ok(Some(Err(error))) => {
            owner.error = Some(c_text(&error));
            return FAILURE;
        }
        // The end is a released array.
        Ok(None) => ArrowArray::released(),
        Err(_) => {
            owner.error = Some(c_text("reading failed for an unknown reason"));
            return FAILURE;
        }
    };
    // SAFETY: as in `get_schema`.
    unsafe { out.write(array) };
    0
}

impl ArrowArray {
    fn released() -> ArrowArray {
        ArrowArray {
            length: 0,
            null_count: 0,
            offset: 0,
            n_buffers: 0,
            n_children: 0,
            buffers: ptr::null_mut(),
            children: ptr::null_mut(),
            dictionary: ptr::null_mut(),
            release: None,
            private_data: ptr::null_mut(),
        }
    }
}

/// # Safety
/// As for [`get_schema`].
unsafe extern "C" fn get_last_error(stream: *mut ArrowArrayStream) -> *const c_char {
    // SAFETY: as in `get_schema`.
    let owner = unsafe { &*(*stream).private_data.cast::<StreamOwner>() };
    owner
        .error
        .as_ref()
        .map_or(ptr::null(), |error| error.as_ptr())
}

/// # Safety
/// `stream` was made here, and is not released yet.
unsafe extern "C" fn release_stream(stream: *mut ArrowArrayStream) {
    // SAFETY: the owner was leaked by `new`.
    unsafe {
        drop(Box::<StreamOwner>::from_raw((*stream).private_data.cast()));
        (*stream).release = None;
    }
}
