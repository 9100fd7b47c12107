//! Descriptions whose formats no engine could compute with, or that contradict each other.

use opscope_engine::single_operator::{OperatorError, read_json};

fn desc(format: &str, dims: &[usize]) -> String {
    format!(r#"{{"format": "{format}", "shape": {dims:?}, "type": "float"}}"#)
}

/// An operator with these inputs; `rest` are further members.
fn operator(op_type: &str, inputs: &[String], rest: &str) -> String {
    let inputs = inputs.join(", ");
    format!(r#"{{"op": "{op_type}", "inputs": [{inputs}]{rest}}}"#)
}

/// Each text is refused in words with this part.
fn check(cases: &[(String, &str)]) {
    for (text, part) in cases {
        let operator = read_json(text).unwrap().remove(0);
        let error = operator.for_engine().err();
        let error = error.unwrap_or_else(|| panic!("{text}"));
        let is_right = matches!(
            error,
            OperatorError::Format { .. } | OperatorError::Inexpressible { .. }
        );
        let told = error.to_string();
        assert!(is_right && told.contains(part), "{text}: {told}");
    }
}

#[test]
fn images_and_kernels() {
    let conv =
        |image: String, kernel: String, rest: &str| operator("Conv2D", &[image, kernel], rest);
    let image = || desc("NHWC", &[1, 4, 4, 2]);
    let kernel = || desc("HWCN", &[3, 3, 2, 3]);
    let attribute = |text: &str| format!(r#", "attributes": {{{text}}}"#);
    check(&[
        (
            conv(image(), desc("ND", &[3, 2, 3, 3]), ""),
            "input 1 has the format ND",
        ),
        (
            conv(desc("ND", &[1, 2, 4, 4]), kernel(), ""),
            "input 0 has the format ND",
        ),
        (
            conv(image(), desc("FRACTAL_Z", &[9, 1, 16, 16]), ""),
            "input 1 has the format FRACTAL_Z",
        ),
        (
            conv(desc("NHWC", &[1, 4, 4]), kernel(), ""),
            "3 axes, expected 4",
        ),
        (
            conv(image(), kernel(), &attribute(r#""data_format": "NCHW""#)),
            "`data_format` is NCHW, and input 0 has the format NHWC",
        ),
        (
            conv(image(), kernel(), &attribute(r#""strides": [1, 1, 2, 2]"#)),
            "batch and channels",
        ),
        (
            conv(image(), kernel(), &attribute(r#""pads": [0, -1, 0, 0]"#)),
            "one is negative",
        ),
        (
            conv(image(), kernel(), &attribute(r#""padding": "HALF""#)),
            "expected SAME",
        ),
    ]);
}

#[test]
fn other_operators() {
    let image = || desc("NHWC", &[1, 4, 4, 2]);
    let outputs = |text: &str| format!(r#", "outputs": [{text}]"#);
    let with_indices = r#"{"type": "float"}, {"type": "int64"}"#;
    let both =
        r#"{"type": "float", "shape": [1, 2, 4, 4], "format": "NHWC", "origin_format": "NCHW"}"#;
    let kernel = r#", "attributes": {"kernel_shape": [2, 2]}"#;
    let data_format = r#", "attributes": {"data_format": "NHWC"}"#;
    let block = r#", "attributes": {"block_size": 2}"#;
    check(&[
        (
            operator("Relu", &[desc("NC1HWC0", &[1, 1, 4, 4, 16])], ""),
            "NC1HWC0",
        ),
        (
            operator("Add", &[image(), desc("NCHW", &[1, 2, 4, 4])], ""),
            "input 1 NCHW",
        ),
        (
            operator("Relu", &[image()], &outputs(&desc("NCHW", &[1, 2, 4, 4]))),
            "output 0 NCHW",
        ),
        (
            operator("MaxPool", &[image()], &(outputs(with_indices) + kernel)),
            "indices",
        ),
        (
            operator(
                "BiasAdd",
                &[desc("ND", &[1, 4, 4, 2]), desc("ND", &[2])],
                "",
            ),
            "set `data_format`",
        ),
        (
            operator("DepthToSpace", &[desc("ND", &[1, 4, 4, 4])], block),
            "set `data_format`",
        ),
        (
            operator("Relu", &[image()], data_format),
            "says nothing of it",
        ),
        (
            operator("Relu", &[both.to_owned()], ""),
            "origin format NCHW",
        ),
    ]);
}

#[test]
fn words_that_are_no_format() {
    let text = operator("Relu", &[desc("NHCW", &[1])], "");
    let told = read_json(&text).unwrap_err().to_string();
    assert!(
        told.contains("/inputs/0/format") && told.contains("NHCW"),
        "{told}"
    );
}
