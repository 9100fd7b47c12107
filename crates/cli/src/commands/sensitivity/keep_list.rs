//! Operators to keep, as a list that a converter takes.

use std::collections::BTreeSet;

use clap::ValueEnum;
use opscope_sensitivity::choice::KeptChoice;
use opscope_store::record::Operator;
use opscope_tensor::RoundingFormat;
use serde_json::json;

use super::{FormatResult, SensitivityResult};
use crate::console::report;
use crate::format;

/// Characters that mean something in the value of trtexec's option. A colon does not: the last one
/// of a pair counts.
const TENSORRT_SYNTAX: [char; 2] = [',', '\''];

/// The form of a list of operators.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum ListForm {
    /// A name on each line
    Lines,
    /// An array of names: `node_block_list` of onnxconverter-common, `nodes_to_exclude` of ONNX
    /// Runtime's quantisation
    Json,
    /// The value of trtexec's `--layerPrecisions`
    Tensorrt,
}

/// A list, and the operators that it cannot name.
pub(super) struct KeepList {
    /// The list, with a line feed at its end.
    pub(super) text: String,
    /// Operators without a name in the file, by their first output.
    unnamed: Vec<String>,
    /// Names that the form has no way to write.
    unwritable: Vec<String>,
    /// Names that belong to operators which need not be kept as well.
    shared: BTreeSet<String>,
}

fn can_write(form: ListForm, name: &str) -> bool {
    match form {
        ListForm::Lines => !name.contains(['\n', '\r']),
        ListForm::Json => true,
        ListForm::Tensorrt => !name.contains(TENSORRT_SYNTAX) && !name.contains('\n'),
    }
}

impl KeepList {
    /// The list of the operators that `choice` keeps, each name once, in file order.
    pub(super) fn new(
        form: ListForm,
        result: &SensitivityResult,
        of_format: &FormatResult,
        choice: &KeptChoice,
    ) -> KeepList {
        let mut kept: Vec<&Operator> = choice
            .kept
            .iter()
            .map(|position| &*of_format.ranking[*position].operator)
            .collect();
        kept.sort_by_key(|operator| operator.task_id);
        let tasks: BTreeSet<u32> = kept.iter().map(|operator| operator.task_id).collect();
        let mut list = KeepList {
            text: String::new(),
            unnamed: Vec::new(),
            unwritable: Vec::new(),
            shared: BTreeSet::new(),
        };
        let mut names: Vec<&str> = Vec::new();
        for operator in kept {
            let name = operator.op_name.as_str();
            // Its name here is that of its output, which converters do not look at.
            if result.unnamed.binary_search(&operator.task_id).is_ok() {
                list.unnamed.push(name.to_owned());
            } else if !can_write(form, name) {
                list.unwritable.push(name.to_owned());
            } else if !names.contains(&name) {
                names.push(name);
            }
        }
        // Converters go by names: one speaks for all operators that have it.
        let others = of_format.ranking.iter().map(|ranked| &ranked.operator);
        for other in others.filter(|operator| !tasks.contains(&operator.task_id)) {
            if names.contains(&other.op_name.as_str()) {
                list.shared.insert(other.op_name.clone());
            }
        }
        list.text = match form {
            ListForm::Lines => names.iter().map(|name| format!("{name}\n")).collect(),
            ListForm::Json => format!("{:#}\n", json!(names)),
            ListForm::Tensorrt => {
                let pairs: Vec<String> = names.iter().map(|name| format!("{name}:fp32")).collect();
                format!("{}\n", pairs.join(","))
            }
        };
        list
    }

    /// Says on standard error which operators a converter would not treat as was chosen.
    pub(super) fn warn(&self, format: RoundingFormat) {
        let n_unnamed = format::count(self.unnamed.len() as u64, "operator");
        if !self.unnamed.is_empty() {
            report!(
                "opscope: warning: {format}: {n_unnamed} to keep without a name in the model, which no list \
                 can hold; by the first output: {}",
                told(&self.unnamed)
            );
        }
        if !self.unwritable.is_empty() {
            report!(
                "opscope: warning: {format}: names that this form of list cannot hold are left out: {}",
                told(&self.unwritable)
            );
        }
        if !self.shared.is_empty() {
            report!(
                "opscope: warning: {format}: other operators have the same names and would be kept too: {}",
                told(&self.shared)
            );
        }
    }
}

/// Names in a sentence.
fn told<'a>(names: impl IntoIterator<Item = &'a String>) -> String {
    let names: Vec<String> = names.into_iter().map(|name| format!("`{name}`")).collect();
    names.join(", ")
}
