//! The attributes of an operator.

use opscope_acl::{Answer, AttributeValue};
use pyo3::prelude::*;

use crate::argument::{ByteArg, ListArg, NumberArg, TextArg, WordArg};
use crate::call::{Pair, code, process};
use crate::table::table;

table! {
    [also set_attr_data_type, set_attr_list_data_type]

    values {
        /// aclopCreateAttr: a handle.
        create_attr() -> usize => process().create_op_attr(), or 0;
    }

    actions {
        /// aclopDestroyAttr. Returns nothing, as in C.
        destroy_attr(attr: WordArg) => process().destroy_op_attr(attr.0);
    }

    codes {
        /// aclopSetAttrBool.
        set_attr_bool(attr: WordArg, attr_name: TextArg, attr_value: ByteArg)
            => set(attr, &attr_name, AttributeValue::Bool(attr_value.0 != 0));
        /// aclopSetAttrInt.
        set_attr_int(attr: WordArg, attr_name: TextArg, attr_value: NumberArg<i64>)
            => set(attr, &attr_name, AttributeValue::Int(attr_value.0));
        /// aclopSetAttrFloat.
        set_attr_float(attr: WordArg, attr_name: TextArg, attr_value: NumberArg<f32>)
            => set(attr, &attr_name, AttributeValue::Float(attr_value.0));
        /// aclopSetAttrString.
        set_attr_string(attr: WordArg, attr_name: TextArg, attr_value: TextArg)
            => set(attr, &attr_name, AttributeValue::String(attr_value.0));
        /// aclopSetAttrListBool: from a list or an array.
        set_attr_list_bool(attr: WordArg, attr_name: TextArg, attr_value: ListArg<ByteArg>) => {
            let values = attr_value.0.iter().map(|value| value.0 != 0).collect();
            set(attr, &attr_name, AttributeValue::Bools(values))
        };
        /// aclopSetAttrListInt: from a list or an array.
        set_attr_list_int(attr: WordArg, attr_name: TextArg, attr_value: ListArg<i64>)
            => set(attr, &attr_name, AttributeValue::Ints(attr_value.0));
        /// aclopSetAttrListFloat: from a list or an array.
        set_attr_list_float(attr: WordArg, attr_name: TextArg, attr_value: ListArg<f32>)
            => set(attr, &attr_name, AttributeValue::Floats(attr_value.0));
        /// aclopSetAttrListString.
        set_attr_list_string(attr: WordArg, attr_name: TextArg, attr_value: ListArg<TextArg>) => {
            let values = attr_value.0.into_iter().map(|value| value.0).collect();
            set(attr, &attr_name, AttributeValue::Strings(values))
        };
        /// aclopSetAttrListListInt: from a list of lists or arrays.
        set_attr_list_list_int(attr: WordArg, attr_name: TextArg, attr_value: ListArg<ListArg<i64>>) => {
            let lists = attr_value.0.into_iter().map(|list| list.0).collect();
            set(attr, &attr_name, AttributeValue::IntLists(lists))
        };
    }
}

fn set(attr: WordArg, name: &TextArg, value: AttributeValue) -> Answer {
    process().set_op_attr(attr.0, &name.0, value)
}

/// aclopSetAttrDataType: the given attributes, and the code.
#[pyfunction]
fn set_attr_data_type(
    py: Python<'_>,
    attr: WordArg,
    attr_name: TextArg,
    attr_value: NumberArg<i32>,
) -> Pair<usize> {
    let value = AttributeValue::DataType(attr_value.0);
    (attr.0, code(py, || set(attr, &attr_name, value)))
}

/// aclopSetAttrListDataType: the given attributes, and the code.
#[pyfunction]
fn set_attr_list_data_type(
    py: Python<'_>,
    attr: WordArg,
    attr_name: TextArg,
    attr_value: ListArg<i32>,
) -> Pair<usize> {
    let value = AttributeValue::DataTypes(attr_value.0);
    (attr.0, code(py, || set(attr, &attr_name, value)))
}
