//! Attributes of operators.

use opscope_acl::{Answer, AttributeValue, Handle, status};

use crate::border::{Code, call, count, null, process, value};
use crate::pointer::{In, Text};

#[unsafe(no_mangle)]
extern "C" fn aclopCreateAttr() -> Handle {
    value(0, || process().create_op_attr())
}

#[unsafe(no_mangle)]
extern "C" fn aclopDestroyAttr(attributes: Handle) {
    call(|| process().destroy_op_attr(attributes));
}

/// Sets an attribute; `null` reports a name that is not there.
fn set(
    function: &'static str,
    attributes: Handle,
    name: Text,
    work: impl FnOnce() -> Answer<AttributeValue>,
) -> Code {
    call(|| {
        if attributes == 0 {
            return Err(null(function, "attr"));
        }
        let name = name.required(|| null(function, "attrName"))?;
        process().set_op_attr(attributes, name, work()?)
    })
}

/// Sets an attribute that is a list.
fn set_list<T: Copy>(
    function: &'static str,
    attributes: Handle,
    name: Text,
    n: i32,
    values: In<T>,
    make: impl FnOnce(Vec<T>) -> Answer<AttributeValue>,
) -> Code {
    set(function, attributes, name, || {
        let n = count(n)?;
        if n != 0 && values.is_null() {
            return Err(null(function, "values"));
        }
        make(values.list(n)?)
    })
}

/// Text that has to be there.
fn text(function: &'static str, value: Text) -> Answer<String> {
    value
        .required(|| null(function, "attrValue"))
        .map(str::to_owned)
}

/// Both numbers that C has for a truth value.
fn truth(value: u8) -> Answer<bool> {
    match value {
        0 => Ok(false),
        1 => Ok(true),
        _ => Err(status::INVALID_PARAM),
    }
}

#[unsafe(no_mangle)]
extern "C" fn aclopSetAttrBool(attributes: Handle, name: Text, value: u8) -> Code {
    set("aclopSetAttrBool", attributes, name, || {
        truth(value).map(AttributeValue::Bool)
    })
}

#[unsafe(no_mangle)]
extern "C" fn aclopSetAttrInt(attributes: Handle, name: Text, value: i64) -> Code {
    set("aclopSetAttrInt", attributes, name, || {
        Ok(AttributeValue::Int(value))
    })
}

#[unsafe(no_mangle)]
extern "C" fn aclopSetAttrFloat(attributes: Handle, name: Text, value: f32) -> Code {
    set("aclopSetAttrFloat", attributes, name, || {
        Ok(AttributeValue::Float(value))
    })
}

#[unsafe(no_mangle)]
extern "C" fn aclopSetAttrString(attributes: Handle, name: Text, value: Text) -> Code {
    set("aclopSetAttrString", attributes, name, || {
        text("aclopSetAttrString", value).map(AttributeValue::String)
    })
}

#[unsafe(no_mangle)]
extern "C" fn aclopSetAttrDataType(attributes: Handle, name: Text, value: i32) -> Code {
    set("aclopSetAttrDataType", attributes, name, || {
        Ok(AttributeValue::DataType(value))
    })
}

#[unsafe(no_mangle)]
extern "C" fn aclopSetAttrListDataType(
    attributes: Handle,
    name: Text,
    n: i32,
    values: In<i32>,
) -> Code {
    set_list(
        "aclopSetAttrListDataType",
        attributes,
        name,
        n,
        values,
        |values| Ok(AttributeValue::DataTypes(values)),
    )
}

#[unsafe(no_mangle)]
extern "C" fn aclopSetAttrListBool(attributes: Handle, name: Text, n: i32, values: In<u8>) -> Code {
    set_list(
        "aclopSetAttrListBool",
        attributes,
        name,
        n,
        values,
        |values| {
            let values = values.into_iter().map(truth).collect::<Answer<Vec<_>>>()?;
            Ok(AttributeValue::Bools(values))
        },
    )
}

#[unsafe(no_mangle)]
extern "C" fn aclopSetAttrListInt(attributes: Handle, name: Text, n: i32, values: In<i64>) -> Code {
    set_list(
        "aclopSetAttrListInt",
        attributes,
        name,
        n,
        values,
        |values| Ok(AttributeValue::Ints(values)),
    )
}

#[unsafe(no_mangle)]
extern "C" fn aclopSetAttrListFloat(
    attributes: Handle,
    name: Text,
    n: i32,
    values: In<f32>,
) -> Code {
    set_list(
        "aclopSetAttrListFloat",
        attributes,
        name,
        n,
        values,
        |values| Ok(AttributeValue::Floats(values)),
    )
}

#[unsafe(no_mangle)]
extern "C" fn aclopSetAttrListString(
    attributes: Handle,
    name: Text,
    n: i32,
    values: In<Text>,
) -> Code {
    set_list(
        "aclopSetAttrListString",
        attributes,
        name,
        n,
        values,
        |values| {
            let values = values
                .into_iter()
                .map(|value| text("aclopSetAttrListString", value))
                .collect::<Answer<Vec<_>>>()?;
            Ok(AttributeValue::Strings(values))
        },
    )
}

#[unsafe(no_mangle)]
extern "C" fn aclopSetAttrListListInt(
    attributes: Handle,
    name: Text,
    n: i32,
    counts: In<i32>,
    values: In<In<i64>>,
) -> Code {
    set("aclopSetAttrListListInt", attributes, name, || {
        let n = count(n)?;
        if n != 0 && (counts.is_null() || values.is_null()) {
            return Err(null("aclopSetAttrListListInt", "values"));
        }
        let lists = values.list(n)?.into_iter().zip(counts.list(n)?);
        let lists = lists
            .map(|(values, n)| values.list(count(n)?))
            .collect::<Answer<Vec<_>>>()?;
        Ok(AttributeValue::IntLists(lists))
    })
}
