//! Element-wise arithmetic of integers.

use opscope_tensor::{DType, Tensor};
use proptest::prelude::*;

use super::{floats, ints, place, record, status, tensor, zeros};

const SIGNED: [DType; 4] = [DType::I8, DType::I16, DType::I32, DType::I64];
const UNSIGNED: [DType; 4] = [DType::U8, DType::U16, DType::U32, DType::U64];

fn ends(dtype: DType) -> (i128, i128) {
    let n_bits = dtype.bits().unwrap();
    if SIGNED.contains(&dtype) {
        (-(1 << (n_bits - 1)), (1 << (n_bits - 1)) - 1)
    } else {
        (0, (1 << n_bits) - 1)
    }
}

fn scalars(op_type: &str, dtype: DType, values: &[i128]) -> u64 {
    let inputs = values.iter().map(|value| ints(dtype, &[], &[*value]));
    status(&record(
        op_type,
        &[],
        inputs.collect(),
        vec![zeros(dtype, &[])],
    ))
}

#[test]
fn the_ends_of_every_width() {
    for dtype in SIGNED.into_iter().chain(UNSIGNED) {
        let (min, max) = ends(dtype);
        let is_signed = min < 0;
        let signed = |bit| if is_signed { bit } else { 0 };
        let cases: [(&str, &[i128], u64); 24] = [
            ("Add", &[max, 1], 0x10),
            ("Add", &[max, 0], 0),
            ("Add", &[max - 1, 1], 0),
            ("Add", &[max, max], 0x10),
            ("Add", &[min, max], 0),
            ("Sub", &[min, 1], 0x10),
            ("Sub", &[min + 1, 1], 0),
            ("Sub", &[0, min], signed(0x10)),
            ("Sub", &[max, max], 0),
            ("Mul", &[max, 2], 0x10),
            ("Mul", &[max, 1], 0),
            ("Mul", &[max, max], 0x10),
            ("Mul", &[max / 2, 2], 0),
            ("Mul", &[min, min], signed(0x10)),
            ("Div", &[max, 1], 0),
            ("Div", &[min, 2], 0),
            ("Pow", &[2, dtype.bits().unwrap().into()], 0x10),
            ("Pow", &[2, 3], 0),
            ("Pow", &[max, 1], 0),
            ("Pow", &[0, 0], 0),
            ("Sum", &[max - 1, 1, 1], 0x10),
            ("Sum", &[max - 2, 1, 1], 0),
            ("Neg", &[min], signed(0x08)),
            ("Abs", &[min + 1], 0),
        ];
        for (op_type, values, bit) in cases {
            assert_eq!(
                scalars(op_type, dtype, values),
                bit,
                "{op_type} {dtype} {values:?}"
            );
        }
        if is_signed {
            let cases: [(&str, &[i128], u64); 11] = [
                ("Mul", &[min, -1], 0x10),
                ("Mul", &[min, 1], 0),
                ("Div", &[min, -1], 0x10),
                ("Div", &[min + 1, -1], 0),
                ("Div", &[min, 0], 0),
                ("Abs", &[min], 0x08),
                ("Pow", &[-2, i128::from(dtype.bits().unwrap()) - 1], 0),
                ("Pow", &[0, -1], 0),
                ("Pow", &[-1, -3], 0),
                ("PRelu", &[min, -1], 0x10),
                ("PRelu", &[max, -1], 0),
            ];
            for (op_type, values, bit) in cases {
                assert_eq!(
                    scalars(op_type, dtype, values),
                    bit,
                    "{op_type} {dtype} {values:?}"
                );
            }
        }
    }
}

#[test]
fn broadcasting_and_places() {
    let column = || ints(DType::I8, &[2, 1], &[1, 100]);
    let row = || ints(DType::I8, &[3], &[26, 27, 28]);
    let found = place(&record(
        "Add",
        &[],
        vec![column(), row()],
        vec![zeros(DType::I8, &[2, 3])],
    ));
    assert_eq!(found, Some((0x10, 1, 5)));
    let many = || ints(DType::U8, &[4], &[1, 200, 3, 255]);
    let scalar = || ints(DType::U8, &[], &[56]);
    for inputs in [vec![many(), scalar()], vec![scalar(), many()]] {
        let found = place(&record("Add", &[], inputs, vec![zeros(DType::U8, &[4])]));
        assert_eq!(found, Some((0x10, 2, 1)));
    }
    let found = place(&record(
        "Neg",
        &[],
        vec![ints(DType::I8, &[3], &[-127, -128, -128])],
        vec![],
    ));
    assert_eq!(found, Some((0x08, 2, 1)));
}

#[test]
fn shapes_that_do_not_go_together_are_passed_over() {
    let cases = [
        vec![
            ints(DType::U8, &[2], &[255, 255]),
            ints(DType::U8, &[3], &[255, 255, 255]),
        ],
        vec![
            ints(DType::U8, &[1], &[255]),
            ints(DType::U16, &[1], &[255]),
        ],
        vec![ints(DType::U8, &[1], &[255])],
        vec![],
        vec![zeros(DType::I8, &[0]), ints(DType::I8, &[1], &[1])],
    ];
    for inputs in cases {
        for op_type in [
            "Add",
            "Pow",
            "Sum",
            "Neg",
            "MatMul",
            "Gemm",
            "ReduceSum",
            "CumSum",
            "ConvInteger",
        ] {
            let _ = status(&record(
                op_type,
                &[],
                inputs.clone(),
                vec![zeros(DType::U8, &[2])],
            ));
        }
        assert_eq!(
            status(&record("Add", &[], inputs, vec![zeros(DType::U8, &[2])])),
            0
        );
    }
}

#[test]
fn powers_of_another_type() {
    let power = |base: i128, exponent: Tensor| {
        let inputs = vec![ints(DType::I32, &[], &[base]), exponent];
        status(&record("Pow", &[], inputs, vec![zeros(DType::I32, &[])]))
    };
    assert_eq!(power(2, ints(DType::I64, &[], &[31])), 0x10);
    assert_eq!(power(2, ints(DType::U8, &[], &[30])), 0);
    assert_eq!(power(2, floats(DType::F32, &[], &[31.0])), 0x10);
    assert_eq!(power(2, floats(DType::F32, &[], &[30.99])), 0);
    assert_eq!(power(-2, floats(DType::F16, &[], &[31.0])), 0);
    assert_eq!(power(-3, floats(DType::F64, &[], &[0.5])), 0);
    assert_eq!(power(0, floats(DType::F32, &[], &[-1.0])), 0);
}

#[test]
fn types_narrower_than_a_byte() {
    let packed = |byte: u8| tensor(DType::I4, &[2], vec![byte]);
    let add = |a, b| {
        place(&record(
            "Add",
            &[],
            vec![packed(a), packed(b)],
            vec![packed(0)],
        ))
    };
    assert_eq!(add(0x70, 0x10), Some((0x10, 1, 1)));
    assert_eq!(add(0x60, 0x10), None);
    assert_eq!(add(0x08, 0x0f), Some((0x10, 1, 0)));
}

proptest! {
    /// Rust's checked arithmetic is the reference, for every pair and every position.
    #[test]
    fn wider_arithmetic_agrees_with_checked_arithmetic(
        a in proptest::collection::vec(any::<i8>(), 6),
        b in proptest::collection::vec(any::<i8>(), 3),
        wide_a in proptest::collection::vec(any::<u64>(), 4),
        wide_b in any::<u64>(),
    ) {
        type Checked<T> = fn(T, T) -> Option<T>;
        let operators: [(&str, Checked<i8>, Checked<u64>); 4] = [
            ("Add", i8::checked_add, u64::checked_add),
            ("Sub", i8::checked_sub, u64::checked_sub),
            ("Mul", i8::checked_mul, u64::checked_mul),
            ("Div", |a, b| if b == 0 { Some(0) } else { a.checked_div(b) }, |a, _| Some(a)),
        ];
        for (op_type, of_i8, of_u64) in operators {
            let wide = |values: &[i8]| values.iter().map(|&v| v.into()).collect::<Vec<i128>>();
            let inputs = vec![ints(DType::I8, &[2, 3], &wide(&a)), ints(DType::I8, &[3], &wide(&b))];
            let bad: Vec<usize> = (0..6).filter(|&i| of_i8(a[i], b[i % 3]).is_none()).collect();
            let found = place(&record(op_type, &[], inputs, vec![zeros(DType::I8, &[2, 3])]));
            let expected = bad.first().map(|&first| (0x10, bad.len() as u64, first));
            prop_assert_eq!(found, expected, "{} {:?} {:?}", op_type, a, b);

            let values: Vec<i128> = wide_a.iter().map(|&v| v.into()).collect();
            let inputs = vec![ints(DType::U64, &[4], &values), ints(DType::U64, &[], &[wide_b.into()])];
            let bad: Vec<usize> = (0..4).filter(|&i| of_u64(wide_a[i], wide_b).is_none()).collect();
            let found = place(&record(op_type, &[], inputs, vec![zeros(DType::U64, &[4])]));
            let expected = bad.first().map(|&first| (0x10, bad.len() as u64, first));
            prop_assert_eq!(found, expected, "{} {:?} {}", op_type, wide_a, wide_b);
        }
    }
}
