//! Attributes of operators.

use opscope_acl::{Answer, AttributeValue, Handle, status};

use crate::border::{Code, call, count, null, process};
use crate::pointer::{CText, InPointer};
use crate::table::{actions, values};

/// Functions that set an attribute, after the parameters handle and name: `name(the other
/// parameters) => value;`
macro_rules! attributes {
    ($($name:ident($($parameter:ident: $type:ty),*) => $value:expr;)+) => {$(
        #[unsafe(no_mangle)]
        extern "C" fn $name(attributes: Handle, name: CText, $($parameter: $type),*) -> Code {
            const FUNCTION: &str = stringify!($name);
            call(|| {
                if attributes == 0 {
                    return Err(null(FUNCTION, "attr"));
                }
                let name = name.require_name(FUNCTION, "attrName")?;
                process().set_op_attr(attributes, name, $value)
            })
        }
    )+};
}

values! {
    aclopCreateAttr() -> Handle => process().create_op_attr(), or 0;
}

attributes! {
    aclopSetAttrBool(value: u8) => AttributeValue::Bool(truth(value)?);
    aclopSetAttrInt(value: i64) => AttributeValue::Int(value);
    aclopSetAttrFloat(value: f32) => AttributeValue::Float(value);
    aclopSetAttrString(value: CText) => AttributeValue::String(text(FUNCTION, value)?);
    aclopSetAttrDataType(value: i32) => AttributeValue::DataType(value);

    aclopSetAttrListBool(n: i32, values: InPointer<u8>)
        => AttributeValue::Bools(list(FUNCTION, n, values, truth)?);
    aclopSetAttrListInt(n: i32, values: InPointer<i64>)
        => AttributeValue::Ints(list(FUNCTION, n, values, Ok)?);
    aclopSetAttrListFloat(n: i32, values: InPointer<f32>)
        => AttributeValue::Floats(list(FUNCTION, n, values, Ok)?);
    aclopSetAttrListString(n: i32, values: InPointer<CText>)
        => AttributeValue::Strings(list(FUNCTION, n, values, |value| text(FUNCTION, value))?);
    aclopSetAttrListDataType(n: i32, values: InPointer<i32>)
        => AttributeValue::DataTypes(list(FUNCTION, n, values, Ok)?);
    aclopSetAttrListListInt(n: i32, counts: InPointer<i32>, values: InPointer<InPointer<i64>>)
        => AttributeValue::IntLists(lists(FUNCTION, n, counts, values)?);
}

actions! {
    aclopDestroyAttr(attributes: Handle) => process().destroy_op_attr(attributes);
}

/// C's two truth values.
fn truth(value: u8) -> Answer<bool> {
    match value {
        0 => Ok(false),
        1 => Ok(true),
        _ => Err(status::INVALID_PARAM),
    }
}

/// A required string.
fn text(function: &'static str, value: CText) -> Answer<String> {
    value.require_name(function, "attrValue").map(str::to_owned)
}

fn list<T: Copy, V>(
    function: &'static str,
    n: i32,
    values: InPointer<T>,
    convert: impl Fn(T) -> Answer<V>,
) -> Answer<Vec<V>> {
    let n = count(n)?;
    if n != 0 {
        values.require(function, "values")?;
    }
    values.list(n)?.into_iter().map(convert).collect()
}

fn lists(
    function: &'static str,
    n: i32,
    counts: InPointer<i32>,
    values: InPointer<InPointer<i64>>,
) -> Answer<Vec<Vec<i64>>> {
    let n = count(n)?;
    if n != 0 {
        // One report for both: the vendor names the outer list whichever is null.
        counts.require(function, "values")?;
        values.require(function, "values")?;
    }
    let lists = values.list(n)?.into_iter().zip(counts.list(n)?);
    lists.map(|(values, n)| values.list(count(n)?)).collect()
}
