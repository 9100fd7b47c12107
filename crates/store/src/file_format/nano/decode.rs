//! From bytes to [`NanoHeader`].

use super::{AXES_MAX, LENGTH_BYTES, MAGIC, NanoHeader, NanoOriginal, NanoTensor};
use crate::FormatError;

pub(super) const TAG_INPUTS: u32 = 4;
pub(super) const TAG_OUTPUTS: u32 = 5;
pub(super) const TAG_SHAPE: u32 = 0;
pub(super) const TAG_ORIGINAL_SHAPE: u32 = 1;
pub(super) const TAG_NAME: u32 = 2;

/// An entry takes at least this many bytes, which bounds what a count may claim.
const ENTRY_BYTES_MIN: usize = 40;

impl NanoHeader {
    /// Reads the header of a file; also returns its length, without the eight bytes before it.
    ///
    /// # Errors
    /// [`FormatError`] if the length, the magic or a piece does not fit. Unknown pieces of an entry
    /// are skipped.
    pub fn decode(file: &[u8]) -> Result<(NanoHeader, usize), FormatError> {
        let Some(length) = file.first_chunk::<LENGTH_BYTES>() else {
            let found = format!("{} bytes", file.len());
            return Err(FormatError::new(0, "an 8-byte header length", found));
        };
        let length = u64::from_le_bytes(*length);
        let rest = &file[LENGTH_BYTES..];
        let header_bytes = usize::try_from(length).ok().and_then(|n| rest.get(..n));
        let Some(header_bytes) = header_bytes else {
            let expected = format!("a header length of at most {}", rest.len());
            return Err(FormatError::new(0, expected, length.to_string()));
        };
        let mut cursor = NanoCursor {
            bytes: header_bytes,
            pos: 0,
            base: LENGTH_BYTES,
        };
        let magic = cursor.u32()?;
        if magic != MAGIC {
            let expected = format!("the magic {MAGIC:#x}");
            return Err(FormatError::new(
                LENGTH_BYTES as u64,
                expected,
                format!("{magic:#x}"),
            ));
        }
        let version = cursor.u32()?;
        let inputs = cursor.entries(TAG_INPUTS, NanoCursor::input)?;
        let outputs = cursor.entries(TAG_OUTPUTS, NanoCursor::output)?;
        let header = NanoHeader {
            version,
            inputs,
            outputs,
        };
        Ok((header, header_bytes.len()))
    }
}

/// Walks over bytes that begin at byte `base` of the file.
struct NanoCursor<'a> {
    bytes: &'a [u8],
    pos: usize,
    base: usize,
}

impl<'a> NanoCursor<'a> {
    fn take(&mut self, n: usize) -> Result<&'a [u8], FormatError> {
        let rest = self.bytes.get(self.pos..).unwrap_or_default();
        let Some(taken) = rest.get(..n) else {
            return Err(self.error(format!("{n} bytes"), format!("{} bytes", rest.len())));
        };
        self.pos += n;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], FormatError> {
        let mut array = [0; N];
        array.copy_from_slice(self.take(N)?);
        Ok(array)
    }

    fn u32(&mut self) -> Result<u32, FormatError> {
        self.array().map(u32::from_le_bytes)
    }

    fn i32(&mut self) -> Result<i32, FormatError> {
        self.array().map(i32::from_le_bytes)
    }

    fn u64(&mut self) -> Result<u64, FormatError> {
        self.array().map(u64::from_le_bytes)
    }

    /// The value of the next piece, with its tag.
    fn piece(&mut self) -> Result<(u32, NanoCursor<'a>), FormatError> {
        let tag = self.u32()?;
        let length = self.u32()? as usize;
        // Offsets in errors count from the start of the file, inside a piece as well.
        let base = self.base + self.pos;
        let bytes = self.take(length)?;
        Ok((
            tag,
            NanoCursor {
                bytes,
                pos: 0,
                base,
            },
        ))
    }

    fn is_at_end(&self) -> bool {
        self.pos >= self.bytes.len()
    }

    /// The list under `tag`, empty if the next piece is another one.
    fn entries(
        &mut self,
        tag: u32,
        entry: fn(&mut NanoCursor<'a>) -> Result<NanoTensor, FormatError>,
    ) -> Result<Vec<NanoTensor>, FormatError> {
        // Either list may be absent, and then this tag belongs to what follows and must stay there.
        let next = self
            .bytes
            .get(self.pos..)
            .and_then(|rest| rest.first_chunk::<4>());
        if next != Some(&tag.to_le_bytes()) {
            return Ok(Vec::new());
        }
        let (_, mut list) = self.piece()?;
        let n = list.u32()? as usize;
        let n_max = (list.bytes.len() - list.pos) / ENTRY_BYTES_MIN;
        if n > n_max {
            return Err(list.error(format!("at most {n_max} entries"), n.to_string()));
        }
        (0..n).map(|_| entry(&mut list)).collect()
    }

    fn input(&mut self) -> Result<NanoTensor, FormatError> {
        let mut tensor = NanoTensor {
            data_type: self.i32()?,
            format: self.i32()?,
            address_type: self.i32()?,
            ..NanoTensor::default()
        };
        self.common(&mut tensor)?;
        Ok(tensor)
    }

    fn output(&mut self) -> Result<NanoTensor, FormatError> {
        let mut tensor = NanoTensor {
            data_type: self.i32()?,
            format: self.i32()?,
            address_type: self.i32()?,
            ..NanoTensor::default()
        };
        tensor.original = Some(NanoOriginal {
            index: self.i32()?,
            data_type: self.i32()?,
            format: self.i32()?,
            name: String::new(),
        });
        self.common(&mut tensor)?;
        Ok(tensor)
    }

    /// Reads the part that inputs and outputs have in common: the addresses and the list of pieces.
    fn common(&mut self, tensor: &mut NanoTensor) -> Result<(), FormatError> {
        tensor.address = self.u64()?;
        tensor.offset = self.u64()?;
        tensor.size = self.u64()?;
        let n_list = self.u32()? as usize;
        let base = self.base + self.pos;
        let bytes = self.take(n_list)?;
        let mut list = NanoCursor {
            bytes,
            pos: 0,
            base,
        };
        while !list.is_at_end() {
            let (tag, mut value) = list.piece()?;
            match (tag, &mut tensor.original) {
                (TAG_SHAPE, _) => tensor.shape = value.dims()?,
                (TAG_ORIGINAL_SHAPE, _) => tensor.original_shape = value.dims()?,
                (TAG_NAME, Some(original)) => {
                    // A name is for people; a name that is not UTF-8 is not a reason to lose the
                    // tensors.
                    original.name = String::from_utf8_lossy(value.bytes).into_owned();
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn dims(&mut self) -> Result<Vec<u64>, FormatError> {
        if self.bytes.len() > 8 * AXES_MAX {
            let found = format!("{} bytes", self.bytes.len());
            return Err(self.error(format!("at most {AXES_MAX} axes"), found));
        }
        let mut dims = Vec::with_capacity(self.bytes.len() / 8);
        while !self.is_at_end() {
            dims.push(self.u64()?);
        }
        Ok(dims)
    }

    fn error(&self, expected: impl Into<String>, found: impl Into<String>) -> FormatError {
        FormatError::new((self.base + self.pos) as u64, expected, found)
    }
}
