//! The file that `torch.save` writes for one tensor: a zip archive with a pickle and the bytes.
//!
//! Members, all stored without compression: `archive/data.pkl`, `archive/byteorder`,
//! `archive/data/0` (the elements, at a multiple of 64 bytes) and `archive/version`. The pickle
//! says how to rebuild the tensor; it names nothing that `torch.load(…, weights_only=True)`
//! refuses. Source: PyTorch's serialization notes and `torch/serialization.py`.

use std::io::{self, Seek, Write};

use opscope_tensor::DType;
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipWriter};

/// Where the elements begin is a multiple of this, so that they can be mapped.
const ALIGN: u16 = 64;

/// How a dtype's elements are stored.
enum TorchStorage {
    /// A storage class of that name in module `torch`.
    Typed(&'static str),
    /// Plain bytes; the tensor names the dtype.
    Untyped(&'static str),
}

/// Writes one dense tensor in row-major order.
///
/// # Errors
/// Any that the operating system reports, or [`io::ErrorKind::Unsupported`] for a dtype that torch
/// does not have under the same name.
pub fn write(
    out: impl Write + Seek,
    dtype: DType,
    shape: &[usize],
    bytes: &[u8],
) -> io::Result<()> {
    let storage = storage(dtype).ok_or(io::ErrorKind::Unsupported)?;
    let options = SimpleFileOptions::default()
        .compression_method(CompressionMethod::Stored)
        .with_alignment(ALIGN)
        // Beyond 4 GiB a member needs zip64, which its header has to say before the bytes come.
        .large_file(bytes.len() > u32::MAX as usize);
    let mut archive = ZipWriter::new(out);
    let members: [(&str, &[u8]); 4] = [
        ("archive/data.pkl", &pickle(&storage, shape, bytes.len())),
        ("archive/byteorder", b"little"),
        ("archive/data/0", bytes),
        ("archive/version", b"3\n"),
    ];
    for (name, content) in members {
        archive.start_file(name, options)?;
        archive.write_all(content)?;
    }
    archive.finish()?;
    Ok(())
}

fn storage(dtype: DType) -> Option<TorchStorage> {
    use DType::*;
    Some(match dtype {
        F16 => TorchStorage::Typed("HalfStorage"),
        F32 => TorchStorage::Typed("FloatStorage"),
        F64 => TorchStorage::Typed("DoubleStorage"),
        BF16 => TorchStorage::Typed("BFloat16Storage"),
        U8 => TorchStorage::Typed("ByteStorage"),
        I8 => TorchStorage::Typed("CharStorage"),
        I16 => TorchStorage::Typed("ShortStorage"),
        I32 => TorchStorage::Typed("IntStorage"),
        I64 => TorchStorage::Typed("LongStorage"),
        Bool => TorchStorage::Typed("BoolStorage"),
        C64 => TorchStorage::Typed("ComplexFloatStorage"),
        C128 => TorchStorage::Typed("ComplexDoubleStorage"),
        // torch has no storage classes for these three.
        U16 => TorchStorage::Untyped("uint16"),
        U32 => TorchStorage::Untyped("uint32"),
        U64 => TorchStorage::Untyped("uint64"),
        Undefined | String | DualSubI8 | DualSubU8 | QI8 | QI16 | QI32 | QU8 | QU16 | Resource
        | StringRef | Dual | Variant | I4 | U1 | I2 | U2 | C32 | HiF8 | F8E5M2 | F8E4M3FN
        | F8E8M0 | F6E3M2 | F6E2M3 | F4E2M1 | F4E1M2 | HiF4 | HiF4Scale | U4 | F8E4M3FNUZ
        | F8E5M2FNUZ => return None,
    })
}

/// Protocol 2, which every Python 3 reads.
fn pickle(storage: &TorchStorage, shape: &[usize], n_bytes: usize) -> Vec<u8> {
    let n_elements = shape.iter().product::<usize>();
    let mut p = PickleWriter(vec![0x80, 2]);
    let (rebuild, class, n) = match storage {
        TorchStorage::Typed(class) => ("_rebuild_tensor_v2", ("torch", *class), n_elements),
        TorchStorage::Untyped(_) => (
            "_rebuild_tensor_v3",
            ("torch.storage", "UntypedStorage"),
            n_bytes,
        ),
    };
    p.global("torch._utils", rebuild);
    p.mark();
    p.mark();
    p.text("storage");
    p.global(class.0, class.1);
    p.text("0");
    p.text("cpu");
    p.integer(n);
    p.tuple();
    // The tuple is a persistent id, which torch resolves to the bytes of `archive/data/0`.
    p.0.push(b'Q');
    p.integer(0);
    p.integers(shape);
    p.integers(&strides(shape));
    // `False`: the tensor needs no gradient.
    p.0.push(0x89);
    // torch expects the tensor's backward hooks here; there are none.
    p.global("collections", "OrderedDict");
    p.0.extend_from_slice(b")R");
    if let TorchStorage::Untyped(dtype) = storage {
        p.global("torch", dtype);
    }
    p.tuple();
    p.0.extend_from_slice(b"R.");
    p.0
}

fn strides(shape: &[usize]) -> Vec<usize> {
    let mut strides = vec![1_usize; shape.len()];
    for axis in (1..shape.len()).rev() {
        // torch counts an empty axis as one element long, so that no stride is 0.
        strides[axis - 1] = strides[axis].saturating_mul(shape[axis].max(1));
    }
    strides
}

struct PickleWriter(Vec<u8>);

impl PickleWriter {
    fn mark(&mut self) {
        self.0.push(b'(');
    }

    fn tuple(&mut self) {
        self.0.push(b't');
    }

    fn global(&mut self, module: &str, name: &str) {
        self.0
            .extend_from_slice(format!("c{module}\n{name}\n").as_bytes());
    }

    fn text(&mut self, text: &str) {
        self.0.push(b'X');
        self.0.extend_from_slice(&(text.len() as u32).to_le_bytes());
        self.0.extend_from_slice(text.as_bytes());
    }

    fn integers(&mut self, values: &[usize]) {
        self.mark();
        values.iter().for_each(|&value| self.integer(value));
        self.tuple();
    }

    fn integer(&mut self, value: usize) {
        match i32::try_from(value) {
            Ok(value) => {
                self.0.push(b'J');
                self.0.extend_from_slice(&value.to_le_bytes());
            }
            // A long of nine bytes, the last one so that it is not negative.
            Err(_) => {
                self.0.extend_from_slice(&[0x8a, 9]);
                self.0.extend_from_slice(&(value as u64).to_le_bytes());
                self.0.push(0);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Cursor, Read};

    use super::*;

    fn archive(dtype: DType, shape: &[usize], bytes: &[u8]) -> Vec<u8> {
        let mut out = Cursor::new(Vec::new());
        write(&mut out, dtype, shape, bytes).unwrap();
        out.into_inner()
    }

    #[test]
    fn elements_are_whole_and_aligned() {
        let bytes = archive(DType::F32, &[2, 3], &[7; 24]);
        let mut zip = zip::ZipArchive::new(Cursor::new(bytes)).unwrap();
        let mut member = zip.by_name("archive/data/0").unwrap();
        assert_eq!(member.data_start().unwrap() % u64::from(ALIGN), 0);
        let mut data = Vec::new();
        member.read_to_end(&mut data).unwrap();
        assert_eq!(data, [7; 24]);
    }

    #[test]
    fn the_pickle_names_shape_and_strides() {
        let pickle = pickle(&TorchStorage::Typed("FloatStorage"), &[2, 3], 24);
        let expected: &[u8] = b"\x80\x02ctorch._utils\n_rebuild_tensor_v2\n((X\x07\0\0\0storage\
            ctorch\nFloatStorage\nX\x01\0\0\x000X\x03\0\0\0cpuJ\x06\0\0\0tQJ\0\0\0\0\
            (J\x02\0\0\0J\x03\0\0\0t(J\x03\0\0\0J\x01\0\0\0t\x89ccollections\nOrderedDict\n)RtR.";
        assert_eq!(pickle, expected);
    }

    #[test]
    fn every_numpy_dtype_has_a_storage() {
        for &dtype in DType::ALL {
            let is_numpy = crate::file_format::npy::descr(dtype).is_some();
            assert!(!is_numpy || storage(dtype).is_some(), "{dtype}");
        }
        let mut out = Cursor::new(Vec::new());
        assert!(write(&mut out, DType::I4, &[1], &[0]).is_err());
    }
}
