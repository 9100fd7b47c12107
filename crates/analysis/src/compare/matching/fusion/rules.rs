//! The compiler's record of fused operators: the JSON of a model by Ascend's compiler. Each
//! operator has the names of those that it was fused from, and each of its outputs the original
//! operator and output.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use opscope_store::regular_file;
use serde::Deserialize;
use thiserror::Error;

use crate::compare::matching::names::file_name;

/// Maximum size of a file.
const N_FILE_BYTES_MAX: u64 = 1 << 30;
/// Key of the names that an operator was fused from.
const ORIGINALS: &str = "_datadump_original_op_names";
/// Key of the operator that an output was of.
const ORIGIN: &str = "_datadump_origin_name";
/// Key of the number that an output had there.
const ORIGIN_INDEX: &str = "_datadump_origin_output_index";

/// The operators of a model with those that each was fused from.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FusionRules {
    operators: BTreeMap<String, FusedOperator>,
}

/// An operator with those that it was fused from.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FusedOperator {
    /// Its name.
    pub name: String,
    /// Names of the operators that it was fused from, in order; only its own if it was not fused.
    pub originals: Vec<String>,
    /// Which output of which operator each of its outputs was, where that is known.
    pub outputs: Vec<Option<(String, u32)>>,
}

/// Why fusion rules cannot be used.
#[derive(Debug, Error)]
pub enum FusionRulesError {
    /// The file cannot be read.
    #[error("cannot read `{}`", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: std::io::Error,
    },
    /// The file is too large.
    #[error("`{}` has {n_bytes} bytes; fusion rules have {N_FILE_BYTES_MAX} at most", path.display())]
    Size {
        /// The file.
        path: PathBuf,
        /// Its size.
        n_bytes: u64,
    },
    /// It is not JSON, or not of this form; with line and column.
    #[error("no fusion rules: {0}")]
    Json(#[from] serde_json::Error),
}

#[derive(Deserialize)]
struct FusionFile {
    graph: Vec<GraphJson>,
}

#[derive(Deserialize)]
struct GraphJson {
    #[serde(default)]
    op: Vec<OpJson>,
}

#[derive(Deserialize)]
struct OpJson {
    name: String,
    #[serde(default)]
    attr: Vec<AttrJson>,
    #[serde(default)]
    output_desc: Vec<OutputJson>,
}

#[derive(Deserialize)]
struct OutputJson {
    #[serde(default)]
    attr: Vec<AttrJson>,
}

#[derive(Deserialize)]
struct AttrJson {
    key: String,
    #[serde(default)]
    value: ValueJson,
}

#[derive(Default, Deserialize)]
struct ValueJson {
    s: Option<String>,
    i: Option<i64>,
    list: Option<ListJson>,
}

#[derive(Default, Deserialize)]
struct ListJson {
    #[serde(default)]
    s: Vec<String>,
}

impl FusionRules {
    /// Reads a file.
    ///
    /// # Errors
    /// [`FusionRulesError`].
    pub fn open(path: &Path) -> Result<FusionRules, FusionRulesError> {
        let failed = |source| FusionRulesError::Read {
            path: path.to_owned(),
            source,
        };
        let n_bytes = regular_file::check(path).map_err(failed)?.len();
        if n_bytes > N_FILE_BYTES_MAX {
            let path = path.to_owned();
            return Err(FusionRulesError::Size { path, n_bytes });
        }
        FusionRules::parse(&regular_file::read(path, N_FILE_BYTES_MAX).map_err(failed)?)
    }

    /// Reads the content of a file.
    ///
    /// # Errors
    /// [`FusionRulesError::Json`].
    pub fn parse(json: &[u8]) -> Result<FusionRules, FusionRulesError> {
        let file: FusionFile = serde_json::from_slice(json)?;
        let ops = file.graph.into_iter().flat_map(|graph| graph.op);
        Ok(ops.map(FusedOperator::from).collect())
    }

    /// Returns the rule of an operator, by its name as file names have it.
    pub(super) fn get(&self, file_name: &str) -> Option<&FusedOperator> {
        self.operators.get(file_name)
    }
}

impl FromIterator<FusedOperator> for FusionRules {
    /// Of operators with the same name the first counts.
    fn from_iter<I: IntoIterator<Item = FusedOperator>>(operators: I) -> FusionRules {
        let mut rules = FusionRules::default();
        for operator in operators {
            let key = file_name(&operator.name);
            rules.operators.entry(key).or_insert(operator);
        }
        rules
    }
}

impl From<OpJson> for FusedOperator {
    fn from(op: OpJson) -> FusedOperator {
        let value = |attrs: &mut Vec<AttrJson>, key: &str| {
            let position = attrs.iter().position(|attr| attr.key == key)?;
            Some(attrs.swap_remove(position).value)
        };
        let OpJson {
            name,
            mut attr,
            output_desc,
        } = op;
        let originals = value(&mut attr, ORIGINALS).and_then(|value| value.list);
        let outputs = output_desc.into_iter().enumerate();
        let outputs = outputs.map(|(own_index, mut output)| {
            let index = value(&mut output.attr, ORIGIN_INDEX).and_then(|value| value.i);
            let origin = value(&mut output.attr, ORIGIN)?
                .s
                .filter(|name| !name.is_empty())?;
            let own_index = u32::try_from(own_index).ok();
            Some((
                origin,
                index.map_or(own_index, |index| u32::try_from(index).ok())?,
            ))
        });
        FusedOperator {
            originals: originals.map(|list| list.s).unwrap_or_default(),
            outputs: outputs.collect(),
            name,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_outputs_are_read() {
        let json = br#"{"name": "m", "graph": [{"name": "g", "op": [
            {"name": "a/conv", "type": "Conv2D", "id": 3, "input": ["x:0"], "attr": [
                {"key": "other", "value": {"b": true}},
                {"key": "_datadump_original_op_names", "value": {"list": {"s": ["conv1", "relu1"]}}}],
             "output_desc": [
                {"dtype": "DT_FLOAT", "attr": [
                    {"key": "_datadump_origin_name", "value": {"s": "relu1"}},
                    {"key": "_datadump_origin_output_index", "value": {"i": 1}},
                    {"key": "origin_shape", "value": {"list": {"i": [1, 2]}}}]},
                {"dtype": "DT_FLOAT"},
                {"attr": [{"key": "_datadump_origin_name", "value": {"s": "conv1"}}]},
                {"attr": [{"key": "_datadump_origin_name", "value": {"s": ""}}]}]},
            {"name": "a_conv", "type": "Relu"},
            {"name": "none", "type": "Data", "attr": [
                {"key": "_datadump_original_op_names", "value": {"list": {}}}]}
        ]}]}"#;
        let rules = FusionRules::parse(json).unwrap();
        let conv = rules.get("a_conv").unwrap();
        assert_eq!(conv.originals, ["conv1", "relu1"]);
        let expected = [
            Some(("relu1".to_owned(), 1)),
            None,
            Some(("conv1".to_owned(), 2)),
            None,
        ];
        assert_eq!(conv.outputs, expected);
        assert!(rules.get("none").unwrap().originals.is_empty());
        assert!(rules.get("x").is_none());
    }

    #[test]
    fn wrong_forms_are_refused_with_their_place() {
        for (json, place) in [
            ("", "line 1 column 0"),
            ("{}", "missing field `graph`"),
            (r#"{"graph": 1}"#, "line 1 column 11"),
            (
                "{\"graph\": [{\"op\": [\n{\"name\": 5}]}]}",
                "line 2 column 10",
            ),
            (
                r#"{"graph":[{"op":[{"name":"a","attr":[{"key":"k","value":{"i":"x"}}]}]}]}"#,
                "column 64",
            ),
        ] {
            let error = FusionRules::parse(json.as_bytes()).unwrap_err().to_string();
            assert!(error.contains(place), "{error}");
        }
        let deep = format!(r#"{{"graph": {}"#, "[".repeat(10_000));
        assert!(FusionRules::parse(deep.as_bytes()).is_err());
    }
}
