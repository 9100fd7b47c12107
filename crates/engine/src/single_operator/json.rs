//! Descriptions of operators in JSON.
//!
//! One object, or a list of them as the vendor's model converter takes it:
//!
//! ```json
//! [{"op": "Add",
//!   "input_desc": [{"format": "ND", "shape": [8, 16], "type": "int32"},
//!                  {"format": "ND", "shape": [8, 16], "type": "int32"}],
//!   "output_desc": [{"format": "ND", "shape": [8, 16], "type": "int32"}],
//!   "attr": [{"name": "axis", "type": "int", "value": 1}]}]
//! ```
//!
//! `docs/single-operator.md` lists every key. Keys that concern devices only are ignored.

use std::collections::{HashMap, HashSet};

use opscope_tensor::{DType, Layout, Shape, Tensor};
use serde_json::{Map, Value};

use super::operator::{
    OPSET_DEFAULT, Operand, OperatorAttribute, OperatorError, SingleOperator, numbered_name,
};
use crate::DeclaredDim;

/// Most operators in one description.
pub const N_OPERATORS_MAX: usize = 10_000;
/// Most inputs, outputs or attributes of one operator.
const N_OPERANDS_MAX: usize = 1024;

/// Reads one operator or a list of them.
///
/// # Errors
/// [`OperatorError`] with the place and what was expected there.
pub fn read_json(text: &str) -> Result<Vec<SingleOperator>, OperatorError> {
    // Editors on some systems begin a file with a byte order mark.
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let root: Value = serde_json::from_str(text).map_err(|error| {
        let reason = error.to_string();
        OperatorError::Syntax {
            line: error.line(),
            column: error.column(),
            reason: reason
                .split(" at line ")
                .next()
                .unwrap_or(&reason)
                .to_owned(),
        }
    })?;
    match &root {
        Value::Array(items) if items.is_empty() => Err(error("", "the list names no operator")),
        Value::Array(items) if items.len() > N_OPERATORS_MAX => Err(error(
            "",
            format!("{} operators, at most {N_OPERATORS_MAX}", items.len()),
        )),
        Value::Array(items) => {
            let items = items.iter().enumerate();
            let operators = items.map(|(i, item)| operator(item, &format!("/{i}")));
            Ok(named(operators.collect::<Result<_, _>>()?))
        }
        item => Ok(named(vec![operator(item, "")?])),
    }
}

/// Names the operators that have none: by their type and how many of it were named so before,
/// leaving out names that are given.
fn named(mut operators: Vec<SingleOperator>) -> Vec<SingleOperator> {
    let names = operators.iter().map(|operator| operator.op_name.clone());
    let taken: HashSet<String> = names.collect();
    let mut counts: HashMap<String, u64> = HashMap::new();
    for operator in operators
        .iter_mut()
        .filter(|operator| operator.op_name.is_empty())
    {
        let count = counts.entry(operator.op_type.clone()).or_default();
        loop {
            let name = numbered_name(&operator.op_type, *count);
            *count += 1;
            if !taken.contains(&name) {
                operator.op_name = name;
                break;
            }
        }
    }
    operators
}

fn operator(value: &Value, at: &str) -> Result<SingleOperator, OperatorError> {
    let object = as_object(value, at)?;
    let (key, op_type) = first(object, &["op", "op_type", "type"])
        .ok_or_else(|| error(at, "`op`, the operator's type, is missing"))?;
    let op_type = as_text(op_type, &format!("{at}/{key}"))?;
    if op_type.is_empty() {
        return Err(error(
            &format!("{at}/{key}"),
            "the operator's type is empty",
        ));
    }
    let op_name = match object.get("name") {
        Some(name) => as_text(name, &format!("{at}/name"))?,
        None => "",
    };
    let opset = match object.get("opset") {
        Some(value) => value
            .as_i64()
            .filter(|version| (1..=1000).contains(version))
            .ok_or_else(|| {
                error(
                    &format!("{at}/opset"),
                    "expected the number of an operator set",
                )
            })?,
        None => OPSET_DEFAULT,
    };
    let inputs = operands(object, &["input_desc", "inputs"], "x", at)?;
    let mut outputs = operands(object, &["output_desc", "outputs"], "y", at)?;
    // Most operators have one output of the type of the first input, so the usual case needs no
    // word.
    if outputs.is_empty() {
        let dtype = inputs
            .iter()
            .flatten()
            .next()
            .map_or(DType::F32, |input| input.dtype);
        outputs.push(Some(Operand {
            name: "y0".into(),
            dtype,
            dims: None,
            constant: None,
            layout: Layout::Nd,
            origin_layout: None,
        }));
    }
    Ok(SingleOperator {
        op_type: op_type.to_owned(),
        op_name: op_name.to_owned(),
        opset,
        inputs,
        outputs,
        attributes: attributes(object, at)?,
    })
}

fn operands(
    object: &Map<String, Value>,
    keys: &[&str],
    prefix: &str,
    at: &str,
) -> Result<Vec<Option<Operand>>, OperatorError> {
    let Some((key, value)) = first(object, keys) else {
        return Ok(Vec::new());
    };
    let at = format!("{at}/{key}");
    let items = as_array(value, &at)?;
    let mut operands: Vec<Option<Operand>> = Vec::with_capacity(items.len());
    for (i, item) in items.iter().enumerate() {
        let at = format!("{at}/{i}");
        let operand = operand(item, &format!("{prefix}{i}"), &at)?;
        if operands
            .iter()
            .flatten()
            .any(|known| operand.as_ref().is_some_and(|o| o.name == known.name))
        {
            return Err(error(
                &format!("{at}/name"),
                "another operand has this name already",
            ));
        }
        operands.push(operand);
    }
    Ok(operands)
}

/// `None` for a place that is left out, which the vendor marks by the format `RESERVED`.
fn operand(value: &Value, name: &str, at: &str) -> Result<Option<Operand>, OperatorError> {
    let object = as_object(value, at)?;
    let is_reserved = |key: &str, word: &str| {
        let text = object.get(key).and_then(Value::as_str);
        text.is_some_and(|text| text.eq_ignore_ascii_case(word))
    };
    // An optional operand that is absent.
    if is_reserved("format", "RESERVED") || is_reserved("type", "UNDEFINED") {
        return Ok(None);
    }
    let name = match object.get("name") {
        Some(given) => as_text(given, &format!("{at}/name"))?,
        None => name,
    };
    let (key, given) = first(object, &["type", "dtype", "data_type"])
        .ok_or_else(|| error(at, "`type`, the dtype of the elements, is missing"))?;
    let type_at = format!("{at}/{key}");
    let text = as_text(given, &type_at)?;
    let dtype = dtype(text).ok_or_else(|| {
        error(
            &type_at,
            format!("found `{text}`, expected a dtype such as float16 or int32"),
        )
    })?;
    let dims = match object.get("shape") {
        Some(shape) => Some(dims(shape, &format!("{at}/shape"))?),
        None => None,
    };
    let is_constant = object
        .get("is_const")
        .is_some_and(|v| v.as_bool() == Some(true));
    let constant = match (object.get("const_value"), is_constant) {
        (Some(value), _) => Some(constant(
            value,
            dtype,
            dims.as_deref(),
            &format!("{at}/const_value"),
        )?),
        (None, true) => return Err(error(at, "`is_const` is set and `const_value` is missing")),
        (None, false) => None,
    };
    Ok(Some(Operand {
        name: name.to_owned(),
        dtype,
        dims,
        constant,
        layout: layout(object, "format", at)?.unwrap_or_default(),
        origin_layout: layout(object, "origin_format", at)?,
    }))
}

/// A layout by the vendor's name, in either case; `None` where the key is absent or says that it is
/// not known.
fn layout(
    object: &Map<String, Value>,
    key: &str,
    at: &str,
) -> Result<Option<Layout>, OperatorError> {
    let Some(value) = object.get(key) else {
        return Ok(None);
    };
    let at = format!("{at}/{key}");
    let text = as_text(value, &at)?.to_ascii_uppercase();
    let name = text
        // The vendor's headers use the same names with these prefixes.
        .trim_start_matches("ACL_")
        .trim_start_matches("FORMAT_");
    if matches!(name, "" | "UNDEFINED") {
        return Ok(None);
    }
    let known = Layout::ALL
        .iter()
        .find(|known| known.name().eq_ignore_ascii_case(name));
    known.copied().map(Some).ok_or_else(|| {
        let reason = format!("found `{text}`, expected a format such as ND, NCHW, NHWC or HWCN");
        error(&at, reason)
    })
}

fn dims(value: &Value, at: &str) -> Result<Vec<DeclaredDim>, OperatorError> {
    as_array(value, at)?
        .iter()
        .enumerate()
        .map(|(i, value)| match value.as_i64() {
            // -1 is the vendor's code for an unknown dimension.
            Some(-1) => Ok(DeclaredDim::Unknown),
            Some(n) if n >= 0 => usize::try_from(n)
                .map(DeclaredDim::Fixed)
                .map_err(|_| error(at, "too large")),
            _ => Err(error(
                &format!("{at}/{i}"),
                format!("found {value}, expected a dimension or -1"),
            )),
        })
        .collect()
}

/// A constant's elements, in C order, as one number or a list.
fn constant(
    value: &Value,
    dtype: DType,
    dims: Option<&[DeclaredDim]>,
    at: &str,
) -> Result<Tensor, OperatorError> {
    let mut numbers = Vec::new();
    // Lists may be nested like the shape or flat; the order of the elements is the same.
    flatten(value, at, &mut numbers)?;
    let fixed = dims.map(|dims| {
        dims.iter()
            .map(|dim| {
                if let DeclaredDim::Fixed(n) = dim {
                    Some(*n)
                } else {
                    None
                }
            })
            .collect::<Option<Vec<usize>>>()
    });
    let dims = match fixed {
        Some(Some(dims)) => dims,
        Some(None) => return Err(error(at, "a constant needs a shape without -1")),
        None if value.is_array() => vec![numbers.len()],
        None => Vec::new(),
    };
    let shape = Shape::new(dims).map_err(|reason| error(at, reason.to_string()))?;
    let mut bytes = Vec::with_capacity(numbers.len() * 8);
    for number in &numbers {
        append(&mut bytes, number, dtype).ok_or_else(|| {
            error(
                at,
                format!("`{number}` is not a value of the dtype {dtype}"),
            )
        })?;
    }
    Tensor::from_vec(dtype, shape, bytes).map_err(|reason| error(at, reason.to_string()))
}

fn flatten<'a>(
    value: &'a Value,
    at: &str,
    numbers: &mut Vec<&'a Value>,
) -> Result<(), OperatorError> {
    match value {
        Value::Array(items) => items.iter().try_for_each(|item| flatten(item, at, numbers)),
        Value::Number(_) | Value::Bool(_) => {
            numbers.push(value);
            Ok(())
        }
        _ => Err(error(at, "expected numbers")),
    }
}

/// Appends one element; `None` if the dtype cannot hold the number.
fn append(bytes: &mut Vec<u8>, value: &Value, dtype: DType) -> Option<()> {
    let float = value.as_f64().or_else(|| value.as_bool().map(f64::from));
    let int = value.as_i64().or_else(|| value.as_bool().map(i64::from));
    match dtype {
        DType::F32 => bytes.extend((float? as f32).to_le_bytes()),
        DType::F64 => bytes.extend(float?.to_le_bytes()),
        DType::F16 => bytes.extend(half::f16::from_f64(float?).to_le_bytes()),
        DType::BF16 => bytes.extend(half::bf16::from_f64(float?).to_le_bytes()),
        DType::Bool => bytes.push(u8::from(int? != 0)),
        DType::I8 => bytes.extend(i8::try_from(int?).ok()?.to_le_bytes()),
        DType::U8 => bytes.extend(u8::try_from(int?).ok()?.to_le_bytes()),
        DType::I16 => bytes.extend(i16::try_from(int?).ok()?.to_le_bytes()),
        DType::U16 => bytes.extend(u16::try_from(int?).ok()?.to_le_bytes()),
        DType::I32 => bytes.extend(i32::try_from(int?).ok()?.to_le_bytes()),
        DType::U32 => bytes.extend(u32::try_from(int?).ok()?.to_le_bytes()),
        DType::I64 => bytes.extend(int?.to_le_bytes()),
        DType::U64 => bytes.extend(value.as_u64()?.to_le_bytes()),
        _ => return None,
    }
    Some(())
}

/// Attributes come as a list of objects with name, type and value, or as one object of values.
fn attributes(
    object: &Map<String, Value>,
    at: &str,
) -> Result<Vec<(String, OperatorAttribute)>, OperatorError> {
    let Some((key, value)) = first(object, &["attr", "attrs", "attributes"]) else {
        return Ok(Vec::new());
    };
    let at = format!("{at}/{key}");
    // The short form, `{"name": value}`, infers the types from the values.
    if let Value::Object(values) = value {
        return values
            .iter()
            .map(|(name, value)| Ok((name.clone(), attribute(value, "", &format!("{at}/{name}"))?)))
            .collect();
    }
    let mut attributes = Vec::new();
    for (i, item) in as_array(value, &at)?.iter().enumerate() {
        let at = format!("{at}/{i}");
        let item = as_object(item, &at)?;
        let name = item
            .get("name")
            .ok_or_else(|| error(&at, "`name` is missing"))?;
        let kind = item
            .get("type")
            .map_or(Ok(""), |kind| as_text(kind, &format!("{at}/type")))?;
        let value = item
            .get("value")
            .ok_or_else(|| error(&at, "`value` is missing"))?;
        let name = as_text(name, &format!("{at}/name"))?.to_owned();
        attributes.push((name, attribute(value, kind, &format!("{at}/value"))?));
    }
    Ok(attributes)
}

/// A value of the kind that its description names, or else of the kind that it looks like.
fn attribute(value: &Value, kind: &str, at: &str) -> Result<OperatorAttribute, OperatorError> {
    let read = match kind {
        // Integers first: every integer is also a valid float.
        "" => int(value)
            .map(OperatorAttribute::Int)
            .or_else(|| float(value).map(OperatorAttribute::Float))
            .or_else(|| text(value).map(OperatorAttribute::Text))
            .or_else(|| list(value, int).map(OperatorAttribute::Ints))
            .or_else(|| list(value, float).map(OperatorAttribute::Floats))
            .or_else(|| list(value, text).map(OperatorAttribute::Texts)),
        "bool" | "int" => int(value).map(OperatorAttribute::Int),
        "float" => float(value).map(OperatorAttribute::Float),
        "string" => text(value).map(OperatorAttribute::Text),
        "data_type" => int(value)
            .map(OperatorAttribute::Int)
            .or_else(|| text(value).map(OperatorAttribute::Text)),
        "list_int" | "list_bool" => list(value, int).map(OperatorAttribute::Ints),
        "list_float" => list(value, float).map(OperatorAttribute::Floats),
        "list_string" => list(value, text).map(OperatorAttribute::Texts),
        other => {
            return Err(error(
                at,
                format!(
                    "the type `{other}` cannot be an ONNX attribute; expected bool, int, float, string, \
                     data_type or list_ of bool, int, float, string"
                ),
            ));
        }
    };
    read.ok_or_else(|| {
        error(
            at,
            format!("found {value}, expected a value of the type `{kind}`"),
        )
    })
}

fn int(value: &Value) -> Option<i64> {
    value.as_i64().or_else(|| value.as_bool().map(i64::from))
}

fn float(value: &Value) -> Option<f32> {
    value.as_f64().map(|number| number as f32)
}

fn text(value: &Value) -> Option<String> {
    value.as_str().map(str::to_owned)
}

fn list<T>(value: &Value, item: fn(&Value) -> Option<T>) -> Option<Vec<T>> {
    let items = value.as_array()?;
    let is_short = items.len() <= N_OPERANDS_MAX * 64;
    is_short.then(|| items.iter().map(item).collect())?
}

/// A dtype by our name or by the vendor's.
pub(super) fn dtype(name: &str) -> Option<DType> {
    let lower = name.to_ascii_lowercase();
    let name = lower.trim_start_matches("dt_").trim_start_matches("acl_");
    match name {
        "float" | "fp32" => Some(DType::F32),
        "fp16" | "half" => Some(DType::F16),
        "double" => Some(DType::F64),
        "bf16" => Some(DType::BF16),
        _ => name.parse().ok(),
    }
}

fn first<'a>(object: &'a Map<String, Value>, keys: &[&'a str]) -> Option<(&'a str, &'a Value)> {
    keys.iter().find_map(|key| Some((*key, object.get(*key)?)))
}

fn as_object<'a>(value: &'a Value, at: &str) -> Result<&'a Map<String, Value>, OperatorError> {
    value
        .as_object()
        .ok_or_else(|| error(at, format!("found {}, expected an object", kind(value))))
}

fn as_array<'a>(value: &'a Value, at: &str) -> Result<&'a Vec<Value>, OperatorError> {
    let items = value
        .as_array()
        .ok_or_else(|| error(at, format!("found {}, expected a list", kind(value))))?;
    if items.len() > N_OPERANDS_MAX {
        return Err(error(
            at,
            format!("{} entries, at most {N_OPERANDS_MAX}", items.len()),
        ));
    }
    Ok(items)
}

fn as_text<'a>(value: &'a Value, at: &str) -> Result<&'a str, OperatorError> {
    value
        .as_str()
        .ok_or_else(|| error(at, format!("found {}, expected text", kind(value))))
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "text",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}

fn error(at: &str, reason: impl Into<String>) -> OperatorError {
    OperatorError::Value {
        pointer: if at.is_empty() {
            "/".to_owned()
        } else {
            at.to_owned()
        },
        reason: reason.into(),
    }
}

#[cfg(test)]
mod tests;
