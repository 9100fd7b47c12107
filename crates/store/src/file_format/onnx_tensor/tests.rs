use std::path::Path;

use super::*;
use crate::file_format::protobuf::MessageWriter;

fn golden(name: &str) -> Vec<u8> {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/onnx_tensor");
    std::fs::read(dir.join(name)).unwrap()
}

/// A message with these extents, dtype and further fields.
fn message(dims: &[u64], data_type: u64, fill: impl FnOnce(&mut MessageWriter)) -> Vec<u8> {
    let mut writer = MessageWriter::default();
    writer.packed_u64(1, dims);
    writer.varint(2, data_type);
    fill(&mut writer);
    writer.into_bytes()
}

fn decoded(file: &[u8]) -> Vec<u8> {
    match decode(file).unwrap().elements {
        OnnxElements::InFile(range) => file[range].to_vec(),
        OnnxElements::Decoded(bytes) => bytes,
    }
}

#[test]
fn lists_may_be_packed_or_not() {
    let one = 1_f32.to_le_bytes();
    let cases = [
        message(&[2], 1, |w| w.bytes(4, &[one, one].concat())),
        message(&[2], 1, |w| {
            [1.0, 1.0].iter().for_each(|&value| w.float(4, value));
        }),
        message(&[], 1, |w| {
            w.varint_always(1, 2);
            w.bytes(4, &one);
            w.bytes(4, &one);
        }),
    ];
    for file in cases {
        assert!(is_tensor(&file));
        assert_eq!(decoded(&file), [one, one].concat(), "{file:x?}");
    }
}

fn check_refused(cases: &[(Vec<u8>, &str)]) {
    for (file, part) in cases {
        let error = decode(file).unwrap_err().to_string();
        assert!(error.contains(part), "{part}: {error}");
    }
}

#[test]
fn wrong_elements_say_why() {
    let cases = [
        (
            golden("external.pb"),
            "elements in another file, `weights.bin`",
        ),
        (
            message(&[2], 1, |w| w.bytes(9, &[0; 7])),
            "expected 8 bytes of float32 [2]",
        ),
        (
            message(&[2], 1, |w| w.bytes(4, &[0; 4])),
            "expected 8 bytes of float32, found 4",
        ),
        (message(&[1], 1, |w| w.bytes(4, &[0; 8])), "found more"),
        (
            message(&[1], 6, |w| w.bytes(4, &[0; 4])),
            "int32 in field 5",
        ),
        (message(&[1], 6, |_| {}), "found field 0"),
        (
            message(&[1], 3, |w| w.varint(5, 128)),
            "an element of int8, found 128",
        ),
        (
            message(&[1], 2, |w| w.varint(5, u64::MAX)),
            "an element of uint8, found -1",
        ),
        (message(&[1], 9, |w| w.varint(5, 2)), "an element of bool"),
        (
            message(&[1], 10, |w| w.varint(5, 1 << 16)),
            "an element of float16",
        ),
        (
            message(&[1], 12, |w| w.varint(11, 1 << 32)),
            "an element of uint32",
        ),
        (message(&[u64::MAX], 1, |_| {}), "a shape that fits memory"),
        (
            message(&[1 << 40, 1 << 40], 1, |_| {}),
            "a shape that fits memory",
        ),
        (
            message(&[1 << 40], 7, |w| w.varint(7, 1)),
            "8796093022208 bytes of int64",
        ),
    ];
    check_refused(&cases);
}

#[test]
fn wrong_fields_say_why() {
    let cases = [
        (message(&[2], 8, |w| w.string(6, "a")), "found 1 of 2"),
        (message(&[2], 8, |w| w.bytes(9, b"ab")), "texts one by one"),
        (
            message(&[1], 2, |w| [5, 9].iter().for_each(|&n| w.bytes(n, &[1]))),
            "raw bytes and field 5",
        ),
        (
            message(&[1], 2, |w| w.message(3, |_| {})),
            "a part of a tensor",
        ),
        (
            message(&[1], 2, |w| [4, 5].iter().for_each(|&n| w.bytes(n, &[]))),
            "fields 4 and 5",
        ),
        (
            message(&[1], 2, |w| [9, 9].iter().for_each(|&n| w.bytes(n, &[1]))),
            "9 twice",
        ),
        (message(&[1], 2, |w| w.varint(15, 1)), "field 15"),
        (message(&[1], 27, |_| {}), "a dtype that is known"),
        (message(&[1; 65], 2, |_| {}), "at most 64 axes"),
        (message(&[1], 2, |w| w.bytes(8, &[0xff])), "text in UTF-8"),
    ];
    check_refused(&cases);
}

/// Files of other formats that end in `.pb` as well: they begin with fields of another form, or
/// with a length.
#[test]
fn other_files_are_not_taken() {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
    let mut others = vec![Vec::new(), vec![0; 16], b"\x93NUMPY".to_vec()];
    for name in [
        "polygraphy/model.onnx",
        "Opdebug.Node_OpDebug.57.563.1634155934600000",
    ] {
        others.push(std::fs::read(dir.join(name)).unwrap());
    }
    // A sequence of ONNX's: its name, the kind of elements, and a tensor.
    let mut sequence = MessageWriter::default();
    sequence.string(1, "s");
    sequence.varint(2, 1);
    sequence.bytes(3, &golden("raw_float32.pb"));
    assert!(decode(&sequence.into_bytes()).is_err());
    for other in others {
        assert!(!is_tensor(&other), "{}", other.escape_ascii());
    }
    assert!(is_file("x.tensorproto", b"") && !is_file("x.pb", b"") && !is_file("x", b""));
    assert!(is_file("x.pb", &golden("raw_int4.pb")) && !is_file("x.npy", &golden("raw_int4.pb")));
}

#[test]
fn ranks_are_behind_names() {
    let cases = [
        ("_fc_MatMul_output_0_rank_1", "/fc/MatMul_output_0", Some(1)),
        ("gr____e_rank_12", "größe", Some(12)),
        ("a_default_rank_0", "a", None),
        ("a_rank_1", "a_rank_1", None),
        ("a_rank_1_rank_0", "a_rank_1", Some(0)),
        ("a_rank_+1", "a", None),
        ("b_rank_1", "a", None),
        ("input_0", "x", None),
    ];
    for (stem, name, expected) in cases {
        assert_eq!(rank_in_stem(stem, name), expected, "{stem}");
    }
}

#[test]
fn damage_is_an_error_and_no_panic() {
    for name in [
        "raw_float32.pb",
        "typed_int16.pb",
        "typed_complex128.pb",
        "text.pb",
        "external.pb",
    ] {
        let file = golden(name);
        for at in 0..file.len() {
            for flip in [0x01, 0x08, 0x80, 0xff] {
                let mut damaged = file.clone();
                damaged[at] ^= flip;
                let _ = decode(&damaged);
            }
            // Typed elements come before the name, without which the message is whole too.
            let is_whole = decode(&file[..at]).is_ok_and(|found| found.name.is_empty());
            assert!(!is_whole || !name.starts_with("raw"), "{name}: {at} bytes");
        }
    }
}
