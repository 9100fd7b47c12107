use std::io::Write;

use opscope_tensor::Shape;
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipWriter};

use super::*;

fn array(n: usize) -> Vec<u8> {
    let mut array = npy::encode_header(DType::U8, &Shape::new([n]).unwrap()).unwrap();
    array.resize(array.len() + n, 7);
    array
}

fn archive(members: &[(&str, &[u8])], method: CompressionMethod) -> Vec<u8> {
    let mut archive = ZipWriter::new(Cursor::new(Vec::new()));
    let options = SimpleFileOptions::default().compression_method(method);
    for (name, content) in members {
        archive.start_file(*name, options).unwrap();
        archive.write_all(content).unwrap();
    }
    archive.finish().unwrap().into_inner()
}

/// Where the records of a kind begin.
fn records(bytes: &[u8], magic: &[u8]) -> Vec<usize> {
    let windows = bytes.windows(magic.len()).enumerate();
    windows
        .filter(|(_, w)| *w == magic)
        .map(|(i, _)| i)
        .collect()
}

fn put(bytes: &mut [u8], at: usize, number: u32) {
    bytes[at..at + 4].copy_from_slice(&number.to_le_bytes());
}

#[test]
fn arrays_come_under_their_names() {
    let content = array(2);
    let members: Vec<(&str, &[u8])> = ["b.npy", "a/b.npy", "plain"]
        .iter()
        .map(|name| (*name, &content[..]))
        .collect();
    let bytes = archive(&members, CompressionMethod::Deflated);
    let arrays = from_bytes(&bytes).unwrap();
    let names: Vec<_> = arrays.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["b", "a/b", "plain"]);
    assert_eq!(arrays[1].1.host_bytes().unwrap(), [7, 7]);
    for n in 0..bytes.len() {
        assert!(from_bytes(&bytes[..n]).is_err(), "{n}");
    }
}

#[test]
fn only_what_is_asked_for_is_read() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("x.npz");
    let content = array(3);
    let bytes = archive(
        &[("a.npy", &content), ("b.npy", b"junk")],
        CompressionMethod::Stored,
    );
    std::fs::write(&path, bytes).unwrap();
    let mut archive = Archive::open(&path).unwrap();
    assert_eq!(archive.names(), ["a", "b"]);
    assert_eq!(archive.header("a").unwrap().shape.dims(), [3]);
    assert_eq!(
        archive.read("a", None).unwrap().host_bytes().unwrap(),
        [7, 7, 7]
    );
    for (name, part) in [
        ("b", "npy magic"),
        ("c", "expected an array `c`, found `a`, `b`"),
    ] {
        let error = archive.read(name, None).unwrap_err();
        let error = std::error::Error::source(&error).unwrap().to_string();
        assert!(error.contains(part), "{error}");
    }
}

/// More than the header promises, less, and what no bytes can represent; what the list says may be
/// a lie.
#[test]
fn no_more_is_unpacked_than_a_header_promises() {
    let long = [&array(2)[..], &vec![0; 64 << 20]].concat();
    let huge = npy::encode_header(DType::F64, &Shape::new([1 << 40]).unwrap()).unwrap();
    let n_huge = huge.len() as u64 + (8 << 40);
    let deflated = CompressionMethod::Deflated;
    let central = |bytes: &[u8]| records(bytes, b"PK\x01\x02")[0];
    let mut lying = archive(&[("a.npy", &array(2))], deflated);
    let at = central(&lying);
    put(&mut lying, at + 24, u32::MAX - 1);
    let mut longer = archive(&[("a.npy", &long)], deflated);
    let at = central(&longer);
    put(&mut longer, at + 24, array(2).len() as u32);
    let cases: [(Vec<u8>, &str); 5] = [
        (
            archive(&[("a.npy", &long)], deflated),
            "expected 2 bytes of uint8",
        ),
        (
            archive(&[("a.npy", &huge)], deflated),
            "expected 8796093022208 bytes",
        ),
        (lying, "expected 2 bytes of uint8"),
        (longer, "larger than its declared"),
        (archive(&[("a.npy", &array(2)[..100])], deflated), "header"),
    ];
    for (bytes, part) in cases {
        let error = from_bytes(&bytes).unwrap_err().to_string();
        assert!(
            error.contains(part) && error.contains("array `a`"),
            "{error}"
        );
    }
    let length = StreamLength {
        n_bytes: n_huge,
        n_bytes_max: 1 << 20,
    };
    let error = npy::read_array(&huge[..], length, None).unwrap_err();
    let StreamError::Format(error) = error else {
        panic!("{error:?}");
    };
    assert!(
        error.to_string().contains("expand to 1048576 at most"),
        "{error}"
    );
}

#[test]
fn names_and_bytes_belong_to_one_array() {
    let content = array(2);
    let stored = CompressionMethod::Stored;
    // Two names that differ by the suffix only, and two that are equal.
    let bytes = archive(&[("a.npy", &content), ("a", &content)], stored);
    let error = from_bytes(&bytes).err().unwrap().to_string();
    assert!(error.contains("two arrays of one name"), "{error}");
    let mut bytes = archive(&[("a.npy", &content), ("b.npy", &content)], stored);
    let renamed: Vec<usize> = records(&bytes, b"b.npy");
    for at in renamed {
        bytes[at] = b'a';
    }
    let error = from_bytes(&bytes).err().unwrap().to_string();
    assert!(error.contains("two arrays of one name"), "{error}");
    // The second entry of the list points at the first array.
    let mut bytes = archive(&[("a.npy", &content), ("b.npy", &content)], stored);
    let second = records(&bytes, b"PK\x01\x02")[1];
    put(&mut bytes, second + 42, 0);
    let error = from_bytes(&bytes).err().unwrap().to_string();
    assert!(error.contains("arrays that share bytes"), "{error}");
}
