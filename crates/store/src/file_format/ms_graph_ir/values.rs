//! Values and types as text, both ways.

use std::fmt::Write;

use opscope_tensor::DType;

use super::DEPTH_MAX;
use super::scan::{inside, split};
use crate::file_format::ms_dtype;
use crate::file_format::number_text::general;
use crate::record::graph::{DeviceTensor, Literal, TensorType, ValueType};

/// How the types of monads are written as values.
const MONADS: [(&str, &str); 2] = [("UMonad[U]", "UMonad"), ("IOMonad[IO]", "IOMonad")];
const NO_SHAPE: &str = "NoShape";

pub(super) fn parse_literal(text: &str) -> Literal {
    literal(text, 0)
}

fn literal(text: &str, depth: usize) -> Literal {
    if depth == DEPTH_MAX {
        return Literal::Name(text.to_owned());
    }
    if let Some(text) = inside(text, "\"", "\"") {
        return Literal::Text(unescaped(text));
    }
    if let Some(values) = inside(text, "(", ")") {
        return Literal::Tuple(literals(values, depth + 1));
    }
    if let Some(values) = inside(text, "[", "]") {
        return Literal::List(literals(values, depth + 1));
    }
    if let Some((_, name)) = MONADS.iter().find(|(value, _)| *value == text) {
        return Literal::Monad((*name).to_owned());
    }
    if let Some(inner) = inside(text, "Tensor(", ")") {
        return tensor_literal(inner).unwrap_or_else(|| Literal::Name(text.to_owned()));
    }
    // 128 bits hold every `int64` and every `uint64`.
    if let Ok(value) = text.parse::<i128>() {
        return Literal::Int(None, value);
    }
    let typed = text.strip_suffix(')').and_then(|text| text.split_once('('));
    typed
        .and_then(|(dtype, value)| typed_literal(dtype, value))
        .unwrap_or_else(|| Literal::Name(text.to_owned()))
}

fn literals(text: &str, depth: usize) -> Vec<Literal> {
    let elements = split(text, ", ").into_iter();
    elements.map(|text| literal(text, depth)).collect()
}

fn typed_literal(dtype: &str, value: &str) -> Option<Literal> {
    let dtype = ms_dtype::from_short(dtype)?;
    Some(match dtype {
        DType::Bool => Literal::Bool(match value {
            "0" => false,
            "1" => true,
            _ => return None,
        }),
        _ if dtype.is_float() => Literal::Float(dtype, value.parse().ok()?),
        _ => Literal::Int(Some(dtype), value.parse().ok()?),
    })
}

/// `shape=[1, 3], dtype=Float32, value=…`
fn tensor_literal(text: &str) -> Option<Literal> {
    let (shape, rest) = text.strip_prefix("shape=[")?.split_once("], dtype=")?;
    let (dtype, elements) = rest.split_once(", value=")?;
    let dtype = ms_dtype::from_name(dtype)?;
    let shape = extents(shape)?;
    Some(Literal::Tensor(
        Some(TensorType { dtype, shape }),
        elements.to_owned(),
    ))
}

pub(super) fn write_literal(out: &mut String, value: &Literal) {
    match value {
        Literal::Bool(value) => push(out, format_args!("Bool({})", u8::from(*value))),
        Literal::Int(dtype, value) => match dtype.and_then(ms_dtype::short) {
            Some(dtype) => push(out, format_args!("{dtype}({value})")),
            None => push(out, format_args!("{value}")),
        },
        Literal::Float(dtype, value) => {
            let dtype = ms_dtype::short(*dtype).unwrap_or("F64");
            push(out, format_args!("{dtype}({})", general(*value)));
        }
        Literal::Text(text) => out.push_str(&quoted_text(text)),
        Literal::Name(name) => out.push_str(name),
        Literal::Tuple(values) => write_literals(out, '(', values, ')'),
        Literal::List(values) => write_literals(out, '[', values, ']'),
        Literal::Tensor(Some(tensor), elements) => {
            let dtype = ms_dtype::camel(tensor.dtype).unwrap_or("Undefined");
            let shape = joined(&tensor.shape);
            push(
                out,
                format_args!("Tensor(shape=[{shape}], dtype={dtype}, value={elements})"),
            );
        }
        Literal::Tensor(None, elements) => push(out, format_args!("Tensor(value={elements})")),
        Literal::Monad(name) => {
            let value = MONADS.iter().find(|(_, known)| known == name);
            out.push_str(value.map_or(name.as_str(), |(value, _)| value));
        }
    }
}

/// A text in quotes. Quotes, backslashes and line ends in it are escaped, which is an addition of
/// ours: they would end the text, or the line.
pub(super) fn quoted_text(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            _ => out.push(c),
        }
    }
    out.push('"');
    out
}

/// The text between quotes. A backslash is literal unless it escapes the next character.
pub(super) fn unescaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text.chars().peekable();
    while let Some(c) = rest.next() {
        let escaped = match (c, rest.peek()) {
            ('\\', Some('"')) => '"',
            ('\\', Some('\\')) => '\\',
            ('\\', Some('n')) => '\n',
            ('\\', Some('r')) => '\r',
            _ => {
                out.push(c);
                continue;
            }
        };
        out.push(escaped);
        rest.next();
    }
    out
}

fn write_literals(out: &mut String, open: char, values: &[Literal], close: char) {
    out.push(open);
    for (i, value) in values.iter().enumerate() {
        if i > 0 {
            out.push_str(", ");
        }
        write_literal(out, value);
    }
    out.push(close);
}

/// Reads `<type, shape, …>`.
pub(super) fn parse_type(text: &str) -> ValueType {
    let inner = inside(text, "<", ">").unwrap_or(text);
    let parts = split(inner, ", ");
    let known = match parts[..] {
        [kind] => value_type(kind, NO_SHAPE, 0),
        [kind, shape, ..] => match kind.strip_prefix("Ref[").and_then(|k| k.strip_suffix(']')) {
            Some(kind) => reference(kind, shape, &parts[2..]),
            // A mark of constants may follow the shape; the argument itself shows the same.
            None => value_type(kind, shape, 0),
        },
        [] => None,
    };
    known.unwrap_or_else(|| ValueType::Other(inner.to_owned()))
}

fn reference(kind: &str, shape: &str, flags: &[&str]) -> Option<ValueType> {
    let ValueType::Tensor(tensor) = value_type(kind, shape, 0)? else {
        return None;
    };
    // A key may hold commas: it ends where a flag begins.
    let n_key = flags
        .iter()
        .position(|flag| matches!(*flag, "is_parameter" | "is_inplace"))
        .unwrap_or(flags.len());
    let key = flags[..n_key].join(", ");
    Some(ValueType::Reference {
        tensor,
        key: key.strip_prefix("ref_key=")?.to_owned(),
        is_parameter: flags.contains(&"is_parameter"),
        is_inplace: flags.contains(&"is_inplace"),
    })
}

fn value_type(kind: &str, shape: &str, depth: usize) -> Option<ValueType> {
    if depth == DEPTH_MAX {
        return None;
    }
    if let Some(dtype) = inside(kind, "Tensor[", "]") {
        let dtype = ms_dtype::from_name(dtype)?;
        let shape = extents(inside(shape, "(", ")")?)?;
        return Some(ValueType::Tensor(TensorType { dtype, shape }));
    }
    if let Some(kinds) = inside(kind, "Tuple[", "]") {
        let shapes = split(inside(shape, "TupleShape(", ")")?, ", ");
        // Shapes are written out one by one, so their number bounds what `Int64*99999999999` may
        // claim.
        let kinds = repeated(kinds, shapes.len())?;
        let types = kinds.iter().zip(&shapes);
        let types: Option<Vec<_>> = types.map(|(k, s)| value_type(k, s, depth + 1)).collect();
        return types.map(ValueType::Tuple);
    }
    if kind.ends_with("Monad") {
        return Some(ValueType::Monad(kind.to_owned()));
    }
    match shape {
        NO_SHAPE => ms_dtype::from_name(kind).map(ValueType::Scalar),
        _ => None,
    }
}

/// `Int64*2,Bool` as a list of `n` types, if it has that many.
fn repeated(kinds: &str, n: usize) -> Option<Vec<&str>> {
    let mut all = Vec::new();
    for kind in split(kinds, ",") {
        let (kind, count) = match kind.rsplit_once('*') {
            // A star before a closing bracket belongs to a tuple inside the element.
            Some((kind, count)) if !count.contains(']') => (kind, count.parse().ok()?),
            _ => (kind, 1),
        };
        // `all` never has more than `n`, so this cannot underflow.
        if count > n - all.len() {
            return None;
        }
        all.resize(all.len() + count, kind);
    }
    (all.len() == n).then_some(all)
}

/// Writes `<type, shape>`, with a mark for constants.
pub(super) fn write_type(out: &mut String, value: &ValueType, is_constant: bool) {
    if let ValueType::Other(text) = value {
        push(out, format_args!("<{text}>"));
        return;
    }
    push(
        out,
        format_args!("<{}, {}", kind_of(value), shape_of(value)),
    );
    match value {
        ValueType::Reference {
            key,
            is_parameter,
            is_inplace,
            ..
        } => {
            push(out, format_args!(", ref_key={key}"));
            out.push_str(if *is_parameter { ", is_parameter" } else { "" });
            out.push_str(if *is_inplace { ", is_inplace" } else { "" });
        }
        ValueType::Tensor(_) if is_constant => out.push_str(", value=..."),
        ValueType::Tuple(types) if is_constant && !types.is_empty() => {
            // The description does not keep these flags: they are 1 in every recorded file.
            let flags = joined(&vec![1; types.len()]);
            push(
                out,
                format_args!(", elements_use_flags={{[const vector]{{{flags}}}}}"),
            );
        }
        _ => {}
    }
    out.push('>');
}

fn dtype_name(dtype: DType) -> &'static str {
    ms_dtype::camel(dtype).unwrap_or("Undefined")
}

fn kind_of(value: &ValueType) -> String {
    match value {
        ValueType::Tensor(tensor) => format!("Tensor[{}]", dtype_name(tensor.dtype)),
        ValueType::Reference { tensor, .. } => format!("Ref[Tensor[{}]]", dtype_name(tensor.dtype)),
        ValueType::Scalar(dtype) => dtype_name(*dtype).to_owned(),
        ValueType::Tuple(types) => {
            // MindSpore writes a run of equal types as one with a count, and the text must match
            // its own.
            let mut runs: Vec<(String, usize)> = Vec::new();
            for kind in types.iter().map(kind_of) {
                match runs.last_mut() {
                    Some((last, n)) if *last == kind => *n += 1,
                    _ => runs.push((kind, 1)),
                }
            }
            let runs: Vec<_> = runs
                .into_iter()
                .map(|(kind, n)| match n {
                    1 => kind,
                    n => format!("{kind}*{n}"),
                })
                .collect();
            format!("Tuple[{}]", runs.join(","))
        }
        ValueType::Monad(name) | ValueType::Other(name) => name.clone(),
    }
}

fn shape_of(value: &ValueType) -> String {
    match value {
        ValueType::Tensor(t) | ValueType::Reference { tensor: t, .. } => {
            format!("({})", joined(&t.shape))
        }
        ValueType::Tuple(types) => {
            let shapes: Vec<_> = types.iter().map(shape_of).collect();
            format!("TupleShape({})", shapes.join(", "))
        }
        ValueType::Scalar(_) | ValueType::Monad(_) | ValueType::Other(_) => NO_SHAPE.to_owned(),
    }
}

/// Reads `<Float32xDefaultFormat[const vector]{2, 3}>`; older files have brackets around
/// dimensions.
pub(super) fn parse_device(text: &str) -> Option<DeviceTensor> {
    let (kind, extents_text) = inside(text, "<", ">")?.split_once("[const vector]")?;
    let shape = inside(extents_text, "{", "}").or_else(|| inside(extents_text, "[", "]"))?;
    // The last `x`: `Complex64` contains one, and no layout does.
    let (dtype, layout) = kind.rsplit_once('x')?;
    Some(DeviceTensor {
        dtype: dtype.to_owned(),
        layout: layout.to_owned(),
        shape: extents(shape)?,
    })
}

pub(super) fn write_device(out: &mut String, tensor: &DeviceTensor) {
    let DeviceTensor {
        dtype,
        layout,
        shape,
    } = tensor;
    let shape = joined(shape);
    push(
        out,
        format_args!("<{dtype}x{layout}[const vector]{{{shape}}}>"),
    );
}

/// `2, 3`, or nothing for no dimensions.
pub(super) fn extents(text: &str) -> Option<Vec<i64>> {
    split(text, ", ").iter().map(|n| n.parse().ok()).collect()
}

pub(super) fn joined(values: &[i64]) -> String {
    let values: Vec<_> = values.iter().map(i64::to_string).collect();
    values.join(", ")
}

fn push(out: &mut String, text: std::fmt::Arguments<'_>) {
    // Writing to a `String` cannot fail.
    let _ = out.write_fmt(text);
}
