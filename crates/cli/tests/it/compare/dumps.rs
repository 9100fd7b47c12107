//! Small dumps.

use std::fs;
use std::path::{Path, PathBuf};

use opscope_store::file_format::dump_data::{DumpHeader, TensorEntry, dtype_code, with_length};
use opscope_store::file_format::npy;
use opscope_tensor::{DType, Shape};

/// Number of operators of [`npy`].
pub(crate) const N_OPERATORS: usize = 4;

/// Values that a slot of a dump has instead of the right ones.
pub(crate) type Changes<'a> = &'a [(&'a str, f32)];

fn array(values: &[f32]) -> Vec<u8> {
    let shape = Shape::new([2, values.len() / 2]).unwrap();
    let mut bytes = npy::encode_header(DType::F32, &shape).unwrap();
    bytes.extend(values.iter().flat_map(|value| value.to_le_bytes()));
    bytes
}

/// Name of the file of a slot of an operator.
pub(crate) fn file(operator: usize, slot: &str) -> String {
    format!("Mul.net_mul_{operator}.{operator}.0.170000000000000{operator}.{slot}.0.npy")
}

/// A directory of arrays: a chain of operators, each with an input and an output. The last element
/// of each slot in `changes`, such as `2.output`, is another.
pub(crate) fn npy(dir: &Path, changes: Changes<'_>) -> PathBuf {
    fs::create_dir_all(dir).unwrap();
    for operator in 0..N_OPERATORS {
        for (slot, factor) in [("input", 1.0_f32), ("output", 1.5)] {
            let scale = 1.5_f32.powi(i32::try_from(operator).unwrap()) * factor;
            let mut values: Vec<f32> = (1..=6_u8).map(|i| f32::from(i) * scale).collect();
            let name = format!("{operator}.{slot}");
            if let Some((_, value)) = changes.iter().find(|(changed, _)| *changed == name) {
                values[5] = *value;
            }
            fs::write(dir.join(file(operator, slot)), array(&values)).unwrap();
        }
    }
    dir.to_owned()
}

/// A dump file of the runtime, with one output, of an operator with this name.
pub(crate) fn dump_data(dir: &Path, file: &str, op_name: &str, values: &[f32]) {
    fs::create_dir_all(dir).unwrap();
    let header = DumpHeader {
        version: "1.0".to_owned(),
        dump_time: 1_700_000_000_000_000,
        op_name: op_name.to_owned(),
        outputs: vec![TensorEntry {
            data_type: dtype_code(DType::F32).unwrap(),
            format: 2,
            shape: Some(vec![values.len() as u64]),
            size: values.len() as u64 * 4,
            ..TensorEntry::default()
        }],
        ..DumpHeader::default()
    };
    let mut bytes = with_length(&header);
    bytes.extend(values.iter().flat_map(|value| value.to_le_bytes()));
    fs::write(dir.join(file), bytes).unwrap();
}
