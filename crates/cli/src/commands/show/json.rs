//! Output of `show` as JSON.

use std::path::Path;

use opscope_analysis::ElementValue;
use opscope_analysis::describe::{FileDescription, TensorDescription};
use opscope_analysis::overflow::Finding;
use opscope_analysis::overview::Overview;
use opscope_store::reader::DumpIndex;
use serde_json::{Value, json};

use crate::exit::chain;
use crate::format;

pub(super) fn file_json(file: &FileDescription) -> Value {
    let facts = &file.facts;
    let attrs: serde_json::Map<_, _> = facts
        .attributes
        .iter()
        .map(|(name, value)| (name.clone(), value.clone().into()))
        .collect();
    let records: Vec<Value> = file
        .records
        .iter()
        .map(|record| {
            json!({
                "slot": record.slot,
                "record": record.record.to_json(),
                "overflows": record.findings.iter().map(finding_json).collect::<Vec<_>>(),
            })
        })
        .collect();
    json!({
        "path": file.path,
        "format": file.kind.name(),
        "bytes": file.n_bytes,
        "decompressed_bytes": file.n_decompressed,
        "header_bytes": file.n_start,
        "file_version": facts.version,
        "dump_time": facts.dump_time,
        "op_name": facts.op_name,
        "name": file.array_name.as_ref().map(super::mindspore::name_json),
        "attrs": attrs,
        "dfx_message": facts.message,
        "tensors": file.tensors.iter().map(tensor_json).collect::<Vec<_>>(),
        "records": records,
        "buffers": file.buffer_sizes,
        "spaces": file.space_sizes,
    })
}

/// An overflow as JSON.
pub(crate) fn finding_json(finding: &Finding) -> Value {
    json!({
        "unit": finding.unit,
        "task_id": finding.task_id,
        "stream_id": finding.stream_id,
        "context_id": finding.context_id,
        "thread_id": finding.thread_id,
        "status": finding.status_text(),
        "causes": finding.causes,
    })
}

/// A tensor as JSON.
pub(crate) fn tensor_json(tensor: &TensorDescription) -> Value {
    let stats = tensor.stats.as_ref().map(|stats| {
        json!({
            "elements": stats.counts.n_elements,
            "min": format::json_number(stats.min),
            "max": format::json_number(stats.max),
            "mean": format::json_number(stats.mean),
            "l2": format::json_number(stats.l2),
            "nan": stats.counts.n_nan,
            "pos_inf": stats.counts.n_pos_inf,
            "neg_inf": stats.counts.n_neg_inf,
        })
    });
    let texts = tensor.first_texts.iter().map(|text| text.as_str().into());
    let first: Vec<Value> = tensor.first.iter().map(element_json).chain(texts).collect();
    json!({
        "slot": tensor.slot,
        "dtype": tensor.stored.dtype.to_string(),
        "layout": tensor.stored.layout.to_string(),
        "shape": tensor.dims(),
        "original_shape": tensor.stored.original_shape,
        "bytes": tensor.stored.n_bytes,
        "stats": stats,
        "first": first,
        "problem": tensor.problem,
    })
}

fn element_json(element: &ElementValue) -> Value {
    match *element {
        ElementValue::Float(value) => format::json_number(value),
        ElementValue::Signed(value) => value.into(),
        ElementValue::Unsigned(value) => value.into(),
        ElementValue::Bool(value) => value.into(),
        ElementValue::Complex(re, im) => json!([format::json_number(re), format::json_number(im)]),
    }
}

pub(super) fn overview_json(path: &Path, overview: &Overview, index: &DumpIndex) -> Value {
    json!({
        "path": path,
        "files": overview.n_files,
        "overflow_record_files": overview.n_record_files,
        "bytes": overview.n_bytes,
        "directories": overview.dirs,
        "passed_over": crate::passed_over::to_json(&index.passed_over),
        "operators": overview.operators.iter().map(|operator| {
        json!({
            "task_id": operator.task_id,
            "op_type": operator.op_type,
            "op_name": operator.op_name,
            "ranks": operator.ranks,
            "files": operator.n_files,
            "inputs": operator.n_inputs,
            "outputs": operator.n_outputs,
            "bytes": operator.n_bytes,
            "overflow_record": operator.is_record,
        })
    }).collect::<Vec<_>>(),
        "errors": index.errors.iter().map(|error| chain(error)).collect::<Vec<_>>(),
    })
}
