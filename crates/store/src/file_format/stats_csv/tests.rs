use std::sync::Arc;

use half::{bf16, f16};
use opscope_tensor::{DType, Layout, Shape, Tensor, text};
use proptest::prelude::*;
use serde_json::Value;

use super::*;
use crate::record::{ModelId, Operator};

/// Rows that the vendor's statistics code printed, with the data that it was given.
const RECORDED: &str = include_str!("../../../tests/golden/stats_csv_vectors.json");

fn record(inputs: Vec<Tensor>, outputs: Vec<Tensor>) -> Record {
    let slots = |tensors: Vec<Tensor>| tensors.into_iter().enumerate().collect();
    Record {
        model: Arc::new(ModelId::default()),
        operator: Arc::new(Operator::default()),
        step: 0,
        timestamp_us: 0,
        inputs: slots(inputs),
        outputs: slots(outputs),
    }
}

fn dtype_named(name: &str) -> DType {
    let mut all = DType::ALL.iter().copied();
    all.find(|&dtype| names::dtype(dtype) == name).unwrap()
}

fn bytes_of_hex(hex: &str) -> Vec<u8> {
    let pair = |i| u8::from_str_radix(&hex[i..i + 2], 16).unwrap();
    (0..hex.len()).step_by(2).map(pair).collect()
}

/// The line of a tensor that is the only output.
fn output_row(tensor: Tensor, columns: &StatsColumns) -> String {
    let text = encode(&record(vec![], vec![tensor]), columns);
    text.lines().nth(1).unwrap().to_owned()
}

fn floats(values: &[f32]) -> Tensor {
    let bytes = values.iter().flat_map(|v| v.to_le_bytes()).collect();
    Tensor::from_vec(DType::F32, Shape::new([values.len()]).unwrap(), bytes).unwrap()
}

#[test]
fn recorded_rows() {
    let recorded: Value = serde_json::from_str(RECORDED).unwrap();
    let mut n_rows = 0;
    for row in recorded["rows"].as_array().unwrap() {
        let Some(hex) = row["data_hex"].as_str() else {
            continue;
        };
        let dims = row["shape"].as_array().unwrap().iter();
        let dims: Vec<usize> = dims.map(|d| d.as_u64().unwrap() as usize).collect();
        let dtype = dtype_named(row["dtype"].as_str().unwrap());
        let layout: Layout = row["format"].as_str().unwrap().parse().unwrap();
        let tensor = Tensor::from_vec(dtype, Shape::new(dims).unwrap(), bytes_of_hex(hex))
            .unwrap()
            .with_layout(layout);
        let is_input = row["io"] == "Input";
        let (inputs, outputs) = if is_input {
            (vec![tensor], vec![])
        } else {
            (vec![], vec![tensor])
        };
        let text = encode(&record(inputs, outputs), &StatsColumns::Plain);
        let header = recorded["header"].as_str().unwrap();
        let expected = format!("{header}\n{}\n", row["row"].as_str().unwrap());
        assert_eq!(text, expected, "{}", row["id"]);
        n_rows += 1;
    }
    assert_eq!(n_rows, 27);
}

#[test]
fn types_that_the_plain_table_leaves_empty() {
    let shape = || Shape::new([2]).unwrap();
    let cases = [
        (DType::BF16, vec![0; 4], "Output,0,4,-,ND,2,,,,,,,"),
        (DType::I4, vec![0; 1], "Output,0,1,-,ND,2,,,,,,,"),
        (DType::QI8, vec![0; 2], "Output,0,2,DT_QINT8,ND,2,,,,,,,"),
        (
            DType::C64,
            vec![0; 16],
            "Output,0,16,DT_COMPLEX64,ND,2,,,,,,,",
        ),
        (
            DType::String,
            text::encode(&["a", "bc"]),
            "Output,0,35,DT_STRING,ND,2,,,,,,,",
        ),
        (DType::U4, vec![0; 1], "Output,0,1,-,ND,2,,,,,,,"),
        (DType::F8E5M2FNUZ, vec![0; 2], "Output,0,2,-,ND,2,,,,,,,"),
    ];
    for (dtype, bytes, expected) in cases {
        let tensor = Tensor::from_vec(dtype, shape(), bytes).unwrap();
        assert_eq!(output_row(tensor, &StatsColumns::Plain), expected);
    }
    let empty = Tensor::from_vec(DType::F32, Shape::new([0, 3]).unwrap(), vec![]).unwrap();
    assert_eq!(
        output_row(empty.with_layout(Layout::Max), &StatsColumns::Plain),
        "Output,0,0,DT_FLOAT,-,0x3,,,,,,,"
    );
}

#[test]
fn a_mean_over_many_elements() {
    // 160000 numbers from 1 up to almost 2.
    let values: Vec<f32> = (0..160_000).map(|i| 1.0 + i as f32 / 160_000.0).collect();
    let bytes = values.iter().flat_map(|v| v.to_le_bytes()).collect();
    let shape = Shape::new([4, 50, 50, 16]).unwrap();
    let tensor = Tensor::from_vec(DType::F32, shape, bytes).unwrap();
    assert_eq!(
        output_row(tensor.with_layout(Layout::Nhwc), &StatsColumns::Plain),
        "Output,0,640000,DT_FLOAT,NHWC,4x50x50x16,1.99999,1,1.5,160000,0,0,0"
    );
}

#[test]
fn chosen_columns_come_in_their_own_order() {
    use StatsColumn::*;
    let check = |columns: &[StatsColumn], header: &str, row: &str| {
        let columns = StatsColumns::Chosen(columns.to_vec());
        let tensor = floats(&[3.0, -4.0]);
        let text = encode(&record(vec![], vec![tensor]), &columns);
        let expected = format!("{DESCRIPTION}{header}\nOutput,0,8,DT_FLOAT,ND,2{row}\n");
        assert_eq!(text, expected);
    };
    check(&[], ",Count", ",2");
    check(&[L2Norm, Max, L2Norm], ",Count,Max Value,l2norm", ",2,3,5");
    check(
        &[PositiveInfCount, NegativeInfCount, NanCount, Average, Min],
        ",Count,Min Value,Avg Value,Nan Count,Negative Inf Count,Positive Inf Count",
        ",2,-4,-0.5,0,0,0",
    );
    check(
        &PLAIN,
        ",Max Value,Min Value,Avg Value,Count,Nan Count,Negative Inf Count,Positive Inf Count",
        ",3,-4,-0.5,2,0,0,0",
    );
}

#[test]
fn chosen_columns_know_newer_types() {
    let columns = StatsColumns::Chosen(vec![
        StatsColumn::Max,
        StatsColumn::Average,
        StatsColumn::L2Norm,
    ]);
    let brain: Vec<u8> = [1.5_f32, -2.0]
        .iter()
        .flat_map(|&v| bf16::from_f32(v).to_le_bytes())
        .collect();
    let cases = [
        (
            DType::BF16,
            brain,
            "Output,0,4,DT_BF16,ND,2,2,1.5,-0.25,2.5",
        ),
        (
            DType::I4,
            vec![0x7f],
            "Output,0,1,DT_INT4,ND,2,2,7,3,7.07107",
        ),
        (
            DType::C64,
            vec![0; 16],
            "Output,0,16,DT_COMPLEX64,ND,2,2,NA,NA,NA",
        ),
        (DType::C32, vec![0; 8], "Output,0,8,UNKNOW,ND,2,2,NA,NA,NA"),
        (
            DType::String,
            text::encode(&["a", "bc"]),
            "Output,0,35,DT_STRING,ND,2,2,NA,NA,NA",
        ),
        (
            DType::U4,
            vec![0x7f],
            "Output,0,1,DT_UINT4,ND,2,2,15,11,16.5529",
        ),
        (
            DType::F8E4M3FNUZ,
            vec![0x40, 0xc8],
            "Output,0,2,DT_FLOAT8_E4M3FNUZ,ND,2,2,1,-0.5,2.23607",
        ),
    ];
    for (dtype, bytes, expected) in cases {
        let tensor = Tensor::from_vec(dtype, Shape::new([2]).unwrap(), bytes).unwrap();
        assert_eq!(output_row(tensor, &columns), expected);
    }
    let empty = Tensor::from_vec(DType::F32, Shape::new([0]).unwrap(), vec![]).unwrap();
    assert_eq!(
        output_row(empty, &columns),
        "Output,0,0,DT_FLOAT,ND,0,0,NA,NA,NA"
    );
    let nan = floats(&[f32::NAN, 1.0]);
    assert_eq!(
        output_row(nan, &columns),
        "Output,0,8,DT_FLOAT,ND,2,2,nan,nan,nan"
    );
}

#[test]
fn inputs_go_before_outputs_and_each_side_counts_from_zero() {
    let tensors = || vec![floats(&[1.0]), floats(&[2.0])];
    let text = encode(&record(tensors(), tensors()), &StatsColumns::Plain);
    let starts: Vec<&str> = text
        .lines()
        .map(|line| &line[..9.min(line.len())])
        .collect();
    assert_eq!(
        starts,
        [
            "Input/Out",
            "Input,0,4",
            "Input,1,4",
            "Output,0,",
            "Output,1,"
        ]
    );
    assert!(text.ends_with('\n'));
}

#[test]
fn of_zeros_the_first_one_stays() {
    let row = |values: &[f32]| {
        let row = output_row(floats(values), &StatsColumns::Plain);
        row.split(',').skip(6).take(2).collect::<Vec<_>>().join(" ")
    };
    let mut values = [-5.0; 12];
    (values[1], values[8]) = (0.0, -0.0);
    assert_eq!(row(&values), "0 -5");
    (values[1], values[8]) = (-0.0, 0.0);
    assert_eq!(row(&values), "-0 -5");
    let values = values.map(|v| -v);
    assert_eq!(row(&values), "5 0");
}

/// Any half, but often one that rules make an exception for.
fn half_bits() -> impl Strategy<Value = u16> {
    let special = [0, 0x8000, 0x7c00, 0xfc00, 0x7e00, 0xfe01, 0x0001, 0x3c00];
    prop_oneof![any::<u16>(), prop::sample::select(special.to_vec())]
}

proptest! {
    /// The rule as it is written down, on halves: every pattern of bits occurs.
    #[test]
    fn the_loop_follows_the_rule(bits in prop::collection::vec(half_bits(), 1..40)) {
        let values: Vec<f64> = bits.iter().map(|&b| f16::from_bits(b).to_f64()).collect();
        let (mut max, mut min, mut mean) = (values[0], values[0], 0.0);
        for (i, &x) in values.iter().enumerate() {
            if x > max { max = x; }
            if x < min { min = x; }
            mean += (x - mean) / (i + 1) as f64;
        }
        let n = |test: fn(f64) -> bool| values.iter().filter(|&&x| test(x)).count();
        let (n_neg, n_pos) = (n(|x| x == f64::NEG_INFINITY), n(|x| x == f64::INFINITY));
        if n_neg > 0 && n_pos == 0 { mean = f64::NEG_INFINITY; }
        if n_pos > 0 && n_neg == 0 { mean = f64::INFINITY; }
        let expected = format!(
            "Output,0,{},DT_FLOAT16,ND,{},{},{},{},{},{},{n_neg},{n_pos}",
            2 * bits.len(), bits.len(), general(max), general(min), general(mean), bits.len(),
            n(f64::is_nan),
        );
        let bytes = bits.iter().flat_map(|b| b.to_le_bytes()).collect();
        let shape = Shape::new([bits.len()]).unwrap();
        let tensor = Tensor::from_vec(DType::F16, shape, bytes).unwrap();
        prop_assert_eq!(output_row(tensor, &StatsColumns::Plain), expected);
    }
}

/// The rows of a tensor that was reduced, if that was possible, and of the same tensor with its
/// elements.
fn rows_of_both(whole: &Tensor, reduced: &Tensor, columns: &StatsColumns) -> (String, String) {
    let reduced = output_row(reduced.clone().without_elements(), columns);
    (reduced, output_row(whole.clone(), columns))
}

fn choices() -> [StatsColumns; 2] {
    [
        StatsColumns::Plain,
        StatsColumns::Chosen(vec![
            StatsColumn::Average,
            StatsColumn::Max,
            StatsColumn::L2Norm,
        ]),
    ]
}

#[test]
fn a_long_tensor_whose_average_is_a_tie_keeps_its_elements() {
    // Rows that are centred, as a normalisation gives them: the mean is what rounding left over.
    let centred = |n: usize| {
        let values: Vec<f32> = (0..n)
            .map(|i| ((i * 7919) % 1000) as f32 / 1000.0 - 0.4995)
            .collect();
        floats(&values)
    };
    for columns in choices() {
        let long = centred(64_000);
        assert!(!reduce(long.observed(), &columns));
        let short = centred(1000);
        assert!(reduce(short.observed(), &columns));
        let fresh = centred(1000);
        let (reduced, whole) = rows_of_both(&fresh, &short, &columns);
        assert_eq!(reduced, whole);
    }
}

proptest! {
    #[test]
    fn reduced_rows_are_those_of_the_elements(
        (n_rows, n_columns) in (1..90_usize, 1..90_usize),
        offset in prop_oneof![Just(0.0_f32), Just(1.0), Just(-1e-3), Just(1e20)],
        scale in prop_oneof![Just(0.0_f32), Just(1.0), Just(1e-6)],
        odd in prop::option::of((0..100_usize, prop_oneof![
            Just(f32::NAN), Just(f32::INFINITY), Just(f32::NEG_INFINITY), Just(0.0), Just(-0.0)
        ])),
        seed in any::<u32>(),
    ) {
        let value = |i: usize| {
            let mixed = (i as u32).wrapping_mul(2_654_435_761).wrapping_add(seed);
            offset + scale * (f64::from(mixed) / f64::from(u32::MAX) - 0.5) as f32
        };
        let mut memory: Vec<f32> = (0..n_rows * n_columns).map(value).collect();
        if let Some((i, odd)) = odd {
            let i = i % memory.len();
            memory[i] = odd;
        }
        // Memory has columns; the tensor is the transposed matrix.
        let gathered: Vec<f32> = (0..memory.len())
            .map(|i| memory[(i % n_rows) * n_columns + i / n_rows])
            .collect();
        for columns in choices() {
            let (as_it_lies, row_major) = (floats(&memory), floats(&gathered));
            if reduce(as_it_lies.observed(), &columns) {
                let (reduced, whole) = rows_of_both(&floats(&memory), &as_it_lies, &columns);
                prop_assert_eq!(reduced, whole);
            }
            let permuted = floats(&memory);
            if reduce_permuted(permuted.observed(), &columns) {
                let (reduced, whole) = rows_of_both(&row_major, &permuted, &columns);
                prop_assert_eq!(reduced, whole);
            }
        }
    }
}

#[test]
fn ordinary_permuted_tensors_need_no_elements() {
    let values: Vec<f32> = (0..30_000).map(|i| (i % 977) as f32 - 300.3).collect();
    for columns in choices() {
        assert!(reduce_permuted(floats(&values).observed(), &columns));
        // Of zeros of both signs the first one is printed.
        let mut positive: Vec<f32> = values.iter().map(|v| v.max(0.0)).collect();
        assert!(!reduce_permuted(floats(&positive).observed(), &columns));
        positive[7] = -0.0;
        assert!(!reduce_permuted(floats(&positive).observed(), &columns));
    }
}

#[test]
fn a_tensor_keeps_its_number_behind_one_that_is_left_out() {
    let tensor = Tensor::from_vec(DType::U8, Shape::scalar(), vec![1]).unwrap();
    let mut record = record(vec![tensor.clone(), tensor], vec![]);
    record.inputs.remove(0);
    let text = encode(&record, &StatsColumns::Plain);
    let row = text.lines().nth(1).unwrap();
    assert!(row.starts_with("Input,1,"), "{row}");
}
