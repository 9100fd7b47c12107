//! How tools run models: the same arguments for all.

use std::path::PathBuf;

use serde::Deserialize;
use serde_json::{Map, Value};

use super::answer::ToolFailure;

/// An argument: its name, its JSON type, and its meaning. Those without a `?` are required.
pub(super) type Argument = (&'static str, &'static str, &'static str);

/// How models run.
pub(super) const MODEL_ARGUMENTS: &[Argument] = &[
    ("input?", "object", "input arrays: name → .npy file"),
    (
        "inputs?",
        "string",
        "an .npz archive, or a directory with one per step",
    ),
    (
        "seed?",
        "integer",
        "seed of random inputs; default 0 if no inputs are given",
    ),
    (
        "shape?",
        "object",
        "shapes of random inputs: name → list of integers",
    ),
    (
        "engine?",
        "string",
        "tract or onnxruntime; default: the one that is found",
    ),
];

/// How to run models.
#[derive(Clone, Debug, Default, Deserialize)]
pub(super) struct ModelRun {
    #[serde(default)]
    input: Map<String, Value>,
    inputs: Option<PathBuf>,
    seed: Option<u64>,
    #[serde(default)]
    shape: Map<String, Value>,
    pub(super) engine: Option<String>,
}

impl ModelRun {
    pub(super) fn has_inputs(&self) -> bool {
        self.inputs.is_some() || self.seed.is_some() || !self.input.is_empty()
    }

    /// The seed of random inputs; none if all inputs are files.
    fn random_seed(&self) -> Option<u64> {
        self.seed.or((!self.has_inputs()).then_some(0))
    }

    /// Says in an answer where the inputs come from, if they are random.
    pub(super) fn note_inputs(&self, answer: &mut Value) {
        if let Some(seed) = self.random_seed() {
            let text = format!("random, of seed {seed}, but for the files in `input` and `inputs`");
            answer["inputs"] = text.into();
        }
    }

    /// The same as words of a command line.
    pub(super) fn words(&self) -> Result<Vec<String>, ToolFailure> {
        let mut words = Vec::new();
        for (name, path) in &self.input {
            let path = path.as_str().ok_or_else(|| {
                ToolFailure::new(
                    format!("the file of input `{name}` is not a text"),
                    r#"input: {"NAME": "FILE.npy"}"#,
                )
            })?;
            words.extend(["--input".to_owned(), format!("{name}={path}")]);
        }
        for (name, shape) in &self.shape {
            let sizes = shape.as_array().map(Vec::as_slice).unwrap_or_default();
            let sizes: Option<Vec<String>> = sizes
                .iter()
                .map(|size| size.as_u64().map(|size| size.to_string()))
                .collect();
            let sizes = sizes.filter(|_| shape.is_array()).ok_or_else(|| {
                ToolFailure::new(
                    format!("the shape of `{name}` is not a list of integers"),
                    r#"shape: {"NAME": [1, 3, 224, 224]}"#,
                )
            })?;
            words.extend(["--shape".to_owned(), format!("{name}:{}", sizes.join(","))]);
        }
        let inputs = self.inputs.as_ref().map(|path| path.display().to_string());
        let seed = self.random_seed();
        let options = [
            ("--inputs", inputs),
            ("--seed", seed.map(|seed| seed.to_string())),
            ("--engine", self.engine.clone()),
        ];
        for (option, value) in options {
            // With `=`, so that no value is taken for an option.
            words.extend(value.map(|value| format!("{option}={value}")));
        }
        Ok(words)
    }
}
