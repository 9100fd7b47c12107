use std::borrow::Cow;

use opscope_tensor::DType;

use super::*;
use crate::array::{ElementArray, SaveOrder, count};

fn flat(n: usize) -> ElementArray<'static> {
    let bytes: Vec<u8> = (0..n as u32).flat_map(u32::to_le_bytes).collect();
    ElementArray::flat(DType::U32, Cow::Owned(bytes))
}

fn values(array: &ElementArray<'_>) -> Vec<u32> {
    let bytes = array.bytes_in_order(SaveOrder::C);
    bytes
        .as_chunks::<4>()
        .0
        .iter()
        .map(|&chunk| u32::from_le_bytes(chunk))
        .collect()
}

fn run(from: Layout, to: Layout, dims: &[usize], wanted: &[usize]) -> Result<Vec<u32>, String> {
    let request = LayoutRequest {
        array: flat(count(dims).unwrap()),
        dims,
        wanted,
        groups: 0,
    };
    let converted = convert(from, to, request).expect("a pair that is supported")?;
    let dims = converted.dims().to_vec();
    let array = converted.into_array()?;
    assert_eq!(array.dims(), dims);
    Ok(values(&array))
}

#[test]
fn blocks_of_channels_are_joined() {
    let (n, c1, h, w, c0) = (2, 2, 3, 5, 16);
    let expected: Vec<u32> = (0..n)
        .flat_map(|n| (0..c1 * c0).map(move |c| (n, c)))
        .flat_map(|(n, c)| (0..h * w).map(move |hw| (n, c, hw)))
        .map(|(n, c, hw)| (((n * c1 + c / c0) * h * w + hw) * c0 + c % c0) as u32)
        .collect();
    let found = run(Layout::Nc1hwc0, Layout::Nchw, &[n, c1, h, w, c0], &[]);
    assert_eq!(found.unwrap(), expected);
}

#[test]
fn a_cut_before_and_after_the_copy_is_the_same() {
    let dims = [2, 2, 3, 5, 16];
    for to in [Layout::Nchw, Layout::Nhwc, Layout::Hwcn] {
        let convert = || {
            let request = LayoutRequest {
                array: flat(count(&dims).unwrap()),
                dims: &dims,
                wanted: &[],
                groups: 0,
            };
            convert(Layout::Nc1hwc0, to, request).unwrap().unwrap()
        };
        let full = convert().dims().to_vec();
        let ends: Vec<usize> = full.iter().map(|&dim| dim.clamp(2, 20) - 1).collect();
        let early = convert().cut(&full, &ends).unwrap().into_array().unwrap();
        let late = convert().into_array().unwrap().cut(&ends);
        assert_eq!(early.dims(), late.dims());
        assert_eq!(values(&early), values(&late), "{to}");
    }
}

#[test]
fn what_python_would_raise_is_an_error() {
    type Case = (
        Layout,
        Layout,
        &'static [usize],
        &'static [usize],
        &'static str,
    );
    let cases: [Case; 6] = [
        (
            Layout::Nc1hwc0,
            Layout::Nchw,
            &[2, 2, 3, 16],
            &[],
            "list index out of range",
        ),
        (
            Layout::FractalZ,
            Layout::Nchw,
            &[6, 1, 16, 16],
            &[20, 18, 3],
            "list index out of range",
        ),
        (
            Layout::FractalZ,
            Layout::Nchw,
            &[6, 1, 16, 16],
            &[16, 16, 0, 3],
            "division",
        ),
        (
            Layout::FractalZ,
            Layout::Nchw,
            &[6, 1, 16, 16],
            &[16, 16, 4, 3],
            "cannot reshape",
        ),
        (
            Layout::Ndc1hwc0,
            Layout::Ncdhw,
            &[1, 1, 1, 1, 1, 16],
            &[],
            "list index out of range",
        ),
        (
            Layout::Nchw,
            Layout::FractalZ,
            &[0, 1, 1, 1],
            &[],
            "division",
        ),
    ];
    for (from, to, dims, wanted, message) in cases {
        let error = run(from, to, dims, wanted).unwrap_err();
        assert!(error.contains(message), "{from} to {to}: {error}");
    }
}

#[test]
fn more_than_there_is_keeps_the_difference() {
    assert_eq!(numpy_cut(32, 20), 20);
    assert_eq!(numpy_cut(32, 32), 32);
    assert_eq!(numpy_cut(32, 40), 8);
    assert_eq!(numpy_cut(32, 100), 32);
    assert_eq!(numpy_cut(32, 0), 0);
}
