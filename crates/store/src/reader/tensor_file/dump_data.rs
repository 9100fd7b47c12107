//! Dump files of the runtime and of the nano runtime.

use std::ops::Range;
use std::path::PathBuf;

use super::{ExtraKind, ExtraPiece, FileFacts, FileKind, StoredTensor, TensorFile};
use crate::FormatError;
use crate::file_format::dump_data::{
    CheckedHead, DumpHeader, LENGTH_BYTES, OriginalOp, PayloadKind, TensorEntry,
};
use crate::file_format::nano::NanoHeader;
use crate::file_parts::FileParts;
use crate::reader::term::DumpTerm;
use crate::record::SlotSide;

/// The kind of on-chip buffer that has a name.
const L1_BUFFER: u32 = 0;
/// The numbers from which an entry's `sub_format` means groups; smaller ones are codes of block
/// sizes.
const GROUPS_MIN: i32 = 2;
/// The bits of a layout's number that identify the layout.
const LAYOUT_MASK: u32 = 0xff;
/// Field of a nano dump's name that holds the operator's name.
const OP_NAME_FIELD: usize = 1;

impl TensorFile {
    /// A dump file of AscendCL.
    pub(super) fn from_dump(head: CheckedHead, parts: FileParts, file_name: &str) -> TensorFile {
        let n_start = LENGTH_BYTES.saturating_add(head.n_header_bytes);
        let (header, pieces) = (head.header, head.pieces);
        let mut tensors = Vec::new();
        let mut extras = Vec::new();
        for piece in pieces {
            let (index, range) = (piece.index, piece.range);
            let (side, entries) = match piece.kind {
                PayloadKind::Input => (SlotSide::Input, &header.inputs),
                PayloadKind::Output => (SlotSide::Output, &header.outputs),
                PayloadKind::Buffer | PayloadKind::Space => {
                    extras.push(extra_piece(&header, piece.kind, index, range));
                    continue;
                }
            };
            let entry = entries.get(index);
            tensors.extend(entry.map(|entry| stored_tensor(side, index, entry, range)));
        }
        TensorFile {
            path: PathBuf::new(),
            kind: FileKind::DumpData,
            file_name: file_name.to_owned(),
            facts: file_facts(header),
            tensors,
            extras,
            n_start,
            n_decompressed: None,
            parts,
            gathered: Vec::new(),
        }
    }

    /// A file of the nano runtime; its name has the operator's, as its header lacks it.
    pub(super) fn from_nano(parts: FileParts, file_name: &str) -> Result<TensorFile, FormatError> {
        let start = parts.length_and_header(parts.n_bytes());
        let start = start.map_err(FormatError::unreadable)?;
        let (header, n_header) = NanoHeader::decode(start.as_ref())?;
        header.check_size(n_header, parts.n_bytes())?;
        let head = header.to_dump_head(n_header);
        let mut file = TensorFile::from_dump(head, parts, file_name);
        let op_name = file_name.split('.').nth(OP_NAME_FIELD).unwrap_or_default();
        file.kind = FileKind::Nano;
        op_name.clone_into(&mut file.facts.op_name);
        Ok(file)
    }
}

fn extra_piece(
    header: &DumpHeader,
    kind: PayloadKind,
    index: usize,
    range: Range<usize>,
) -> ExtraPiece {
    let buffer = header.buffers.get(index);
    let kind = match kind {
        PayloadKind::Space => ExtraKind::Space,
        _ if buffer.is_none_or(|buffer| buffer.buffer_type == L1_BUFFER) => ExtraKind::L1Buffer,
        _ => ExtraKind::Buffer,
    };
    ExtraPiece {
        kind,
        index,
        n_bytes: range.len() as u64,
        range,
    }
}

fn file_facts(header: DumpHeader) -> FileFacts {
    let attributes = header.attrs.into_iter();
    FileFacts {
        version: header.version,
        dump_time: header.dump_time,
        op_name: header.op_name,
        attributes: attributes.map(|attr| (attr.name, attr.value)).collect(),
        message: header.dfx_message,
    }
}

/// The tensor that an entry of the header describes.
fn stored_tensor(
    side: SlotSide,
    index: usize,
    entry: &TensorEntry,
    range: Range<usize>,
) -> StoredTensor {
    let dtype = entry.dtype();
    let layout = entry.layout();
    let original = entry.original_op.as_ref();
    let n_groups = usize::try_from(entry.sub_format).ok();
    StoredTensor {
        side,
        index,
        slot: entry.slot,
        name: None,
        run: None,
        uses: Vec::new(),
        dtype: dtype.map_or(DumpTerm::Number(entry.data_type), DumpTerm::Known),
        layout: layout.map_or(
            DumpTerm::Number(entry.format & LAYOUT_MASK),
            DumpTerm::Known,
        ),
        shape: entry.shape.clone(),
        original_shape: entry.original_shape.clone(),
        original_layout: original.and_then(OriginalOp::layout),
        original: original.map(|op| (op.name.clone(), op.output_index)),
        n_groups: n_groups.filter(|_| entry.sub_format >= GROUPS_MIN),
        n_bytes: range.len() as u64,
        offset: Some(range.start as u64),
        range,
    }
}
