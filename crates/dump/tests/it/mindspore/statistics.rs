//! Rows of statistics against those that MindSpore wrote of the same tensors, byte for byte.

use std::collections::HashMap;
use std::fs;
use std::path::Path;
use std::sync::Arc;

use opscope_capture::Sink;
use opscope_dump::{MindSporeOptions, MindSporeSink};
use opscope_store::file_format::statistic_csv::{self, StatisticCategory, StatisticSubject};
use opscope_store::record::{ModelId, Operator, Record, SlotSide};
use opscope_store::tree::mindspore::TreeTarget;
use opscope_tensor::{DType, Shape, Tensor};

use super::run::{options, text};

fn read(path: &str) -> Vec<u8> {
    fs::read(Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(path)).unwrap()
}

fn table(path: &str) -> (String, statistic_csv::StatisticRows) {
    let text = String::from_utf8(read(path)).unwrap();
    let table = statistic_csv::parse(&text).unwrap();
    assert!(table.errors.is_empty(), "{path}");
    (text, table)
}

/// The recorded tensors, by the operator's name.
fn tensors() -> HashMap<String, Tensor> {
    let (_, table) = table("tensor/tests/data/statistics/statistic.csv");
    let mut bytes = &read("tensor/tests/data/statistics/tensors.bin")[..];
    let mut tensors = HashMap::new();
    for (subject, _) in table.rows {
        let (own, rest) = bytes.split_at(subject.n_bytes as usize);
        bytes = rest;
        let dtype: DType = subject.dtype.parse().unwrap();
        let dims: Vec<usize> = subject.shape.iter().map(|&n| n as usize).collect();
        let shape = Shape::new(dims).unwrap();
        let tensor = Tensor::from_vec(dtype, shape, own.to_vec()).unwrap();
        tensors.insert(subject.op_name, tensor);
    }
    assert!(bytes.is_empty() && tensors.len() == 53);
    tensors
}

fn record(subject: &StatisticSubject, tensor: Tensor) -> Record {
    let slot = vec![(subject.slot as usize, tensor)];
    let (inputs, outputs) = match subject.side {
        SlotSide::Input => (slot, Vec::new()),
        SlotSide::Output => (Vec::new(), slot),
    };
    Record {
        model: Arc::new(ModelId::default()),
        operator: Arc::new(Operator {
            op_type: subject.op_type.clone(),
            op_name: subject.op_name.clone(),
            ..Operator::default()
        }),
        step: 0,
        timestamp_us: subject.timestamp,
        inputs,
        outputs,
    }
}

#[test]
fn every_recorded_row_is_written_again() {
    let tensors = tensors();
    for (name, n_rows) in [("all", 53), ("default", 12), ("reordered", 20)] {
        let path = format!("store/tests/golden/mindspore/library/statistic_{name}.csv");
        let (expected, table) = table(&path);
        let category = |column: &String| StatisticCategory::from_column(column).unwrap();
        let dir = tempfile::tempdir().unwrap();
        let sink = MindSporeSink::create(MindSporeOptions {
            statistics: Some(table.columns.iter().map(category).collect()),
            has_tensors: false,
            ..options(dir.path(), TreeTarget::Gpu)
        })
        .unwrap();
        for (subject, _) in &table.rows {
            let tensor = tensors[&subject.op_name].clone();
            sink.write(&record(subject, tensor)).unwrap();
        }
        assert_eq!(table.rows.len(), n_rows);
        // The sign of a NaN is the processor's.
        let written = text(dir.path(), "rank_0/Net/0/0/statistic.csv");
        assert_eq!(
            written.replace("-nan", "nan"),
            expected.replace("-nan", "nan")
        );
    }
}
