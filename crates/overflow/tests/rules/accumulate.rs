//! Sums of products of integers.

use opscope_tensor::{DType, Tensor};
use proptest::prelude::*;

use super::{ints, place, record, record_with_gaps, zeros};

/// Status, number of elements, first element.
type Found = Option<(u64, u64, usize)>;

#[test]
fn matrix_products_of_every_form() {
    let half = 1 << 30;
    let i32s = |dims: &[usize], values: &[i128]| ints(DType::I32, dims, values);
    let cases: [(Tensor, Tensor, &[usize], Found); 6] = [
        (
            i32s(&[2], &[half, half]),
            i32s(&[2], &[1, 1]),
            &[],
            Some((0x400, 1, 0)),
        ),
        (i32s(&[2], &[half, half]), i32s(&[2], &[1, 0]), &[], None),
        (
            i32s(&[1, 2], &[half, half]),
            i32s(&[2, 2], &[1, 1, 0, 1]),
            &[1, 2],
            Some((0x400, 1, 1)),
        ),
        (
            i32s(&[2], &[half, half]),
            i32s(&[2, 2], &[1, 1, 0, 1]),
            &[2],
            Some((0x400, 1, 1)),
        ),
        (
            i32s(&[2, 1, 1], &[1, half]),
            i32s(&[1, 2], &[1, 2]),
            &[2, 1, 2],
            Some((0x400, 1, 3)),
        ),
        (
            i32s(&[3, 1, 1, 1], &[1, 2, 3]),
            i32s(&[2, 1, 1], &[half, 1]),
            &[3, 2, 1, 1],
            Some((0x400, 2, 2)),
        ),
    ];
    for (a, b, out, expected) in cases {
        let text = format!("{a:?} {b:?}");
        let record = record("MatMul", &[], vec![a, b], vec![zeros(DType::I32, out)]);
        assert_eq!(place(&record), expected, "{text}");
    }
}

#[test]
fn quantised_matrix_products() {
    // 33026 products of 255 by 255 are the fewest that overflow 32 bits.
    let long = |n: usize, value: i128| ints(DType::U8, &[1, n], &vec![value; n]);
    let tall = |n: usize, value: i128| ints(DType::U8, &[n, 1], &vec![value; n]);
    let of = |n| {
        record(
            "MatMulInteger",
            &[],
            vec![long(n, 255), tall(n, 255)],
            vec![zeros(DType::I32, &[1, 1])],
        )
    };
    assert_eq!(place(&of(33025)), None);
    assert_eq!(place(&of(33026)), Some((0x400, 1, 0)));
    // Zero points that cancel everything, and ones that add.
    let n = 40000;
    let zero = |value| ints(DType::U8, &[], &[value]);
    let inputs = vec![long(n, 255), tall(n, 255), zero(255), zero(0)];
    let out = || vec![zeros(DType::I32, &[1, 1])];
    assert_eq!(place(&record("MatMulInteger", &[], inputs, out())), None);
    let inputs = vec![long(n, 0), tall(n, 255), zero(255), zero(0)];
    assert_eq!(
        place(&record("MatMulInteger", &[], inputs, out())),
        Some((0x400, 1, 0))
    );
    let scale = || super::floats(DType::F32, &[], &[1.0]);
    let inputs = vec![
        long(n, 255),
        scale(),
        zero(0),
        tall(n, 255),
        scale(),
        zero(1),
        scale(),
        zero(0),
    ];
    let quantised = record(
        "QLinearMatMul",
        &[],
        inputs,
        vec![zeros(DType::U8, &[1, 1])],
    );
    assert_eq!(place(&quantised), Some((0x400, 1, 0)));
}

#[test]
fn zero_points_for_each_row_and_column() {
    let n = 40000;
    let a = ints(DType::U8, &[2, n], &vec![255; 2 * n]);
    let b = ints(DType::U8, &[n, 2], &vec![255; 2 * n]);
    let rows = ints(DType::U8, &[2], &[255, 0]);
    let columns = ints(DType::U8, &[2], &[0, 255]);
    let record = record(
        "MatMulInteger",
        &[],
        vec![a, b, rows, columns],
        vec![zeros(DType::I32, &[2, 2])],
    );
    assert_eq!(place(&record), Some((0x400, 1, 2)));
}

#[test]
fn gemm_with_scales_and_bias() {
    let max = i128::from(i32::MAX);
    let one = |value| ints(DType::I32, &[1, 1], &[value]);
    let out = || vec![zeros(DType::I32, &[1, 1])];
    for (attributes, a, c, is_overflow) in [
        (vec![], max, None, false),
        (vec![], max, Some(1), true),
        (vec![("beta", "0")], max, Some(1), false),
        (vec![("alpha", "2")], max, None, true),
        (
            vec![("alpha", "2"), ("beta", "-1")],
            max / 2 + 1,
            Some(1),
            false,
        ),
        (vec![("alpha", "0.5")], max, Some(max), false),
    ] {
        let bias = c.map(|c| ints(DType::I32, &[], &[c]));
        let record = record_with_gaps(
            "Gemm",
            &attributes,
            vec![Some(one(a)), Some(one(1)), bias],
            out(),
        );
        assert_eq!(
            place(&record).is_some(),
            is_overflow,
            "{attributes:?} {a} {c:?}"
        );
    }
    // Transposed: only (0, 1) of the result is too large.
    let a = ints(DType::I32, &[2, 2], &[max, 0, 1, 0]);
    let b = ints(DType::I32, &[2, 2], &[1, 0, 1, 1]);
    let turned = [("transA", "1"), ("transB", "1")];
    let record = record(
        "Gemm",
        &turned,
        vec![a, b],
        vec![zeros(DType::I32, &[2, 2])],
    );
    assert_eq!(place(&record), Some((0x400, 1, 1)));
}

#[test]
fn einsum_equations() {
    let big = 1 << 62;
    let i64s = |dims: &[usize], values: &[i128]| ints(DType::I64, dims, values);
    let matrix = || i64s(&[2, 2], &[big, big, 1, 1]);
    let cases: [(&str, Vec<Tensor>, &[usize], Found); 7] = [
        ("\"ij->i\"", vec![matrix()], &[2], Some((0x400, 1, 0))),
        ("\"ij->j\"", vec![matrix()], &[2], None),
        (
            "\"ii->\"",
            vec![i64s(&[2, 2], &[big, 0, 0, big])],
            &[],
            Some((0x400, 1, 0)),
        ),
        (
            "\"ij, jk -> ik\"",
            vec![matrix(), i64s(&[2, 1], &[1, 1])],
            &[2, 1],
            Some((0x400, 1, 0)),
        ),
        (
            "\"ij,jk\"",
            vec![matrix(), i64s(&[2, 1], &[1, 0])],
            &[2, 1],
            None,
        ),
        (
            "\"...j,j->...\"",
            vec![matrix(), i64s(&[2], &[1, 1])],
            &[2],
            Some((0x400, 1, 0)),
        ),
        (
            "\"a,b,c->abc\"",
            vec![i64s(&[1], &[big]), i64s(&[1], &[2]), i64s(&[2], &[0, 1])],
            &[1, 1, 2],
            Some((0x400, 1, 1)),
        ),
    ];
    for (equation, inputs, out, expected) in cases {
        let record = record(
            "Einsum",
            &[("equation", equation)],
            inputs,
            vec![zeros(DType::I64, out)],
        );
        assert_eq!(place(&record), expected, "{equation}");
    }
    for broken in [
        "\"\"",
        "\"i->i\"",
        "\"ijk->i\"",
        "\"i1->i\"",
        "\"i...j->i\"",
        "\"ij,ij->i\"",
    ] {
        let record = record(
            "Einsum",
            &[("equation", broken)],
            vec![matrix()],
            vec![zeros(DType::I64, &[2])],
        );
        assert!(
            place(&record).is_none() || broken == "\"i...j->i\"",
            "{broken}"
        );
    }
}

/// A naive convolution, one result at a time.
struct PlainConv {
    n_groups: usize,
    stride: usize,
    dilation: usize,
    pads: [usize; 2],
}

impl PlainConv {
    fn run(
        &self,
        x: &[[i128; 5]; 2],
        zero: i128,
        w: &[[[i128; 2]; 1]; 2],
        n_outputs: usize,
    ) -> Vec<i128> {
        let mut out = Vec::new();
        for (kernel, w) in w.iter().enumerate() {
            for o in 0..n_outputs {
                let mut sum = 0;
                for (channel, w) in w.iter().enumerate() {
                    for (k, w) in w.iter().enumerate() {
                        let at =
                            (o * self.stride + k * self.dilation) as isize - self.pads[0] as isize;
                        let x = usize::try_from(at)
                            .ok()
                            .and_then(|at| x[kernel * self.n_groups / 2 + channel].get(at));
                        sum += x.map_or(0, |x| (x - zero) * w);
                    }
                }
                out.push(sum);
            }
        }
        out
    }
}

proptest! {
    /// A large bias brings small sums close to the limit of the accumulator.
    #[test]
    fn convolutions_agree_with_one_written_out(
        x in proptest::array::uniform2(proptest::array::uniform5(0_i128..256)),
        w in proptest::array::uniform2(proptest::array::uniform1(proptest::array::uniform2(-128_i128..128))),
        zero in 0_i128..256,
        stride in 1_usize..3,
        dilation in 1_usize..3,
        pads in proptest::array::uniform2(0_usize..3),
        room in 0_i128..40000,
    ) {
        let conv = PlainConv { n_groups: 2, stride, dilation, pads };
        let n_outputs = (5 + pads[0] + pads[1] - dilation - 1) / stride + 1;
        let bias = i128::from(i32::MAX) - room;
        let sums = conv.run(&x, zero, &w, n_outputs);
        let bad: Vec<usize> = (0..sums.len()).filter(|&i| i32::try_from(sums[i] + bias).is_err()).collect();
        let attributes = [
            ("group", "2".to_owned()),
            ("strides", format!("[{stride}]")),
            ("dilations", format!("[{dilation}]")),
            ("pads", format!("[{}, {}]", pads[0], pads[1])),
        ];
        let attributes: Vec<(&str, &str)> = attributes.iter().map(|(k, v)| (*k, v.as_str())).collect();
        let one = || super::floats(DType::F32, &[], &[1.0]);
        let inputs = vec![
            ints(DType::U8, &[1, 2, 5], x.as_flattened()),
            one(),
            ints(DType::U8, &[], &[zero]),
            ints(DType::I8, &[2, 1, 2], w.as_flattened().as_flattened()),
            one(),
            ints(DType::I8, &[2], &[0, 0]),
            one(),
            ints(DType::U8, &[], &[0]),
            ints(DType::I32, &[2], &[bias, bias]),
        ];
        let found = place(&record("QLinearConv", &attributes, inputs, vec![zeros(DType::U8, &[1, 2, n_outputs])]));
        prop_assert_eq!(found, bad.first().map(|&first| (0x400, bad.len() as u64, first)));
    }
}

#[test]
fn padding_by_name_and_two_axes() {
    let n = 200;
    let x = || ints(DType::U8, &[1, n, 3, 3], &vec![255; 9 * n]);
    let w = || ints(DType::U8, &[1, n, 3, 3], &vec![255; 9 * n]);
    // 9 * 200 products are far below the limit; a deep kernel is not.
    let record_of = |auto: &str, inputs, out: &[usize]| {
        record(
            "ConvInteger",
            &[("auto_pad", auto)],
            inputs,
            vec![zeros(DType::I32, out)],
        )
    };
    assert_eq!(
        place(&record_of("\"SAME_UPPER\"", vec![x(), w()], &[1, 1, 3, 3])),
        None
    );
    let n = 4000;
    let x = ints(DType::U8, &[1, n, 3, 3], &vec![255; 9 * n]);
    let w = ints(DType::U8, &[1, n, 3, 3], &vec![255; 9 * n]);
    let inputs = || vec![x.clone(), w.clone()];
    // Nine products for each channel in the middle, six at the edges, four in the corners.
    for auto in ["\"SAME_UPPER\"", "\"SAME_LOWER\""] {
        assert_eq!(
            place(&record_of(auto, inputs(), &[1, 1, 3, 3])),
            Some((0x400, 1, 4)),
            "{auto}"
        );
    }
    assert_eq!(
        place(&record_of("\"VALID\"", inputs(), &[1, 1, 1, 1])),
        Some((0x400, 1, 0))
    );
}
