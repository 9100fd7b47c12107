//! The digit classifier of the examples, for programs that read files of raw numbers.

#![allow(dead_code, reason = "each test uses a part of it")]

use std::path::PathBuf;

use crate::support::project;

/// Number of images in the example.
pub(crate) const N_IMAGES: usize = 16;
/// Bytes of one image: 8×8 pixels of `float`.
pub(crate) const N_IMAGE_BYTES: usize = 256;

/// The encoding of an open batch dimension in the model file: a name of five bytes.
const OPEN_EXTENT: &[u8] = b"\x0a\x07\x12\x05batch";

pub(crate) fn model_path() -> PathBuf {
    project().join("examples/digits/digits_cnn.onnx")
}

/// The model for exactly `n` images.
pub(crate) fn fixed_model(n: u8) -> Vec<u8> {
    let mut model = std::fs::read(model_path()).expect("the example's model");
    // A number encoded to the same length as the name, so that no length before it changes.
    let mut fixed = OPEN_EXTENT.to_vec();
    fixed[2..].copy_from_slice(&[0x08, 0x80 | n, 0x80, 0x80, 0x80, 0x80, 0x00]);
    let mut n_replaced = 0;
    for start in 0..model.len() - OPEN_EXTENT.len() {
        let part = &mut model[start..start + OPEN_EXTENT.len()];
        if part == OPEN_EXTENT {
            part.copy_from_slice(&fixed);
            n_replaced += 1;
        }
    }
    assert!(n_replaced >= 2, "input and output have an open extent");
    model
}

/// The pixels of all images.
pub(crate) fn images() -> Vec<u8> {
    let bytes = npy("images.npy");
    assert_eq!(bytes.len(), N_IMAGES * N_IMAGE_BYTES);
    bytes
}

/// The digits that the model recognises, one of them wrongly.
pub(crate) fn answers() -> Vec<String> {
    let labels = npy("labels.npy");
    let mut answers: Vec<String> = labels
        .chunks_exact(8)
        .map(|label| label[0].to_string())
        .collect();
    // The model takes the second image, a 5, for a 4.
    assert_eq!(answers[1], "5");
    "4".clone_into(&mut answers[1]);
    answers
}

/// The elements of a NumPy file, version 1, without its header.
fn npy(name: &str) -> Vec<u8> {
    let path = project().join("examples/digits").join(name);
    let bytes = std::fs::read(path).expect("the example's data");
    assert_eq!(&bytes[..8], b"\x93NUMPY\x01\x00");
    let n_header = usize::from(bytes[8]) + 256 * usize::from(bytes[9]);
    bytes[10 + n_header..].to_vec()
}
