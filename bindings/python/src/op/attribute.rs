//! The attributes of an operator.

use opscope_acl::AttributeValue;
use pyo3::prelude::*;

use crate::argument::{Byte, List, Number, Text, Word};
use crate::call::{Pair, code, value};
use crate::functions;

pub(super) fn fill(module: &Bound<'_, PyModule>) -> PyResult<()> {
    functions!(
        module,
        create_attr,
        destroy_attr,
        set_attr_bool,
        set_attr_int,
        set_attr_float,
        set_attr_string,
        set_attr_data_type,
        set_attr_list_bool,
        set_attr_list_int,
        set_attr_list_float,
        set_attr_list_string,
        set_attr_list_data_type,
        set_attr_list_list_int,
    );
    Ok(())
}

fn set(py: Python<'_>, attr: Word, name: &Text, to: AttributeValue) -> i32 {
    code(py, |process| process.set_op_attr(attr.0, &name.0, to))
}

/// aclopCreateAttr: a handle.
#[pyfunction]
fn create_attr(py: Python<'_>) -> usize {
    value(py, |process| process.create_op_attr())
}

/// aclopDestroyAttr. Returns nothing, as it does in C.
#[pyfunction]
fn destroy_attr(py: Python<'_>, attr: Word) {
    code(py, |process| process.destroy_op_attr(attr.0));
}

/// aclopSetAttrBool.
#[pyfunction]
fn set_attr_bool(py: Python<'_>, attr: Word, attr_name: Text, attr_value: Byte) -> i32 {
    set(
        py,
        attr,
        &attr_name,
        AttributeValue::Bool(attr_value.0 != 0),
    )
}

/// aclopSetAttrInt.
#[pyfunction]
fn set_attr_int(py: Python<'_>, attr: Word, attr_name: Text, attr_value: Number<i64>) -> i32 {
    set(py, attr, &attr_name, AttributeValue::Int(attr_value.0))
}

/// aclopSetAttrFloat.
#[pyfunction]
fn set_attr_float(py: Python<'_>, attr: Word, attr_name: Text, attr_value: Number<f32>) -> i32 {
    set(py, attr, &attr_name, AttributeValue::Float(attr_value.0))
}

/// aclopSetAttrString.
#[pyfunction]
fn set_attr_string(py: Python<'_>, attr: Word, attr_name: Text, attr_value: Text) -> i32 {
    set(py, attr, &attr_name, AttributeValue::String(attr_value.0))
}

/// aclopSetAttrDataType: the attributes that were given, and the code.
#[pyfunction]
fn set_attr_data_type(
    py: Python<'_>,
    attr: Word,
    attr_name: Text,
    attr_value: Number<i32>,
) -> Pair<usize> {
    let status = set(py, attr, &attr_name, AttributeValue::DataType(attr_value.0));
    (attr.0, status)
}

/// aclopSetAttrListBool: of a list or an array.
#[pyfunction]
fn set_attr_list_bool(py: Python<'_>, attr: Word, attr_name: Text, attr_value: List<Byte>) -> i32 {
    let values = attr_value.0.iter().map(|value| value.0 != 0).collect();
    set(py, attr, &attr_name, AttributeValue::Bools(values))
}

/// aclopSetAttrListInt: of a list or an array.
#[pyfunction]
fn set_attr_list_int(py: Python<'_>, attr: Word, attr_name: Text, attr_value: List<i64>) -> i32 {
    set(py, attr, &attr_name, AttributeValue::Ints(attr_value.0))
}

/// aclopSetAttrListFloat: of a list or an array.
#[pyfunction]
fn set_attr_list_float(py: Python<'_>, attr: Word, attr_name: Text, attr_value: List<f32>) -> i32 {
    set(py, attr, &attr_name, AttributeValue::Floats(attr_value.0))
}

/// aclopSetAttrListString.
#[pyfunction]
fn set_attr_list_string(
    py: Python<'_>,
    attr: Word,
    attr_name: Text,
    attr_value: List<Text>,
) -> i32 {
    let values = attr_value.0.into_iter().map(|value| value.0).collect();
    set(py, attr, &attr_name, AttributeValue::Strings(values))
}

/// aclopSetAttrListDataType: the attributes that were given, and the code.
#[pyfunction]
fn set_attr_list_data_type(
    py: Python<'_>,
    attr: Word,
    attr_name: Text,
    attr_value: List<i32>,
) -> Pair<usize> {
    let status = set(
        py,
        attr,
        &attr_name,
        AttributeValue::DataTypes(attr_value.0),
    );
    (attr.0, status)
}

/// aclopSetAttrListListInt: of a list of lists or arrays.
#[pyfunction]
fn set_attr_list_list_int(
    py: Python<'_>,
    attr: Word,
    attr_name: Text,
    attr_value: List<List<i64>>,
) -> i32 {
    let lists = attr_value.0.into_iter().map(|list| list.0).collect();
    set(py, attr, &attr_name, AttributeValue::IntLists(lists))
}
