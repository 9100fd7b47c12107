use opscope_tensor::text;
use proptest::prelude::*;

use super::*;

fn file(header: &str, data: &[u8]) -> Vec<u8> {
    let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
    bytes.extend_from_slice(&(header.len() as u16).to_le_bytes());
    bytes.extend_from_slice(header.as_bytes());
    bytes.extend_from_slice(data);
    bytes
}

#[test]
fn what_is_written_comes_back() {
    let cases: &[(DType, &[usize])] = &[
        (DType::F32, &[2, 3]),
        (DType::Bool, &[]),
        (DType::I64, &[0, 4]),
        (DType::C128, &[1]),
    ];
    for (dtype, dims) in cases {
        let shape = Shape::new(*dims).unwrap();
        let data: Vec<u8> = (0..shape.n_bytes(*dtype).unwrap())
            .map(|i| i as u8)
            .collect();
        let mut bytes = encode_header(*dtype, &shape).unwrap();
        bytes.extend_from_slice(&data);
        let tensor = from_bytes(bytes).unwrap();
        assert_eq!(
            (tensor.dtype(), tensor.shape(), tensor.host_bytes().unwrap()),
            (*dtype, &shape, &data[..])
        );
    }
}

#[test]
fn foreign_orders_are_brought_into_ours() {
    let big = file(
        "{'descr': '>u2', 'fortran_order': False, 'shape': (2,), }\n",
        &[0, 1, 2, 3],
    );
    assert_eq!(from_bytes(big).unwrap().host_bytes().unwrap(), [1, 0, 3, 2]);
    let fortran = file(
        "{'descr': '|u1', 'fortran_order': True, 'shape': (2, 3), }\n",
        &[0, 3, 1, 4, 2, 5],
    );
    assert_eq!(
        from_bytes(fortran).unwrap().host_bytes().unwrap(),
        [0, 1, 2, 3, 4, 5]
    );
    let complex = file(
        "{'descr': '>c8', 'fortran_order': False, 'shape': ()}",
        &[0x3f, 0x80, 0, 0, 0x40, 0, 0, 0],
    );
    assert_eq!(
        from_bytes(complex).unwrap().host_bytes().unwrap(),
        [0, 0, 0x80, 0x3f, 0, 0, 0, 0x40]
    );
}

#[test]
fn bytes_must_be_exact() {
    let header = "{'descr': '|u1', 'fortran_order': False, 'shape': (3,), }";
    for n in [0, 2, 4] {
        let error = from_bytes(file(header, &vec![0; n])).unwrap_err();
        assert!(
            error.to_string().contains("expected 3 bytes of uint8 [3]"),
            "{error}"
        );
    }
}

/// Texts of an array, and its shape.
fn texts_of(bytes: Vec<u8>) -> Result<(Vec<Vec<u8>>, Vec<usize>), FormatError> {
    let tensor = from_bytes(bytes)?;
    assert_eq!(tensor.dtype(), DType::String);
    let texts = text::iter(tensor.host_view().unwrap())
        .unwrap()
        .map(<[u8]>::to_vec);
    Ok((texts.collect(), tensor.shape().dims().to_vec()))
}

fn text_file(descr: &str, order: &str, shape: &str, data: &[u8]) -> Vec<u8> {
    let header = format!("{{'descr': '{descr}', 'fortran_order': {order}, 'shape': {shape}}}");
    file(&header, data)
}

fn characters(text: &str) -> Vec<u8> {
    text.chars()
        .flat_map(|c| u32::from(c).to_le_bytes())
        .collect()
}

#[test]
fn text_is_read() {
    let data = characters("a\0bc\0\0😀ä");
    let found = texts_of(text_file("<U2", "False", "(4,)", &data)).unwrap();
    let expected = ["a", "bc", "", "😀ä"].map(|t| t.as_bytes().to_vec());
    assert_eq!(found, (expected.to_vec(), vec![4]));
    let big: Vec<u8> = data
        .chunks(4)
        .flat_map(|c| c.iter().rev().copied())
        .collect();
    assert_eq!(
        texts_of(text_file(">U2", "False", "(4,)", &big)).unwrap().0,
        expected
    );
    // Bytes need not be UTF-8; a zero in the middle stays.
    let found = texts_of(text_file("|S3", "True", "(1, 2)", b"\xff\0\0a\0b")).unwrap();
    assert_eq!(
        found,
        (vec![b"\xff".to_vec(), b"a\0b".to_vec()], vec![1, 2])
    );
    let found = texts_of(text_file("S1", "True", "(2, 3)", b"adbecf")).unwrap();
    assert_eq!(found.0.concat(), b"abcdef");
    let empty = texts_of(text_file("<U0", "False", "(2,)", b"")).unwrap();
    assert_eq!(empty, (vec![vec![], vec![]], vec![2]));
    let none = texts_of(text_file("<U5", "False", "(0, 3)", b"")).unwrap();
    assert_eq!(none, (vec![], vec![0, 3]));
    let scalar = texts_of(text_file("<U1", "False", "()", &characters("x"))).unwrap();
    assert_eq!(scalar, (vec![b"x".to_vec()], vec![]));
}

#[test]
fn text_that_is_refused() {
    let cases: [(&str, &str, &[u8], &str); 7] = [
        (
            "<U1",
            "(1,)",
            &[0, 0xd8, 0, 0],
            "expected a character, found 0xd800",
        ),
        (
            "<U1",
            "(1,)",
            &[0, 0, 0x11, 0],
            "expected a character, found 0x110000",
        ),
        (
            "<U2",
            "(1,)",
            &[0; 4],
            "expected 8 bytes of string [1], found 4",
        ),
        (
            "<U0",
            "(1048577,)",
            &[],
            "at most 1048576 texts without characters",
        ),
        ("|S0", "(9999999999, 9999999)", &[], "at most 1048576 texts"),
        (
            "<U999999999",
            "(1,)",
            &[],
            "a dtype of numbers, booleans or text",
        ),
        (
            "<U2147483647",
            "(9999999999, 9999999)",
            &[],
            "a dtype of numbers",
        ),
    ];
    for (descr, shape, data, part) in cases {
        for order in ["False", "True"] {
            let error = from_bytes(text_file(descr, order, shape, data)).unwrap_err();
            assert!(error.to_string().contains(part), "{descr}: {error}");
        }
    }
    // 16 bytes each would fit, all together do not.
    let error = from_bytes(text_file(
        "|S2000000000",
        "True",
        "(9999999999, 9999999)",
        &[],
    ));
    let error = error.unwrap_err().to_string();
    assert!(error.contains("a shape that fits memory"), "{error}");
}

fn texts(dims: &[usize], texts: &[&[u8]]) -> Tensor {
    let shape = Shape::new(dims).unwrap();
    Tensor::from_vec(DType::String, shape, text::encode(texts)).unwrap()
}

#[test]
fn text_is_written_as_numpy_writes_it() {
    type Case<'a> = (&'a [usize], &'a [&'a [u8]], &'a str, Vec<u8>);
    let cases: [Case<'_>; 5] = [
        (
            &[2],
            &[b"", "äb😀".as_bytes()],
            "'<U3'",
            characters("\0\0\0äb😀"),
        ),
        (&[1, 1], &[b""], "'<U1'", vec![0; 4]),
        (&[0, 7], &[], "'<U1'", vec![]),
        (&[], &[b"\xff"], "'|S1'", vec![0xff]),
        (&[2], &[b"\xff", b"abc"], "'|S3'", b"\xff\0\0abc".to_vec()),
    ];
    for (dims, given, descr, data) in cases {
        let tensor = texts(dims, given);
        let (header, found) = text_array(tensor.host_view().unwrap()).unwrap();
        assert!(String::from_utf8_lossy(&header).contains(descr), "{descr}");
        assert_eq!(header.len() % 64, 0);
        assert_eq!(found, data);
        let again = from_bytes([header, found].concat()).unwrap();
        assert_eq!(
            (again.shape(), again.host_bytes().unwrap()),
            (tensor.shape(), tensor.host_bytes().unwrap())
        );
    }
    let numbers = Tensor::from_vec(DType::U8, Shape::scalar(), vec![1]).unwrap();
    assert!(matches!(
        text_array(numbers.host_view().unwrap()),
        Err(TextArrayError::Text(_))
    ));
}

#[test]
fn one_long_text_does_not_take_all_memory() {
    let long = vec![b'x'; 1 << 20];
    let mut given: Vec<&[u8]> = vec![b""; 5000];
    given[17] = &long;
    let error = text_array(texts(&[5000], &given).host_view().unwrap()).unwrap_err();
    assert_eq!(
        error.to_string(),
        "5000 texts of up to 4194304 bytes make an array of more than 4294967296 bytes"
    );
}

/// As `ml_dtypes` 0.6 and numpy 2.4 write them.
#[test]
fn dtypes_that_numpy_lacks() {
    let cases: [(&str, DType, &[u8], &[u8]); 9] = [
        (
            "<V2",
            DType::BF16,
            &[0x80, 0x3f, 0, 0x40, 1, 2],
            &[0x80, 0x3f, 0, 0x40, 1, 2],
        ),
        ("<V1", DType::F8E4M3FN, &[0x38, 0xb8, 0], &[0x38, 0xb8, 0]),
        ("|V1", DType::F8E5M2FNUZ, &[0x40, 0x80, 0], &[0x40, 0x80, 0]),
        ("<V1", DType::I4, &[1, 0x0f, 0xf8], &[0xf1, 8]),
        ("<V1", DType::U4, &[1, 0x0f, 8], &[0xf1, 8]),
        ("<V1", DType::U2, &[1, 3, 2], &[0b10_11_01]),
        ("<V1", DType::F6E3M2, &[0x3f, 0x01, 0x20], &[0x7f, 0, 2]),
        ("|i1", DType::I4, &[1, 0xff, 0xf8], &[0xf1, 8]),
        ("|u1", DType::U4, &[1, 15, 8], &[0xf1, 8]),
    ];
    for (descr, dtype, data, expected) in cases {
        let bytes = text_file(descr, "False", "(3,)", data);
        let tensor = from_bytes_as(bytes.clone(), Some(dtype)).unwrap();
        assert_eq!(
            (tensor.dtype(), tensor.host_bytes().unwrap()),
            (dtype, expected),
            "{dtype}"
        );
        // Without being told, or told something else, the file's dtype counts.
        for other in [None, Some(DType::F32), Some(DType::String), Some(DType::U1)] {
            match from_bytes_as(bytes.clone(), other) {
                Ok(tensor) => assert!(tensor.dtype() != dtype && !descr.contains('V')),
                Err(error) => {
                    let error = error.to_string();
                    assert!(error.contains("bytes that may be anything"), "{error}");
                }
            }
        }
    }
    let e5m2 = text_file("<f1", "False", "(2,)", &[0x3c, 0x7c]);
    assert_eq!(from_bytes(e5m2).unwrap().dtype(), DType::F8E5M2);
    let columns = text_file("<V2", "True", "(2, 2)", &[1, 1, 3, 3, 2, 2, 4, 4]);
    assert_eq!(
        from_bytes_as(columns, Some(DType::BF16))
            .unwrap()
            .host_bytes()
            .unwrap(),
        [1, 1, 2, 2, 3, 3, 4, 4]
    );
    let columns = text_file("<V1", "True", "(2, 2)", &[1, 3, 2, 4]);
    assert_eq!(
        from_bytes_as(columns, Some(DType::I4))
            .unwrap()
            .host_bytes()
            .unwrap(),
        [0x21, 0x43]
    );
}

#[test]
fn more_than_an_element_holds_is_refused() {
    let cases = [
        ("|V1", DType::I4, 0x17, true),
        ("|V1", DType::I4, 0x88, true),
        ("|V1", DType::I4, 0xf7, true),
        ("|V1", DType::I4, 0x0f, false),
        ("|i1", DType::I4, 0x0f, true),
        ("|i1", DType::I4, 0x07, false),
        ("|i1", DType::I2, 0xfe, false),
        ("|i1", DType::I2, 2, true),
        ("|u1", DType::U4, 16, true),
        ("|V1", DType::F4E2M1, 16, true),
    ];
    for (descr, dtype, byte, is_refused) in cases {
        let bytes = text_file(descr, "False", "(2,)", &[0, byte]);
        let n = bytes.len();
        let found = from_bytes_as(bytes, Some(dtype));
        assert_eq!(found.is_err(), is_refused, "{descr} {dtype} {byte:#x}");
        if let Err(error) = found {
            let expected = format!(
                "byte {}: expected an element of {dtype}, found the byte {byte:#04x}",
                n - 1
            );
            assert_eq!(error.to_string(), expected);
        }
    }
    // Items of another width are something else.
    for (descr, data, dtype) in [
        ("|V2", 2, DType::I4),
        ("|V1", 1, DType::BF16),
        ("|V0", 0, DType::I4),
    ] {
        let bytes = text_file(descr, "False", "(1,)", &vec![0; data]);
        assert!(from_bytes_as(bytes, Some(dtype)).is_err(), "{descr}");
    }
}

#[test]
fn distances_without_elements_may_be_large() {
    let dims = "(9999999999999, 9999999999999, 0)";
    let bytes = text_file("<f8", "True", dims, &[]);
    assert!(from_bytes(bytes).unwrap().host_bytes().unwrap().is_empty());
}

proptest! {
    /// Zeros at the end are numpy's own limit.
    #[test]
    fn texts_come_back(given in prop::collection::vec("[a-zä😀]{0,5}", 0..8)) {
        let given: Vec<&[u8]> = given.iter().map(String::as_bytes).collect();
        let tensor = texts(&[given.len()], &given);
        let (header, data) = text_array(tensor.host_view().unwrap()).unwrap();
        let again = from_bytes([header, data].concat()).unwrap();
        prop_assert_eq!(again.host_bytes().unwrap(), tensor.host_bytes().unwrap());
    }

    #[test]
    fn narrow_elements_come_back(codes in prop::collection::vec(0_u8..16, 0..20), index in 0_usize..6) {
        let dtype = [DType::I4, DType::U4, DType::F4E2M1, DType::U2, DType::I2, DType::F6E2M3][index];
        let n_bits = dtype.bits().unwrap() as usize;
        let codes: Vec<u8> = codes.iter().map(|code| code & ((1 << n_bits) - 1)).collect();
        let shape = format!("({},)", codes.len());
        let tensor = from_bytes_as(text_file("|V1", "False", &shape, &codes), Some(dtype)).unwrap();
        for (i, code) in codes.iter().enumerate() {
            let bit = |k: usize| tensor.host_bytes().unwrap()[(i * n_bits + k) / 8] >> ((i * n_bits + k) % 8) & 1;
            let found = (0..n_bits).fold(0, |found, k| found | bit(k) << k);
            prop_assert_eq!(found, *code);
        }
    }
}
