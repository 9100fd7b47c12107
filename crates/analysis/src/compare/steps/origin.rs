//! How a dump was made, and what chooses its steps.

use std::path::Path;

use opscope_store::file_format::run_json::RunRecord;
use opscope_store::run_file;

use crate::compare::run_origin::RunOrigin;

/// Reads how a dump was made; `None` without a record next to it.
pub(crate) fn find_origin(dump: &Path) -> Option<RunOrigin> {
    // Of several runs in one directory the last one wrote over what the others had.
    let run = run_file::find(dump).runs.pop()?;
    let RunRecord {
        command,
        dialect,
        configuration,
        mut models,
        ..
    } = run.record;
    // With several models, the operators' model is unknown.
    let model = if models.len() == 1 {
        models.pop().and_then(|model| model.file)
    } else {
        None
    };
    Some(RunOrigin {
        command,
        dialect,
        configuration: configuration.map(|file| file.path),
        model: model.filter(|file| !file.is_empty()),
    })
}

/// Where the steps of a dump are chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum StepChoice {
    CommandLine,
    Acl,
    MindSpore,
    TorchBackend,
    TorchEager,
}

impl RunOrigin {
    /// The options or keys that choose steps in a dump that is made in the same way; none if there
    /// are none.
    pub fn choosing(&self, steps: &[u64], needs_elements: bool) -> Option<String> {
        let choice = self.step_choice()?;
        // A vertical bar is what both vendors take, and `opscope.torch` after them.
        let separator = if choice == StepChoice::CommandLine {
            ","
        } else {
            "|"
        };
        let steps = in_ranges(steps, separator);
        let beside = |text: &str| {
            if needs_elements {
                format!(", {text}")
            } else {
                String::new()
            }
        };
        let file = |keys: String| match &self.configuration {
            Some(path) => format!("{keys} in `{path}`"),
            None => keys,
        };
        Some(match choice {
            StepChoice::CommandLine => {
                let model = self.model.as_deref().unwrap_or("MODEL");
                format!("`opscope dump {model} --iterations {steps}`")
            }
            StepChoice::Acl => file(format!(
                "`\"dump_step\": \"{steps}\"{}`",
                beside("\"dump_data\": \"tensor\"")
            )),
            StepChoice::MindSpore => file(format!(
                "`\"iteration\": \"{steps}\"{}`",
                beside("\"saved_data\": \"tensor\"")
            )),
            StepChoice::TorchBackend => format!(
                "`opscope.torch.backend(steps=\"{steps}\"{})`",
                beside("data=\"tensor\"")
            ),
            StepChoice::TorchEager => format!(
                "`opscope.torch.eager(steps=\"{steps}\"{})`",
                beside("data=\"tensor\"")
            ),
        })
    }

    fn step_choice(&self) -> Option<StepChoice> {
        let is_mindspore = self.dialect == "mindspore";
        // Without a configuration the dialect is that of the form alone. PyTorch takes one as a text,
        // which the record does not keep.
        match (self.command.as_str(), &self.configuration) {
            ("dump", None) => Some(StepChoice::CommandLine),
            ("dump" | "AscendCL", _) if !is_mindspore => Some(StepChoice::Acl),
            ("dump", Some(_)) => Some(StepChoice::MindSpore),
            ("torch.compile", None) if !is_mindspore => Some(StepChoice::TorchBackend),
            ("torch eager", None) => Some(StepChoice::TorchEager),
            _ => None,
        }
    }
}

/// Numbers in rising order as numbers and ranges, `0-3,7`.
pub(crate) fn in_ranges(numbers: &[u64], separator: &str) -> String {
    let runs = numbers.chunk_by(|a, b| a.checked_add(1) == Some(*b));
    let texts = runs.map(|run| match run {
        [first, .., last] => format!("{first}-{last}"),
        one => one.iter().map(ToString::to_string).collect(),
    });
    texts.collect::<Vec<_>>().join(separator)
}
