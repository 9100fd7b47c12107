use opscope_tensor::{DType, Shape};

use super::*;
use crate::file_format::npy::{descr, encode_header};

const DTYPES: [DType; 14] = [
    DType::Bool,
    DType::I8,
    DType::U8,
    DType::I16,
    DType::U16,
    DType::I32,
    DType::U32,
    DType::I64,
    DType::U64,
    DType::F16,
    DType::F32,
    DType::F64,
    DType::C64,
    DType::C128,
];

fn header(dtype: DType, dims: &[usize]) -> Vec<u8> {
    encode_header(dtype, &Shape::new(dims).unwrap()).unwrap()
}

fn array(dtype: DType, dims: &[usize]) -> Vec<u8> {
    let n = Shape::new(dims).unwrap().n_bytes(dtype).unwrap();
    let data = (0..n).map(|i| (i % 2) as u8);
    header(dtype, dims).into_iter().chain(data).collect()
}

fn compressed(parts: &[&[u8]]) -> Vec<u8> {
    let mut bytes = Vec::new();
    zstd::write(&mut bytes, parts, zstd::CompressionLevel::default()).unwrap();
    bytes
}

/// A frame without the size of its content.
fn of_unknown_size(content: &[u8]) -> Vec<u8> {
    let mut context = zstd_safe::CCtx::create();
    let flag = zstd_safe::CParameter::ContentSizeFlag(false);
    context.set_parameter(flag).unwrap();
    let mut bytes = Vec::with_capacity(zstd_safe::compress_bound(content.len()));
    context.compress2(&mut bytes, content).unwrap();
    assert_eq!(zstd_safe::get_frame_content_size(&bytes).unwrap(), None);
    bytes
}

fn check_refused(bytes: &[u8], part: &str) {
    let error = decode(bytes).unwrap_err().to_string();
    assert!(error.contains(part), "{error}");
}

#[test]
fn arrays_of_every_dtype_come_back() {
    let dir = tempfile::tempdir().unwrap();
    assert!(DTYPES.iter().all(|dtype| descr(*dtype).is_some()));
    for (i, dtype) in DTYPES.into_iter().enumerate() {
        for dims in [&[][..], &[0], &[3, 0, 2], &[1], &[7, 5], &[40, 30, 20]] {
            let plain = array(dtype, dims);
            for bytes in [compressed(&[&plain]), of_unknown_size(&plain)] {
                assert!(decode(&bytes).unwrap() == plain, "{dtype} {dims:?}");
                let path = dir.path().join(format!("{i}.npy.zst"));
                std::fs::write(&path, &bytes).unwrap();
                let tensor = read_file(&path).unwrap();
                assert_eq!((tensor.dtype(), tensor.shape().dims()), (dtype, dims));
                assert!(plain.ends_with(tensor.host_bytes().unwrap()));
            }
        }
    }
}

#[test]
fn plain_files_are_read_too_and_content_counts_more_than_names() {
    let dir = tempfile::tempdir().unwrap();
    let plain = array(DType::F32, &[2]);
    let read = |name: &str, bytes: &[u8]| {
        let path = dir.path().join(name);
        std::fs::write(&path, bytes).unwrap();
        read_file(&path)
    };
    assert!(read("a.npy", &plain).is_ok());
    assert!(read("b.npy", &compressed(&[&plain])).is_ok());
    let error = read("c.npy.zst", &plain).unwrap_err();
    assert!(error.to_string().contains("valid npy.zst"), "{error}");
}

#[test]
fn names_are_split() {
    for (name, expected) in [
        ("a.npy", Some(("a", false))),
        ("a.b.npy.zst", Some(("a.b", true))),
        (".npy.zst", Some(("", true))),
        ("a.zst", None),
        ("a.npz", None),
        ("npy", None),
    ] {
        assert_eq!(split_name(name), expected);
    }
}

#[test]
fn long_headers_are_found() {
    let text = format!(
        "{{'descr': '|u1', 'fortran_order': False, {}'shape': (2,), }}",
        " ".repeat(100_000)
    );
    let length = (text.len() as u32).to_le_bytes();
    let plain = [b"\x93NUMPY\x02\x00", &length[..], text.as_bytes(), &[1, 2]].concat();
    assert!(decode(&compressed(&[&plain])).unwrap() == plain);
}

#[test]
fn damage_is_noticed_wherever_it_is() {
    let plain = array(DType::I16, &[3, 5]);
    for bytes in [
        compressed(&[&plain]),
        compressed(&[b"", &plain[..60], &plain[60..]]),
    ] {
        for n in 0..bytes.len() {
            assert!(decode(&bytes[..n]).is_err(), "{n}");
            for change in 1..=255 {
                let mut bytes = bytes.clone();
                bytes[n] ^= change;
                let is_other = decode(&bytes).is_ok_and(|content| content != plain);
                assert!(!is_other, "byte {n}, {change:#x}");
            }
        }
    }
}

#[test]
fn more_or_less_than_the_header_asks_for_is_refused() {
    let plain = array(DType::U8, &[100]);
    let short = &plain[..plain.len() - 1];
    let long = [&plain[..], &[0]].concat();
    let expected = "frames with 228 bytes for an array of uint8 [100]";
    for make in [|content: &[u8]| compressed(&[content]), of_unknown_size] {
        for content in [short, &long] {
            check_refused(&make(content), expected);
        }
    }
    check_refused(
        &compressed(&[b"\x93NUMPY\x01\x00"]),
        "the decompressed file",
    );
    check_refused(&compressed(&[b"no array"]), "expected the npy magic");
}

#[test]
fn bombs_are_refused() {
    // A small array, and then a quarter of a GiB.
    let zeros = vec![0; 1 << 20];
    let mut parts = vec![&zeros[..]; 256];
    let start = header(DType::U8, &[3]);
    parts.insert(0, &start);
    let bytes = compressed(&parts);
    assert!(bytes.len() < 100_000);
    check_refused(&bytes, "byte 0: expected frames with 131 bytes");
    // The same without a size to tell by.
    check_refused(&of_unknown_size(&parts.concat()), "found more");
    // Extents that so few bytes cannot hold.
    let large = header(DType::F64, &[1 << 30]);
    check_refused(&compressed(&[&large, &zeros]), "expand to");
    // Extents that are too large whatever follows.
    let huge = header(DType::F64, &[3 << 30]);
    check_refused(&compressed(&[&huge, &zeros]), "`zstd -d`");
}
