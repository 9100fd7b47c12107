use proptest::prelude::*;

use super::*;

fn header() -> NanoHeader {
    let input = NanoTensor {
        data_type: 1,
        format: 2,
        size: 8,
        shape: vec![4],
        ..NanoTensor::default()
    };
    let output = NanoTensor {
        data_type: 30,
        original: Some(NanoOriginal {
            index: 3,
            name: "origin".into(),
            ..NanoOriginal::default()
        }),
        size: 1,
        shape: vec![2, 4],
        original_shape: vec![8],
        ..NanoTensor::default()
    };
    NanoHeader {
        version: 1,
        inputs: vec![input],
        outputs: vec![output],
    }
}

#[test]
fn a_header_comes_back() {
    let header = header();
    let bytes = header.encode();
    assert!(is_nano(&bytes));
    let (decoded, n_header) = NanoHeader::decode(&bytes).unwrap();
    assert_eq!((&decoded, n_header), (&header, bytes.len() - 8));
    assert!(decoded.check_size(n_header, bytes.len() + 9).is_ok());
    assert!(decoded.check_size(n_header, bytes.len() + 8).is_err());
    assert_eq!(decoded.outputs[0].dtype(), Some(DType::U1));
    assert_eq!(decoded.inputs[0].to_entry().dtype(), Some(DType::F16));
}

#[test]
fn what_does_not_fit_is_refused() {
    let bytes = header().encode();
    for n in 0..bytes.len() {
        assert!(NanoHeader::decode(&bytes[..n]).is_err(), "{n}");
    }
    // The count of inputs lies after the length, magic, version, tag and length.
    let mut greedy = bytes.clone();
    greedy[24..28].copy_from_slice(&u32::MAX.to_le_bytes());
    let error = NanoHeader::decode(&greedy).unwrap_err();
    assert_eq!(
        error.to_string(),
        "byte 28: expected at most 1 entries, found 4294967295"
    );
    assert!(!is_nano(&bytes[..12]));
    let sum_overflows = NanoHeader {
        inputs: vec![
            NanoTensor {
                size: u64::MAX,
                ..NanoTensor::default()
            };
            2
        ],
        ..NanoHeader::default()
    };
    assert!(sum_overflows.check_size(0, 0).is_err());
}

proptest! {
    #[test]
    fn any_bytes_are_read_or_refused(tail in proptest::collection::vec(any::<u8>(), 0..200)) {
        let mut bytes = (tail.len() as u64 + 8).to_le_bytes().to_vec();
        bytes.extend_from_slice(&MAGIC.to_le_bytes());
        bytes.extend_from_slice(&[0; 4]);
        bytes.extend_from_slice(&tail);
        let _ = NanoHeader::decode(&bytes);
    }
}
