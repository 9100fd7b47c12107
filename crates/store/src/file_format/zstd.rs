//! Zstandard frames: bytes of any kind, compressed.
//!
//! Written: one frame with the size of its content and a checksum. Read: any number of frames, with
//! or without either, and skippable frames between them; no dictionaries. Source: RFC 8878.

use std::io::{self, Write};

use zstd_safe::zstd_sys::ZSTD_EndDirective;
use zstd_safe::{CCtx, CParameter, DCtx, ErrorCode, InBuffer, OutBuffer};

use crate::FormatError;

/// How a frame begins.
pub const MAGIC: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];
/// Bytes of a frame that are read at a time, so that an error has an offset.
const CHUNK_BYTES: usize = 128 << 10;
/// Maximum expansion of one byte of a frame: a block decodes to 128 KiB at most and takes 4 bytes
/// at least.
const EXPANSION_MAX: u64 = (128 << 10) / 4;

/// How hard to compress.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CompressionLevel(u8);

impl CompressionLevel {
    /// The fastest.
    pub const MIN: u8 = 1;
    /// The strongest that needs little memory for reading.
    pub const MAX: u8 = 19;

    /// A level from [`CompressionLevel::MIN`] to [`CompressionLevel::MAX`].
    pub fn new(level: u8) -> Option<CompressionLevel> {
        (CompressionLevel::MIN..=CompressionLevel::MAX)
            .contains(&level)
            .then_some(CompressionLevel(level))
    }

    /// The number.
    pub fn get(self) -> u8 {
        self.0
    }
}

impl Default for CompressionLevel {
    fn default() -> CompressionLevel {
        CompressionLevel(CompressionLevel::MIN)
    }
}

/// Writes `parts`, one after the other, as one frame, and returns its size. No more than a window
/// and a piece of the result is in memory.
///
/// # Errors
/// Any error of `out`, or too little memory.
pub fn write(out: &mut impl Write, parts: &[&[u8]], level: CompressionLevel) -> io::Result<u64> {
    let mut context = CCtx::try_create().ok_or(io::ErrorKind::OutOfMemory)?;
    let n_content: u64 = parts.iter().map(|part| part.len() as u64).sum();
    for parameter in [
        CParameter::CompressionLevel(level.0.into()),
        CParameter::ChecksumFlag(true),
    ] {
        context.set_parameter(parameter).map_err(io_error)?;
    }
    // This puts the size into the frame, where readers check it before they take memory.
    context
        .set_pledged_src_size(Some(n_content))
        .map_err(io_error)?;
    let mut buffer = Vec::with_capacity(CCtx::out_size());
    let mut n_bytes = 0;
    for part in parts {
        let mut input = InBuffer::around(part);
        while input.pos() < part.len() {
            let directive = ZSTD_EndDirective::ZSTD_e_continue;
            let mut output = OutBuffer::around(&mut buffer);
            let result = context.compress_stream2(&mut output, &mut input, directive);
            result.map_err(io_error)?;
            out.write_all(output.as_slice())?;
            n_bytes += output.as_slice().len() as u64;
        }
    }
    // More may be left inside the compressor than the buffer holds, so this can take several turns.
    loop {
        let directive = ZSTD_EndDirective::ZSTD_e_end;
        let mut output = OutBuffer::around(&mut buffer);
        let result = context.compress_stream2(&mut output, &mut InBuffer::around(&[]), directive);
        let n_left = result.map_err(io_error)?;
        out.write_all(output.as_slice())?;
        n_bytes += output.as_slice().len() as u64;
        if n_left == 0 {
            return Ok(n_bytes);
        }
    }
}

/// Decompresses frames piece by piece, so that what comes first can say how much there is to come.
pub struct Decoder<'a> {
    context: DCtx<'static>,
    bytes: &'a [u8],
    /// How many of the bytes have been read.
    pos: usize,
    content: Vec<u8>,
    is_between_frames: bool,
}

impl Decoder<'_> {
    /// A decoder of all frames in `bytes`. Frames that ask for a window of more than 128 MiB, the
    /// limit of libzstd, are refused later.
    ///
    /// # Errors
    /// [`FormatError`] if there is too little memory.
    pub fn new(bytes: &[u8]) -> Result<Decoder<'_>, FormatError> {
        let context = DCtx::try_create();
        let context = context.ok_or_else(|| FormatError::new(0, "memory for a decoder", "none"))?;
        Ok(Decoder {
            context,
            bytes,
            pos: 0,
            content: Vec::new(),
            // An empty file is an error, too, because it holds no frame.
            is_between_frames: false,
        })
    }

    /// At least the first `n` bytes of the content, or all of it if there are fewer. The rest is
    /// not read.
    ///
    /// # Errors
    /// [`FormatError`] if the frames are damaged or cut off before that, or there is no memory.
    pub fn start(&mut self, n: usize) -> Result<&[u8], FormatError> {
        self.fill(n)?;
        if self.content.len() < n {
            self.check_end()?;
        }
        Ok(&self.content)
    }

    /// The whole content, which must be `n` bytes. That is checked against what the first frame
    /// says and what its bytes can hold before memory is set aside; checksums are verified.
    ///
    /// # Errors
    /// [`FormatError`] if the frames are damaged or cut off, or the content has another size.
    pub fn finish(mut self, n: usize) -> Result<Vec<u8>, FormatError> {
        let expected = || format!("frames with {n} bytes");
        let declared = zstd_safe::get_frame_content_size(self.bytes).ok().flatten();
        // This is the size of the first frame alone, so a smaller one is not an error yet.
        if let Some(declared) = declared.filter(|&declared| declared > n as u64) {
            return Err(FormatError::new(0, expected(), declared.to_string()));
        }
        let n_bytes = self.bytes.len();
        let n_max = (n_bytes as u64).saturating_mul(EXPANSION_MAX);
        if n as u64 > n_max {
            let found = format!("{n_bytes} bytes, which expand to {n_max} at most");
            return Err(FormatError::new(0, expected(), found));
        }
        // With one byte more than is wanted the decoder never waits for room.
        self.fill(n.saturating_add(1))?;
        let offset = self.pos as u64;
        if self.content.len() > n {
            return Err(FormatError::new(offset, expected(), "more"));
        }
        self.check_end()?;
        if self.content.len() < n {
            let found = self.content.len().to_string();
            return Err(FormatError::new(offset, expected(), found));
        }
        Ok(self.content)
    }

    /// Decodes until there are `n` bytes of content, or to the end.
    fn fill(&mut self, n: usize) -> Result<(), FormatError> {
        let n_more = n.saturating_sub(self.content.len());
        // The size comes from a file, so a lack of memory must be an error and not an abort.
        if self.content.try_reserve_exact(n_more).is_err() {
            let found = format!("a size of {n}");
            return Err(FormatError::new(0, "a size that fits memory", found));
        }
        while self.pos < self.bytes.len() && self.content.len() < n {
            let end = self.bytes.len().min(self.pos + CHUNK_BYTES);
            let mut input = InBuffer::around(&self.bytes[self.pos..end]);
            let n_before = self.content.len();
            let mut output = OutBuffer::around_pos(&mut self.content, n_before);
            let result = self.context.decompress_stream(&mut output, &mut input);
            let n_left = result.map_err(|code| {
                let found = zstd_safe::get_error_name(code);
                FormatError::new(self.pos as u64, "zstd frames", found)
            })?;
            self.pos += input.pos();
            // libzstd returns 0 only where a frame has ended and all of its content is out.
            self.is_between_frames = n_left == 0;
        }
        Ok(())
    }

    /// Whether all frames that were begun have ended.
    fn check_end(&self) -> Result<(), FormatError> {
        if self.is_between_frames {
            return Ok(());
        }
        let offset = self.pos as u64;
        let expected = "the end of a zstd frame";
        Err(FormatError::new(offset, expected, "the end of the file"))
    }
}

fn io_error(code: ErrorCode) -> io::Error {
    io::Error::other(zstd_safe::get_error_name(code))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Output of the `zstd` command (1.5.4) for `hello hello hello\n` from a pipe: no content size.
    const PIPED: &[u8] = &[
        0x28, 0xb5, 0x2f, 0xfd, 0x04, 0x58, 0x6d, 0x00, 0x00, 0x38, 0x68, 0x65, 0x6c, 0x6c, 0x6f,
        0x20, 0x0a, 0x01, 0x00, 0x31, 0x4a, 0x11, 0xa3, 0xaa, 0x74, 0xce,
    ];

    fn frame(content: &[u8], level: u8) -> Vec<u8> {
        let mut bytes = Vec::new();
        let n = write(
            &mut bytes,
            &[content],
            CompressionLevel::new(level).unwrap(),
        )
        .unwrap();
        assert_eq!(n, bytes.len() as u64);
        bytes
    }

    fn decode_exactly(bytes: &[u8], n: usize) -> Result<Vec<u8>, FormatError> {
        Decoder::new(bytes)?.finish(n)
    }

    fn skippable(n: u32) -> Vec<u8> {
        let mut bytes = vec![0x53, 0x2a, 0x4d, 0x18];
        bytes.extend(n.to_le_bytes());
        bytes.extend(vec![7; n as usize]);
        bytes
    }

    #[test]
    fn content_comes_back_at_every_level() {
        let content: Vec<u8> = (0..300_000_u32)
            .map(|i| (i.wrapping_mul(i) >> 7) as u8)
            .collect();
        for n in [0, 1, 1000, content.len()] {
            for level in CompressionLevel::MIN..=CompressionLevel::MAX {
                let bytes = frame(&content[..n], level);
                assert!(bytes.starts_with(&MAGIC));
                assert_eq!(
                    zstd_safe::get_frame_content_size(&bytes).unwrap(),
                    Some(n as u64)
                );
                assert!(decode_exactly(&bytes, n).unwrap() == content[..n]);
                let mut decoder = Decoder::new(&bytes).unwrap();
                let start = decoder.start(100).unwrap();
                assert!(start.len() >= n.min(100) && content.starts_with(start));
                assert!(decoder.start(5000).unwrap().len() >= n.min(5000));
                assert!(decoder.finish(n).unwrap() == content[..n]);
            }
        }
        assert_eq!(
            (CompressionLevel::new(0), CompressionLevel::new(20)),
            (None, None)
        );
    }

    #[test]
    fn parts_make_one_frame() {
        let mut bytes = Vec::new();
        let parts: [&[u8]; 3] = [b"one", b"", b"two"];
        write(&mut bytes, &parts, CompressionLevel::default()).unwrap();
        assert_eq!(bytes, frame(b"onetwo", CompressionLevel::MIN));
    }

    #[test]
    fn frames_follow_each_other() {
        let (one, two) = (frame(b"one", 1), frame(b"two", 19));
        let skip = skippable(5);
        for bytes in [
            [&one[..], &two].concat(),
            [&skip[..], &one, &skip, &two, &skip].concat(),
        ] {
            assert_eq!(decode_exactly(&bytes, 6).unwrap(), b"onetwo");
        }
    }

    #[test]
    fn frames_of_other_writers_are_read() {
        assert_eq!(decode_exactly(PIPED, 18).unwrap(), b"hello hello hello\n");
        for n in [17, 19] {
            assert!(decode_exactly(PIPED, n).is_err(), "{n}");
        }
    }

    #[test]
    fn other_sizes_and_cut_frames_are_refused() {
        let bytes = frame(b"content", 1);
        for (bytes, n, part) in [
            (&bytes[..], 6, "expected frames with 6 bytes, found 7"),
            (&bytes, 8, "expected frames with 8 bytes, found 7"),
            (&bytes[..bytes.len() - 1], 7, "found the end of the file"),
            (&[], 0, "found the end of the file"),
            (&bytes, usize::MAX, "expand to"),
            (&skippable(3), 1, "expected frames with 1 bytes, found 0"),
            (
                &[&bytes[..], b"x"].concat(),
                7,
                "byte 20: expected zstd frames",
            ),
            (
                &[&bytes[..], b"junk"].concat(),
                7,
                "byte 20: expected zstd frames",
            ),
            (b"no frame", 7, "byte 0: expected zstd frames"),
        ] {
            let error = decode_exactly(bytes, n).unwrap_err().to_string();
            assert!(error.contains(part), "{error}");
        }
        let mut cut = Decoder::new(&bytes[..bytes.len() - 1]).unwrap();
        let error = cut.start(8).unwrap_err();
        assert!(error.to_string().contains("the end of the file"), "{error}");
    }

    #[test]
    fn a_changed_byte_is_noticed() {
        let content = b"the checksum covers all of this all of this";
        let bytes = frame(content, 1);
        for i in 0..bytes.len() {
            for bit in 0..8 {
                let mut bytes = bytes.clone();
                bytes[i] ^= 1 << bit;
                // A few bits of the frame's header say nothing of its content.
                let is_other = decode_exactly(&bytes, content.len()).is_ok_and(|c| c != content);
                assert!(!is_other, "byte {i}, bit {bit}");
            }
        }
    }
}
