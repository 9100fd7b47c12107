//! Dumps: when they are written, where, and the callback that replaces the disk.

use std::ffi::c_char;
use std::mem::{align_of, offset_of, size_of};
use std::path::Path;
use std::sync::Arc;

use opscope_acl::{DumpCallback, ExceptionTensor, FilePiece};

use crate::border::process;
use crate::layout::{DumpChunk, ExceptionTensorInfo};
use crate::pointer::{CText, InPointer, OutPointer};
use crate::table::{actions, codes, texts};

/// Maximum number of bytes of a file in one chunk.
const CHUNK_BYTES_MAX: usize = 16 << 20;

codes! {
    aclmdlInitDump() => process().init_dump();
    aclmdlSetDump(path: CText) => process().set_dump(path.path());
    aclmdlFinalizeDump() => process().finalize_dump();

    aclopStartDumpArgs(kinds: u32, path: CText) => process().start_dump_args(kinds, path.path());
    aclopStopDumpArgs(kinds: u32) => process().stop_dump_args(kinds);
}

// ---- The callback

type Callback = extern "C" fn(*const DumpChunk, i32) -> i32;

codes! {
    acldumpRegCallback(callback: Option<Callback>, flag: i32) => {
        let callback = callback.map(|callback| {
            Arc::new(move |chunk: &FilePiece<'_>| pass_on(callback, chunk)) as DumpCallback
        });
        process().register_callback(callback, flag)
    };
}

actions! {
    acldumpUnregCallback() => {
        process().unregister_callback();
        Ok(())
    };
}

/// Passes a piece of a file to C, in as many chunks as necessary. Returns the first nonzero result.
fn pass_on(callback: Callback, piece: &FilePiece<'_>) -> i32 {
    let mut answer = 0;
    let mut rest = piece.bytes;
    loop {
        let (bytes, behind) = rest.split_at(rest.len().min(CHUNK_BYTES_MAX));
        rest = behind;
        let chunk = AlignedChunk::new(piece.file_name, bytes, piece.is_last && rest.is_empty());
        let size = i32::try_from(size_of::<DumpChunk>() + bytes.len()).unwrap_or(i32::MAX);
        let given = callback(chunk.pointer(), size);
        if answer == 0 {
            answer = given;
        }
        if rest.is_empty() {
            return answer;
        }
    }
}

/// A chunk in memory.
struct AlignedChunk {
    /// With space in front to align the chunk for C.
    bytes: Vec<u8>,
    start: usize,
}

impl AlignedChunk {
    fn new(file_name: &str, data: &[u8], is_last: bool) -> AlignedChunk {
        let size = size_of::<DumpChunk>() + data.len();
        let mut bytes = vec![0; size + align_of::<DumpChunk>()];
        let start = bytes.as_ptr().align_offset(align_of::<DumpChunk>());
        let mut put = |offset: usize, part: &[u8]| {
            bytes[start + offset..][..part.len()].copy_from_slice(part);
        };
        let name = file_name.as_bytes();
        let n_bytes = u32::try_from(data.len()).unwrap_or(u32::MAX);
        let is_last = u32::from(is_last);
        put(0, &name[..name.len().min(DumpChunk::NAME_BYTES_MAX)]);
        put(offset_of!(DumpChunk, n_bytes), &n_bytes.to_ne_bytes());
        put(offset_of!(DumpChunk, is_last), &is_last.to_ne_bytes());
        // -1 appends to the previous chunk.
        put(offset_of!(DumpChunk, offset), &(-1_i64).to_ne_bytes());
        put(DumpChunk::DATA, data);
        AlignedChunk { bytes, start }
    }

    fn pointer(&self) -> *const DumpChunk {
        self.bytes[self.start..].as_ptr().cast()
    }
}

// ---- Places

texts! {
    acldumpGetPath(kind: i32)
        => process().dump_path(kind), for 0, as format!("dump_path.{kind}"), or null;
}

codes! {
    acldumpGetExceptionInfoPath(path: OutPointer<c_char>, size: usize) => {
        if path.is_null() {
            return Err(process().null_pointer("acldumpGetExceptionInfoPath", "path"));
        }
        let text = process().exception_info_path(size)?;
        path.set_text(&text, size)
    };
}

// ---- Tensors of operators that fail

codes! {
    acldumpSaveExceptionInfo(
        file_name: CText, user_tag: CText, tensors: InPointer<ExceptionTensorInfo>, n_tensors: usize,
    ) => {
        let file_name = file_name.path().map(Path::to_string_lossy);
        let user_tag = user_tag.name()?;
        let list = if tensors.is_null() {
            None
        } else {
            let list = tensors.list(n_tensors)?;
            Some(list.into_iter().map(tensor).collect::<Vec<_>>())
        };
        process().save_exception_info(file_name.as_deref(), user_tag, list.as_deref())
    };
}

fn tensor(info: ExceptionTensorInfo) -> ExceptionTensor {
    ExceptionTensor {
        kind: info.kind,
        size: info.size,
        format: info.format,
        data_type: info.data_type,
        address: info.address,
        address_kind: info.address_kind,
        placement: info.placement,
        args_offset: info.args_offset,
        shape_num: info.shape_num,
        origin_shape_num: info.origin_shape_num,
        shape: extents(info.shape_num, &info.shape),
        origin_shape: extents(info.origin_shape_num, &info.origin_shape),
    }
}

/// The first `n` dimensions, or as many as the array holds: too large a number is refused when the
/// tensor is checked.
fn extents(n: u32, room: &[u64]) -> Vec<u64> {
    let n = usize::try_from(n).unwrap_or(usize::MAX).min(room.len());
    room[..n].to_vec()
}
