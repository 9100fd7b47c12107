//! Sums and products of integers along axes.

use opscope_tensor::DType;
use proptest::prelude::*;

use super::{ints, place, record, record_with_gaps, status, zeros};

#[test]
fn reductions_of_one_axis() {
    for (op_type, values, bit) in [
        ("ReduceSum", [100, 27], 0),
        ("ReduceSum", [100, 28], 0x10),
        ("ReduceSum", [-100, -29], 0x10),
        ("ReduceL1", [-100, -28], 0x10),
        ("ReduceL1", [-100, 27], 0),
        ("ReduceProd", [16, 8], 0x10),
        ("ReduceProd", [-16, 8], 0),
        ("ReduceProd", [127, 0], 0),
        ("ReduceSumSquare", [11, 2], 0),
        ("ReduceSumSquare", [11, 3], 0x10),
        ("ReduceL2", [127, 0], 0),
        ("ReduceL2", [100, 100], 0x10),
        // The mean of in-range numbers is in range.
        ("ReduceMean", [127, 127], 0),
        ("ReduceMax", [127, 127], 0),
    ] {
        let inputs = vec![ints(DType::I8, &[2], &values)];
        let record = record(op_type, &[], inputs, vec![zeros(DType::I8, &[1])]);
        assert_eq!(status(&record), bit, "{op_type} {values:?}");
    }
}

#[test]
fn axes_from_everywhere() {
    let data = || ints(DType::U8, &[2, 3], &[250, 1, 1, 9, 1, 1]);
    let axes = |values: &[i128]| ints(DType::I64, &[values.len()], values);
    let out = || vec![zeros(DType::U8, &[3])];
    for (inputs, attributes, expected) in [
        (vec![data(), axes(&[0])], vec![], Some((0x10, 1, 0))),
        (vec![data(), axes(&[1])], vec![], None),
        (vec![data(), axes(&[-2])], vec![], Some((0x10, 1, 0))),
        (vec![data(), axes(&[0, 1])], vec![], Some((0x10, 1, 0))),
        (vec![data(), axes(&[])], vec![], Some((0x10, 1, 0))),
        (
            vec![data(), axes(&[])],
            vec![("noop_with_empty_axes", "1")],
            None,
        ),
        (vec![data(), axes(&[7])], vec![], None),
        (vec![data()], vec![], Some((0x10, 1, 0))),
        (vec![data()], vec![("axes", "[1]")], None),
        (vec![data()], vec![("axes", "[0]")], Some((0x10, 1, 0))),
    ] {
        let record = record("ReduceSum", &attributes, inputs, out());
        assert_eq!(place(&record), expected, "{attributes:?}");
    }
    let absent = record_with_gaps("ReduceSum", &[], vec![Some(data()), None], out());
    assert_eq!(place(&absent), Some((0x10, 1, 0)));
}

#[test]
fn running_sums() {
    let run = |axis: i128, attributes: &[(&str, &str)]| {
        let inputs = vec![
            ints(DType::I8, &[2, 2], &[100, 20, 20, 100]),
            ints(DType::I32, &[], &[axis]),
        ];
        place(&record(
            "CumSum",
            attributes,
            inputs,
            vec![zeros(DType::I8, &[2, 2])],
        ))
    };
    assert_eq!(run(0, &[]), None);
    assert_eq!(run(-1, &[]), None);
    let run = |attributes: &[(&str, &str)]| {
        let inputs = vec![
            ints(DType::I8, &[3], &[100, 27, 1]),
            ints(DType::I64, &[1], &[0]),
        ];
        place(&record(
            "CumSum",
            attributes,
            inputs,
            vec![zeros(DType::I8, &[3])],
        ))
    };
    assert_eq!(run(&[]), Some((0x10, 1, 2)));
    assert_eq!(run(&[("exclusive", "1")]), None);
    assert_eq!(run(&[("reverse", "1")]), Some((0x10, 1, 0)));
    assert_eq!(run(&[("reverse", "1"), ("exclusive", "1")]), None);
    let inputs = vec![
        ints(DType::I8, &[3], &[100, 2, 0]),
        ints(DType::I64, &[1], &[0]),
    ];
    let product = record("CumProd", &[], inputs, vec![zeros(DType::I8, &[3])]);
    assert_eq!(place(&product), Some((0x10, 1, 1)));
}

proptest! {
    #[test]
    fn sums_along_the_middle_axis(values in proptest::collection::vec(any::<i16>(), 2 * 3 * 4)) {
        let wide: Vec<i128> = values.iter().map(|&v| v.into()).collect();
        let inputs = vec![ints(DType::I16, &[2, 3, 4], &wide), ints(DType::I64, &[1], &[1])];
        let found = place(&record("ReduceSum", &[], inputs, vec![zeros(DType::I16, &[2, 4])]));
        let sum = |i: usize| (0..3).map(|k| wide[i / 4 * 12 + k * 4 + i % 4]).sum::<i128>();
        let bad: Vec<usize> = (0..8).filter(|&i| i16::try_from(sum(i)).is_err()).collect();
        prop_assert_eq!(found, bad.first().map(|&first| (0x10, bad.len() as u64, first)));
    }
}
