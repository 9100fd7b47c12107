//! Operators to keep, as a list for a converter.

use std::collections::BTreeSet;

use clap::ValueEnum;
use opscope_sensitivity::choice::KeptChoice;
use opscope_store::record::Operator;
use opscope_tensor::RoundingFormat;
use serde_json::json;

use super::{FormatResult, SensitivityResult};
use crate::console::report;
use crate::format;

/// Special characters in the value of trtexec's option. A colon is harmless: the last one of a pair
/// counts.
const TENSORRT_SYNTAX: [char; 2] = [',', '\''];

/// Format of a list of operators.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum ListForm {
    /// One name per line
    Lines,
    /// An array of names: `node_block_list` of onnxconverter-common, `nodes_to_exclude` of ONNX
    /// Runtime's quantisation
    Json,
    /// The value of trtexec's `--layerPrecisions`
    Tensorrt,
}

/// A list, and the operators that it cannot express.
pub(super) struct KeepList {
    /// The list, including the final line feed.
    pub(super) text: String,
    /// Operators without a name in the file, by their first output.
    unnamed: Vec<String>,
    /// Names that the format cannot express.
    unwritable: Vec<String>,
    /// Names shared with operators that need not be kept.
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
    /// The list of the operators that `choice` keeps, without duplicates, in file order.
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
            // Its name here is that of its output, which converters ignore.
            if result.unnamed.binary_search(&operator.task_id).is_ok() {
                list.unnamed.push(name.to_owned());
            } else if !can_write(form, name) {
                list.unwritable.push(name.to_owned());
            } else if !names.contains(&name) {
                names.push(name);
            }
        }
        // Converters match by name, so all operators of a name are kept.
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

    /// Warns of operators that a converter would treat differently from the choice.
    pub(super) fn warn(&self, format: RoundingFormat) {
        let n_unnamed = format::count(self.unnamed.len() as u64, "operator");
        if !self.unnamed.is_empty() {
            report!(
                "opscope: warning: {format}: {n_unnamed} to keep without a name in the model, which a list \
                 cannot express; by their first outputs: {}",
                quoted_list(&self.unnamed)
            );
        }
        if !self.unwritable.is_empty() {
            report!(
                "opscope: warning: {format}: omitted names that this list format cannot express: {}",
                quoted_list(&self.unwritable)
            );
        }
        if !self.shared.is_empty() {
            report!(
                "opscope: warning: {format}: other operators have the same names and would be kept too: {}",
                quoted_list(&self.shared)
            );
        }
    }
}

/// Names in a sentence.
fn quoted_list<'a>(names: impl IntoIterator<Item = &'a String>) -> String {
    let names: Vec<String> = names.into_iter().map(|name| format!("`{name}`")).collect();
    names.join(", ")
}
