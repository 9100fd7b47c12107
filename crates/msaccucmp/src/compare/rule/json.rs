//! Reading fusion rules from JSON.
//!
//! Wrong types end in the reference's error 13 or in an exception, depending on where they are.

use std::cell::Cell;
use std::path::Path;

use opscope_store::regular_file;
use serde_json::{Map, Value};

use super::{DeviceOperator, GroupKey, ModelRules, OutputRule, filter};
use crate::compare::file_name::without_slice;
use crate::compare::stop::CompareStop;
use crate::failure::ErrorCode;
use crate::log;
use crate::paths::{self, PathKind};

/// Maximum size of a file.
const FILE_BYTES_MAX: u64 = 4 << 30;

impl ModelRules {
    /// Reads a file.
    pub(crate) fn open(path: &Path) -> Result<ModelRules, CompareStop> {
        ModelRules::from_value(&load_value(path)?, path)
    }

    /// Parses rules.
    pub(crate) fn parse(text: &str) -> Result<ModelRules, CompareStop> {
        let value = serde_json::from_str(text).map_err(|_| CompareStop::bare(ErrorCode::Json))?;
        ModelRules::from_value(&value, Path::new("rule.json"))
    }

    fn from_value(value: &Value, path: &Path) -> Result<ModelRules, CompareStop> {
        let mut rule = ModelRules::default();
        read_value(&mut rule, value, path)?;
        filter::mark(&mut rule);
        Ok(rule)
    }
}

/// The JSON in a file.
pub(crate) fn load_value(path: &Path) -> Result<Value, CompareStop> {
    paths::check_input(path, PathKind::File)?;
    let invalid = |reason: String| {
        log::error(&format!(
            "Failed to load json object. The content of the json file {} is invalid. {reason}",
            log::quoted(path)
        ));
        CompareStop::bare(ErrorCode::Json)
    };
    let n_bytes = path.metadata().map_or(0, |metadata| metadata.len());
    if n_bytes > FILE_BYTES_MAX {
        return Err(invalid(format!("It has {n_bytes} bytes.")));
    }
    let bytes = regular_file::read(path, FILE_BYTES_MAX);
    let bytes = bytes.map_err(|error| invalid(error.to_string()))?;
    serde_json::from_slice(&bytes).map_err(|error| invalid(error.to_string()))
}

fn read_value(rule: &mut ModelRules, value: &Value, path: &Path) -> Result<(), CompareStop> {
    let reader = RuleReader {
        path,
        has_bad_name: Cell::default(),
    };
    for graph in reader.list(value, "graph")? {
        for op in reader.list(graph, "op")? {
            reader.op(rule, op)?;
        }
        name_renamed(rule);
    }
    if reader.has_bad_name.get() {
        return Err(CompareStop::Fatal("a name is no text".to_owned()));
    }
    rule.sequence.sort_by_key(|&op| rule.ops[op].sequence);
    Ok(())
}

/// The names of graphs in a file.
pub(crate) fn graph_names(value: &Value, path: &Path) -> Result<Vec<String>, CompareStop> {
    let reader = RuleReader {
        path,
        has_bad_name: Cell::default(),
    };
    let graphs = reader.list(value, "graph")?.iter();
    graphs
        .map(|graph| reader.text(graph, "name").map(str::to_owned))
        .collect()
}

/// An operator with a single original, whose name is that of its group, gets the outputs of that
/// original.
fn name_renamed(rule: &mut ModelRules) {
    for (_, group) in rule.groups.clone() {
        let [op] = group[..] else { continue };
        let [original] = &rule.ops[op].originals[..] else {
            continue;
        };
        let original = original.clone();
        let is_group = matches!(rule.group_of(&rule.ops[op].name), Some(GroupKey::Name(key)) if *key == original);
        if is_group {
            let mut outputs = std::mem::take(&mut rule.ops[op].outputs);
            name_outputs(rule, &mut outputs, &original);
            rule.ops[op].outputs = outputs;
        }
    }
}

/// Fills in missing origins of outputs.
fn name_outputs(rule: &mut ModelRules, outputs: &mut Vec<usize>, name: &str) {
    if outputs.is_empty() {
        outputs.push(rule.outputs.len());
        rule.outputs.push(OutputRule {
            origin: name.to_owned(),
            ..OutputRule::default()
        });
    }
    for &output in outputs.iter() {
        let output = &mut rule.outputs[output];
        if output.origin.is_empty() {
            name.clone_into(&mut output.origin);
        }
    }
}

/// Reads values, and names the file in errors.
struct RuleReader<'a> {
    path: &'a Path,
    has_bad_name: Cell<bool>,
}

impl RuleReader<'_> {
    fn op(&self, rule: &mut ModelRules, value: &Value) -> Result<(), CompareStop> {
        let own_name = self.text(value, "name")?;
        let name = without_slice(own_name);
        let op_type = self.text(value, "type")?;
        let Value::Object(map) = value else {
            return Err(CompareStop::Fatal("an operator is no object".to_owned()));
        };
        if op_type == "Data" && !own_name.is_empty() {
            rule.input_nodes.push(own_name.to_owned());
        }
        let inputs = self.inputs(map)?;
        let mut outputs = self.outputs(rule, map)?;
        let none = Vec::new();
        let attrs = match map.get("attr") {
            Some(_) => self.list(value, "attr")?,
            None => &none,
        };
        let is_multi = self.flag_attr(attrs, "_datadump_is_multiop")?;
        let l1_number = self.text_attr(attrs, "_L1_fusion_sub_graph_no")?;
        let named = self.originals(attrs)?;
        let sequence = match map.get("id") {
            Some(_) => self.integer(value, "id")?,
            None => 0,
        };
        let has_originals = named.is_some();
        let originals = named.unwrap_or_else(|| vec![name.clone()]);
        if !has_originals {
            name_outputs(rule, &mut outputs, &name);
        }
        let key = rule.name_group(&name, &l1_number, &originals);
        let group = rule.group(&key).map(<[usize]>::to_vec);
        let index = match &group {
            Some(group) => rule.ops[group[0]].index,
            None => rule.groups.len(),
        };
        if group.is_some_and(|group| group.iter().any(|&op| rule.ops[op].name == name)) {
            return Ok(());
        }
        let op = rule.ops.len();
        rule.ops.push(DeviceOperator {
            index,
            name,
            inputs,
            op_type: op_type.to_owned(),
            outputs,
            originals,
            l1_number,
            is_multi,
            sequence,
            is_filtered: false,
        });
        rule.join(&key, op);
        rule.sequence.push(op);
        Ok(())
    }

    /// `op:output` of each producer. Control edges are skipped.
    fn inputs(&self, map: &Map<String, Value>) -> Result<Vec<String>, CompareStop> {
        let Some(value) = map.get("input") else {
            return Ok(Vec::new());
        };
        let Value::Array(items) = value else {
            return Err(self.wrong("input", "an array"));
        };
        let mut inputs = Vec::new();
        for item in items {
            let text = as_text(item)?;
            if text.is_empty() && items.len() == 1 {
                break;
            }
            if !text.is_empty() && !text.ends_with(":-1") {
                inputs.push(without_slice(text));
            }
        }
        Ok(inputs)
    }

    fn outputs(
        &self,
        rule: &mut ModelRules,
        map: &Map<String, Value>,
    ) -> Result<Vec<usize>, CompareStop> {
        let mut outputs = Vec::new();
        let values = match map.get("output_desc") {
            // Letters and most keys are outputs without content.
            Some(Value::String(_)) => &[],
            Some(Value::Object(keys)) if !keys.keys().any(|key| looks_like_output(key)) => &[],
            Some(Value::Object(_)) => {
                return Err(CompareStop::Fatal("an output is no object".to_owned()));
            }
            values => iterate(values)?,
        };
        for (index, value) in values.iter().enumerate() {
            let (has_dtype, has_attrs) = (has(value, "dtype")?, has(value, "attr")?);
            if !has_dtype && !has_attrs {
                continue;
            }
            let Value::Object(map) = value else {
                return Err(CompareStop::Fatal("an output is no object".to_owned()));
            };
            let Some(attrs) = map.get("attr") else {
                continue;
            };
            let attrs = iterate(Some(attrs))?;
            let origin = self.text_attr(attrs, "_datadump_origin_name")?;
            let origin_index = self.integer_attr(attrs, "_datadump_origin_output_index")?;
            let mut format = self.text_attr(attrs, "_datadump_origin_format")?;
            if format.is_empty() {
                format = self.text_attr(attrs, "origin_format")?;
            }
            let dtype = map.get("dtype").and_then(Value::as_str).unwrap_or_default();
            outputs.push(rule.outputs.len());
            rule.outputs.push(OutputRule {
                origin,
                origin_index: Some(origin_index.unwrap_or(index as i64)),
                format,
                shape: self.shape_attr(attrs)?,
                dtype: dtype.to_owned(),
            });
        }
        Ok(outputs)
    }

    /// The value of an attribute. The preceding attributes are checked too.
    fn attr<'v>(&self, attrs: &'v [Value], key: &str) -> Result<Option<&'v Value>, CompareStop> {
        for attr in attrs {
            if self.text(attr, "key")? == key {
                return self.member(attr, "value").map(Some);
            }
        }
        Ok(None)
    }

    fn text_attr(&self, attrs: &[Value], key: &str) -> Result<String, CompareStop> {
        let value = self.attr(attrs, key)?;
        let text = value.map(|value| self.text(value, "s")).transpose()?;
        Ok(text.unwrap_or_default().to_owned())
    }

    fn integer_attr(&self, attrs: &[Value], key: &str) -> Result<Option<i64>, CompareStop> {
        let value = self.attr(attrs, key)?;
        value.map(|value| self.integer(value, "i")).transpose()
    }

    fn flag_attr(&self, attrs: &[Value], key: &str) -> Result<bool, CompareStop> {
        let Some(value) = self.attr(attrs, key)? else {
            return Ok(false);
        };
        match self.member(value, "b")? {
            Value::Bool(flag) => Ok(*flag),
            _ => Err(self.wrong("b", "a bool")),
        }
    }

    fn shape_attr(&self, attrs: &[Value]) -> Result<Vec<i64>, CompareStop> {
        let Some(value) = self.attr(attrs, "origin_shape")? else {
            return Ok(Vec::new());
        };
        let list = self.member(value, "list")?;
        if !has(list, "i")? {
            return Ok(Vec::new());
        }
        // Values other than numbers are not dimensions.
        let extents = self.list(list, "i")?.iter();
        Ok(extents
            .map(|extent| extent.as_i64().unwrap_or(i64::MIN))
            .collect())
    }

    /// The originals' names; `None` without such an attribute.
    fn originals(&self, attrs: &[Value]) -> Result<Option<Vec<String>>, CompareStop> {
        let Some(value) = self.attr(attrs, "_datadump_original_op_names")? else {
            return Ok(None);
        };
        let list = self.member(value, "list")?;
        if !has(list, "s")? {
            return Ok(Some(vec![String::new()]));
        }
        let names = self.list(list, "s")?.iter();
        let is_alone = names.len() == 1;
        let names: Result<_, CompareStop> = names
            .map(|name| match name {
                // The reference fails on it after reading everything.
                Value::Null | Value::Bool(_) | Value::Number(_) if is_alone => {
                    self.has_bad_name.set(true);
                    Ok(name.to_string())
                }
                name => as_text(name).map(str::to_owned),
            })
            .collect();
        names.map(Some)
    }

    fn member<'v>(&self, value: &'v Value, key: &str) -> Result<&'v Value, CompareStop> {
        if !has(value, key)? {
            log::warning(&format!(
                "There is no \"{key}\" element in fusion rule file."
            ));
            return Err(CompareStop::bare(ErrorCode::Json));
        }
        value
            .get(key)
            .ok_or_else(|| CompareStop::Fatal(format!("'{key}' is no key")))
    }

    fn list<'v>(&self, value: &'v Value, key: &str) -> Result<&'v Vec<Value>, CompareStop> {
        match self.member(value, key)? {
            Value::Array(items) => Ok(items),
            _ => Err(self.wrong(key, "an array")),
        }
    }

    fn text<'v>(&self, value: &'v Value, key: &str) -> Result<&'v str, CompareStop> {
        match self.member(value, key)? {
            Value::String(text) => Ok(text),
            _ => Err(self.wrong(key, "a string")),
        }
    }

    /// A number; booleans count as numbers.
    fn integer(&self, value: &Value, key: &str) -> Result<i64, CompareStop> {
        match self.member(value, key)? {
            Value::Bool(flag) => Ok(i64::from(*flag)),
            Value::Number(number) if number.is_i64() => Ok(number.as_i64().unwrap_or(i64::MAX)),
            Value::Number(number) if number.is_u64() => Ok(i64::MAX),
            _ => Err(self.wrong(key, "a integer")),
        }
    }

    fn wrong(&self, key: &str, expected: &str) -> CompareStop {
        log::error(&format!(
            "The content of the json file {} is invalid. The \"{key}\" element is not {expected}.",
            log::quoted(self.path)
        ));
        CompareStop::bare(ErrorCode::Json)
    }
}

/// Python's `in`: keys of objects, items of lists, substrings of texts.
fn has(value: &Value, key: &str) -> Result<bool, CompareStop> {
    match value {
        Value::Object(map) => Ok(map.contains_key(key)),
        Value::Array(items) => Ok(items.iter().any(|item| item.as_str() == Some(key))),
        Value::String(text) => Ok(text.contains(key)),
        _ => Err(CompareStop::Fatal("argument is not iterable".to_owned())),
    }
}

/// Whether a text contains a key of outputs.
fn looks_like_output(text: &str) -> bool {
    ["dtype", "attr"].iter().any(|key| text.contains(key))
}

fn as_text(value: &Value) -> Result<&str, CompareStop> {
    value
        .as_str()
        .ok_or_else(|| CompareStop::Fatal("a name is no text".to_owned()))
}

/// The items of a list; nothing for other empty containers.
fn iterate(value: Option<&Value>) -> Result<&[Value], CompareStop> {
    match value {
        None => Ok(&[]),
        Some(Value::Array(items)) => Ok(items),
        Some(Value::Object(map)) if map.is_empty() => Ok(&[]),
        Some(Value::String(text)) if text.is_empty() => Ok(&[]),
        // Their keys and letters are not objects; a key may still contain the searched name.
        Some(Value::Object(map)) if map.keys().next().is_some_and(|key| key.contains("key")) => {
            Err(CompareStop::Fatal(
                "string indices must be integers".to_owned(),
            ))
        }
        Some(Value::Object(_) | Value::String(_)) => Err(CompareStop::bare(ErrorCode::Json)),
        Some(_) => Err(CompareStop::Fatal("an element is not iterable".to_owned())),
    }
}
