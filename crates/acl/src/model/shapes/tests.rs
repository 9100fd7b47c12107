//! Inputs are separated by `|`: `n,3|n` is a value with an open and a fixed dimension, and another
//! one.

use opscope_tensor::DType;

use super::*;

fn value(dims: &str) -> ValueInfo {
    let dim = |text: &str| match text.parse() {
        Ok(n) => DeclaredDim::Fixed(n),
        Err(_) if text == "?" => DeclaredDim::Unknown,
        Err(_) => DeclaredDim::Named(text.to_owned()),
    };
    let dims = dims.split(',').filter(|text| !text.is_empty());
    ValueInfo {
        name: "x".to_owned(),
        dtype: DType::F32,
        dims: Some(dims.map(dim).collect()),
    }
}

/// `given` is the number of bytes of each buffer, or the shape of its description in brackets.
fn check(inputs: &str, given: &str, gear: Option<&GearChoice>, expected: Result<&str, &str>) {
    let inputs: Vec<ValueInfo> = inputs.split('|').map(value).collect();
    let one = |text: &str| match text.strip_prefix('[') {
        None => InputBuffer {
            n_bytes: text.parse().unwrap(),
            dims: None,
        },
        Some(dims) => InputBuffer {
            n_bytes: 0,
            dims: Some(dims.split(',').map(|n| n.parse().unwrap()).collect()),
        },
    };
    let given: Vec<InputBuffer> = given.split('|').map(one).collect();
    let shapes = resolve(&inputs, &given, gear);
    let text = shapes.map(|shapes| {
        let shapes: Vec<String> = shapes.iter().map(ToString::to_string).collect();
        shapes.join("|")
    });
    match (&text, expected) {
        (Err(error), Err(part)) => assert!(error.contains(part), "{error}"),
        _ => assert_eq!(text.as_deref().ok(), expected.ok(), "{text:?}"),
    }
}

#[test]
fn fixed_and_by_size() {
    check("2,3", "24", None, Ok("[2,3]"));
    check("", "4", None, Ok("[]"));
    check("n,3", "36", None, Ok("[3,3]"));
    check("?", "8", None, Ok("[2]"));
    check("n,3", "35", None, Err("do not fill"));
    check("n,0", "0", None, Err("do not fill"));
    check("n,m", "36", None, Err("set its open dimensions"));
}

#[test]
fn set_by_the_program() {
    let size = GearChoice::Size {
        height: 5,
        width: 6,
    };
    let dims = |dims: &[i64]| GearChoice::Dims(dims.to_vec());
    check("n,3", "999", Some(&GearChoice::Batch(7)), Ok("[7,3]"));
    check("4,3", "48", Some(&GearChoice::Batch(7)), Ok("[4,3]"));
    check("1,3,h,w", "0", Some(&size), Ok("[1,3,5,6]"));
    check("n,m|n", "24|8", Some(&dims(&[2, 3, 2])), Ok("[2,3]|[2]"));
    check("2,m", "24", Some(&dims(&[3, 3])), Err("takes shape"));
    check("n,m", "24", Some(&dims(&[3])), Err("2 axes together"));
    // A negative dimension leaves the axis open.
    check("n", "24", Some(&dims(&[-3])), Ok("[6]"));
    check(
        "n,m",
        "24",
        Some(&GearChoice::Batch(u64::MAX)),
        Err("more elements than memory"),
    );
}

#[test]
fn described_or_named() {
    check("n|n,m", "8|24", None, Ok("[2]|[2,3]"));
    check("n,m|n", "24|8", None, Err("set its open dimensions"));
    check("n,m", "[2,3", None, Ok("[2,3]"));
    check("n,m|n", "[2,3|8", None, Ok("[2,3]|[2]"));
    check("n,4", "[2,3", None, Err("takes shape"));
    check("n", "[-1", None, Err("is unknown"));
}
