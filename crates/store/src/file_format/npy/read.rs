//! An array from a stream: its header first, then as many bytes as the header promises and no more.

use std::io::{self, Read};
use std::path::Path;

use opscope_tensor::{DType, Tensor};

use super::{FORMAT_NAME, HEADER_BYTES_MAX, NpyHeader, from_bytes_as};
use crate::memory::check_memory;
use crate::{FormatError, StoreError, regular_file};

/// Bytes in which nearly every header ends.
const START_BYTES: u64 = 4 << 10;
/// Bytes in which every header ends that is read at all: magic, version and length come before it.
const START_BYTES_MAX: u64 = HEADER_BYTES_MAX as u64 + 12;

/// Why no array came out of a stream.
#[derive(Debug)]
pub(crate) enum StreamError {
    Io(io::Error),
    Format(FormatError),
}

impl From<FormatError> for StreamError {
    fn from(error: FormatError) -> StreamError {
        StreamError::Format(error)
    }
}

impl From<io::Error> for StreamError {
    fn from(error: io::Error) -> StreamError {
        StreamError::Io(error)
    }
}

/// The length of a stream, as far as it is known before it is read.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StreamLength {
    /// Its stated size in bytes.
    pub(crate) n_bytes: u64,
    /// Maximum number of bytes that it can have.
    pub(crate) n_bytes_max: u64,
}

/// The array of a file.
pub(super) fn read_file(path: &Path, wanted: Option<DType>) -> Result<Tensor, StoreError> {
    let opened = regular_file::open(path).map_err(StoreError::io("open", path))?;
    let n_bytes = opened.1.len();
    let length = StreamLength {
        n_bytes,
        n_bytes_max: n_bytes,
    };
    read_array(opened.0, length, wanted).map_err(|error| match error {
        StreamError::Io(source) => StoreError::io("read", path)(source),
        StreamError::Format(source) => StoreError::corrupt(FORMAT_NAME, path)(source),
    })
}

/// The header of an array file.
///
/// # Errors
/// [`StoreError`] as for [`read_file`](super::read_file), as far as the header goes.
pub fn read_header(path: &Path) -> Result<NpyHeader, StoreError> {
    let (mut file, _) = regular_file::open(path).map_err(StoreError::io("open", path))?;
    let mut start = Vec::new();
    match header(&mut file, &mut start) {
        Ok((header, _)) => Ok(header),
        Err(StreamError::Io(source)) => Err(StoreError::io("read", path)(source)),
        Err(StreamError::Format(source)) => Err(StoreError::corrupt(FORMAT_NAME, path)(source)),
    }
}

/// The array of a stream, which must be as long as its header says. If the length is known, this is
/// checked before memory is allocated; otherwise memory grows only with the received bytes.
pub(crate) fn read_array(
    mut reader: impl Read,
    length: StreamLength,
    wanted: Option<DType>,
) -> Result<Tensor, StreamError> {
    let mut bytes = Vec::new();
    let (header, n_header) = header(&mut reader, &mut bytes)?;
    let (dtype, shape) = (header.dtype, &header.shape);
    let n_data = header.n_data_bytes().ok_or_else(|| {
        FormatError::new(0, "a shape that fits memory", format!("{dtype} {shape}"))
    })?;
    let wrong = |found: String| {
        let expected = format!("{n_data} bytes of {dtype} {shape}");
        StreamError::Format(FormatError::new(n_header as u64, expected, found))
    };
    let n_bytes = (n_data as u64).saturating_add(n_header as u64);
    if length.n_bytes != n_bytes {
        let found = length.n_bytes.saturating_sub(n_header as u64);
        return Err(wrong(found.to_string()));
    }
    // The header and the list of an archive may both claim a wrong size; the packed size bounds
    // both.
    if length.n_bytes_max < n_bytes {
        let n_max = length.n_bytes_max;
        return Err(wrong(format!("packed data that expand to {n_max} at most")));
    }
    // The system grants more memory than it has and kills the process that uses it.
    check_memory(n_bytes)?;
    let n_more = n_bytes.saturating_sub(bytes.len() as u64);
    // One byte more shows whether the stream ends where it should, and makes the reader verify the
    // checksum.
    reader.take(n_more + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > n_bytes {
        return Err(wrong("more".to_owned()));
    }
    from_bytes_as(bytes, wanted).map_err(StreamError::Format)
}

/// The header at the beginning of a stream, and where the data begin; `bytes` holds what was read
/// for it.
pub(crate) fn header(
    reader: &mut impl Read,
    bytes: &mut Vec<u8>,
) -> Result<(NpyHeader, usize), StreamError> {
    // Callers that need only shapes should not read a MiB of each array for a header of 128 bytes.
    reader.take(START_BYTES).read_to_end(bytes)?;
    match NpyHeader::decode_any(bytes) {
        // Only a header that continues is read again; a shorter stream is damaged.
        Err(_) if bytes.len() as u64 >= START_BYTES => {
            reader
                .take(START_BYTES_MAX - START_BYTES)
                .read_to_end(bytes)?;
            Ok(NpyHeader::decode_any(bytes)?)
        }
        header => Ok(header?),
    }
}

#[cfg(test)]
mod tests {
    use opscope_tensor::Shape;

    use super::*;
    use crate::file_format::npy::encode_header;

    /// A stream that never ends, and counts what is taken of it.
    struct Endless {
        start: Vec<u8>,
        n_read: usize,
    }

    impl Read for Endless {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            let start = self.start.get(self.n_read..).unwrap_or_default();
            let n_start = start.len().min(buffer.len());
            buffer[..n_start].copy_from_slice(&start[..n_start]);
            buffer[n_start..].fill(0);
            self.n_read += buffer.len();
            Ok(buffer.len())
        }
    }

    #[test]
    fn no_more_is_taken_than_is_promised() {
        let check = |start: &[u8], length: StreamLength, n_read_max: usize, part: &str| {
            let mut stream = Endless {
                start: start.to_vec(),
                n_read: 0,
            };
            let error = read_array(&mut stream, length, None).unwrap_err();
            let StreamError::Format(error) = error else {
                panic!("{error:?}");
            };
            assert!(error.to_string().contains(part), "{error}");
            assert!(stream.n_read <= n_read_max, "{} bytes", stream.n_read);
        };
        let known = |n_bytes: u64| StreamLength {
            n_bytes,
            n_bytes_max: n_bytes,
        };
        let header =
            |dims: &[usize]| encode_header(DType::F32, &Shape::new(dims).unwrap()).unwrap();
        let small = header(&[100_000]);
        let n_small = small.len() + 400_000;
        check(
            &small,
            known(n_small as u64),
            n_small + (64 << 10),
            "found more",
        );
        check(
            &small,
            known(1 << 40),
            START_BYTES as usize,
            "expected 400000 bytes",
        );
        let huge = header(&[1 << 40]);
        check(
            &huge,
            known(1000),
            START_BYTES as usize,
            "expected 4398046511104 bytes",
        );
        let lie = StreamLength {
            n_bytes: (4 << 40) + huge.len() as u64,
            n_bytes_max: 1 << 20,
        };
        check(
            &huge,
            lie,
            START_BYTES as usize,
            "expand to 1048576 at most",
        );
        // A header of the maximum length that continues.
        let endless = [b"\x93NUMPY\x02\x00".as_slice(), &u32::MAX.to_le_bytes()].concat();
        check(&endless, known(1 << 40), START_BYTES_MAX as usize, "header");
    }
}
