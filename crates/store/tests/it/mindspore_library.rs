//! Compares our files with those that MindSpore's own code writes for given tensors.

use std::fs;
use std::path::Path;

use opscope_store::file_format::ms_dtype;
use opscope_store::file_format::npy::{self, NpyHeader, mindspore_array, mindspore_header};
use opscope_store::file_format::statistic_csv::{self, StatisticCategory, StatisticCell};
use opscope_store::record::SlotSide;
use opscope_store::tree::mindspore::TensorFileName;
use opscope_tensor::{DType, Layout, Shape, TensorView};
use serde_json::Value;

fn golden(name: &str) -> String {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/mindspore/library");
    fs::read_to_string(dir.join(name)).unwrap()
}

fn cases(name: &str) -> Vec<Value> {
    let text = golden(name);
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

fn hex(text: &str) -> Vec<u8> {
    let digits = text.as_bytes().chunks(2);
    digits
        .map(|two| u8::from_str_radix(str::from_utf8(two).unwrap(), 16).unwrap())
        .collect()
}

fn shape(case: &Value) -> Shape {
    let dims: Vec<usize> = serde_json::from_value(case["shape"].clone()).unwrap();
    Shape::new(dims).unwrap()
}

#[test]
fn headers_are_the_same_bytes() {
    let cases = cases("npy_headers.jsonl");
    assert_eq!(cases.len(), 67);
    for case in &cases {
        let dtype = ms_dtype::from_name(case["dtype"].as_str().unwrap());
        let shape = shape(case);
        if case["written"] == true {
            let expected = hex(case["header_hex"].as_str().unwrap());
            assert_eq!(
                mindspore_header(dtype.unwrap(), &shape).unwrap(),
                expected,
                "{case}"
            );
            let (header, n) = NpyHeader::decode(&expected).unwrap();
            assert_eq!(
                (header.dtype, &header.shape, n),
                (dtype.unwrap(), &shape, expected.len())
            );
        } else if dtype != Some(DType::I4) {
            // int4 has no header of its own here either: it is widened first.
            let bytes = vec![0; case["payload_bytes"].as_u64().unwrap() as usize];
            let array = dtype.map(|dtype| {
                let (shape, bytes) = (&shape, &bytes[..]);
                let layout = Layout::Nd;
                mindspore_array(TensorView {
                    dtype,
                    shape,
                    layout,
                    bytes,
                })
                .is_ok()
            });
            assert_ne!(array, Some(true), "{case}");
        }
    }
    assert!(mindspore_header(DType::I4, &Shape::scalar()).is_none());
}

#[test]
fn converted_arrays_are_the_same_bytes() {
    let cases = cases("npy_files.jsonl");
    assert_eq!(cases.len(), 3);
    for case in &cases {
        let name = TensorFileName::parse(case["file"].as_str().unwrap()).unwrap();
        let dtype = name.known_dtype().unwrap();
        assert_eq!(
            Some(dtype),
            ms_dtype::from_name(case["dtype"].as_str().unwrap())
        );
        let shape = shape(case);
        let bytes = hex(case["raw_hex"].as_str().unwrap());
        let array = mindspore_array(TensorView::new(dtype, &shape, &bytes));
        let array = array.unwrap();
        let expected = hex(case["npy_hex"].as_str().unwrap());
        assert_eq!(
            [array.header, array.payload.into_owned()].concat(),
            expected
        );
        assert!(npy::from_bytes(expected).is_ok());
    }
}

#[test]
fn statistics_come_back() {
    let mut n_rows = 0;
    for name in ["all", "default", "reordered"] {
        let text = golden(&format!("statistic_{name}.csv"));
        let table = statistic_csv::parse(&text).unwrap();
        assert!(table.errors.is_empty());
        let categories: Vec<StatisticCategory> = table
            .columns
            .iter()
            .map(|column| StatisticCategory::from_column(column).unwrap())
            .collect();
        let mut written = statistic_csv::header(&categories);
        for (subject, values) in &table.rows {
            assert!(subject.op_name.starts_with("Default/"));
            assert!(matches!(subject.side, SlotSide::Input | SlotSide::Output));
            let cells: Vec<StatisticCell> = categories
                .iter()
                .zip(values)
                .map(|(category, value)| cell(*category, value.as_deref().unwrap()))
                .collect();
            written += &statistic_csv::row(subject, &cells);
            n_rows += 1;
        }
        assert_eq!(written, text);
    }
    assert_eq!(n_rows, 53 + 12 + 20);
}

/// Real numbers go through a float, so that their text is generated again.
fn cell(category: StatisticCategory, text: &str) -> StatisticCell {
    match category {
        StatisticCategory::Md5 | StatisticCategory::Sha1 => StatisticCell::Text(text.to_owned()),
        StatisticCategory::Max
        | StatisticCategory::Min
        | StatisticCategory::Average
        | StatisticCategory::L2Norm => {
            let value: f64 = text.trim_start_matches('-').parse().unwrap();
            let sign = if text.starts_with('-') { -1.0 } else { 1.0 };
            StatisticCell::Real(value.copysign(sign))
        }
        _ => StatisticCell::Count(text.parse().unwrap()),
    }
}
