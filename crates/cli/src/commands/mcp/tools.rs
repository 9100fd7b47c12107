//! The tools: names, arguments, and the functions behind them.

use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

use super::answer::ToolResult;
use super::looking::LookArguments;
use super::model_run::{Argument, MODEL_ARGUMENTS};
use super::trying::TryArguments;
use super::{McpState, dumping, judging, looking, trying};

/// A tool.
pub(super) struct Tool {
    pub(super) name: &'static str,
    description: &'static str,
    /// Its arguments, those of [`MODEL_ARGUMENTS`] excluded.
    arguments: &'static [Argument],
    /// Whether it runs models.
    runs_models: bool,
    /// Whether it may write below the directory of the server.
    is_writing: bool,
    call: fn(&mut McpState, Map<String, Value>) -> Result<ToolResult, String>,
}

/// All tools.
pub(super) const TOOLS: &[Tool] = &[
    Tool {
        name: "run",
        description: "Run an ONNX model and dump every operator's inputs and outputs",
        arguments: &[
            ("model", "string", "path of the .onnx file"),
            ("steps?", "integer", "number of runs"),
        ],
        runs_models: true,
        is_writing: true,
        call: |state, given| parsed(given).map(|given| dumping::run(state, &given)),
    },
    Tool {
        name: "verdict",
        description: "Compare two models or dumps, and name the operator where they diverge",
        arguments: &[
            (
                "target",
                "string",
                "the side under test: an .onnx file or a dump",
            ),
            (
                "golden?",
                "string",
                "the reference; default: target in golden_engine",
            ),
            (
                "golden_engine?",
                "string",
                "the engine of golden, if another one",
            ),
        ],
        runs_models: true,
        is_writing: true,
        call: |state, given| parsed(given).map(|given| judging::verdict(state, given)),
    },
    Tool {
        name: "look",
        description: "Statistics, a slice and the worst elements of one tensor of a dump",
        arguments: &[
            ("dump", "string", "path of the dump"),
            ("operator", "string", "name of the operator"),
            ("slot", "string", "output.0, input.1, …"),
            (
                "golden?",
                "string",
                "another dump to compare the tensor with",
            ),
            ("step?", "integer", "the step, if there are several"),
            (
                "at?",
                "array",
                "index of an element to show with its neighbours",
            ),
        ],
        runs_models: false,
        is_writing: false,
        call: |_, given| parsed::<LookArguments>(given).map(|given| looking::look(&given)),
    },
    Tool {
        name: "why",
        description: "Explain a verdict: what differs, proven by runs with parts of golden",
        arguments: &[
            ("verdict", "string", "id from the tool `verdict`"),
            (
                "model?",
                "string",
                "the target's model, if the sides are dumps",
            ),
            (
                "golden_model?",
                "string",
                "golden's model, if the sides are dumps",
            ),
            (
                "runs?",
                "integer",
                "maximum number of runs of the target; default 12",
            ),
        ],
        runs_models: false,
        is_writing: false,
        call: |state, given| parsed(given).map(|given| judging::why(state, &given)),
    },
    Tool {
        name: "try",
        description: "Change a model in memory and compare its outputs before and after: take \
                      golden's definition of operators, or round their results to a dtype",
        arguments: &[
            (
                "model",
                "string",
                "path of the .onnx file, which stays as it is",
            ),
            ("golden?", "string", "the model whose definitions to take"),
            ("round?", "string", "float16, bfloat16, float8_e4m3 or int8"),
            (
                "operators?",
                "array",
                "names of the operators to change; default all",
            ),
        ],
        runs_models: true,
        is_writing: false,
        call: |_, given| parsed::<TryArguments>(given).map(|given| trying::try_change(&given)),
    },
];

impl Tool {
    /// The tool as the protocol lists it.
    pub(super) fn to_json(&self) -> Value {
        let mut properties = Map::new();
        let mut required = Vec::new();
        for &(name, kind, meaning) in self.all_arguments() {
            let is_required = !name.ends_with('?');
            let name = name.trim_end_matches('?');
            let mut property = json!({ "type": kind, "description": meaning });
            if kind == "array" {
                let items = if name == "at" { "integer" } else { "string" };
                property["items"] = json!({ "type": items });
            }
            properties.insert(name.to_owned(), property);
            if is_required {
                required.push(name);
            }
        }
        json!({
            "name": self.name,
            "description": self.description,
            "inputSchema": {
                "type": "object",
                "properties": properties,
                "required": required,
                "additionalProperties": false,
            },
            "annotations": {
                "readOnlyHint": !self.is_writing,
                "destructiveHint": false,
                "openWorldHint": false,
            },
        })
    }

    fn all_arguments(&self) -> impl Iterator<Item = &Argument> {
        let models = if self.runs_models {
            MODEL_ARGUMENTS
        } else {
            &[]
        };
        self.arguments.iter().chain(models)
    }

    /// Calls it; the outer error says which argument is wrong.
    pub(super) fn call(
        &self,
        state: &mut McpState,
        given: Map<String, Value>,
    ) -> Result<ToolResult, String> {
        for name in given.keys() {
            let mut known = self.all_arguments();
            if !known.any(|(argument, ..)| argument.trim_end_matches('?') == name) {
                return Err(format!("there is no argument `{name}`"));
            }
        }
        for (argument, expected, _) in self.all_arguments() {
            let name = argument.trim_end_matches('?');
            let Some(value) = given.get(name) else {
                continue;
            };
            let found = kind(value);
            // An optional argument may be null.
            let is_omitted = value.is_null() && argument.ends_with('?');
            if found != *expected && !is_omitted {
                return Err(format!("`{name}` is of type {found}, expected {expected}"));
            }
        }
        (self.call)(state, given)
    }

    /// Its arguments in words.
    pub(super) fn usage(&self) -> String {
        let names: Vec<&str> = self.all_arguments().map(|(name, ..)| *name).collect();
        format!("the arguments {} (`?`: optional)", names.join(", "))
    }
}

/// The type of a value, in the words of JSON schemas.
fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(number) if number.is_f64() => "number",
        Value::Number(_) => "integer",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

fn parsed<A: DeserializeOwned>(given: Map<String, Value>) -> Result<A, String> {
    serde_json::from_value(Value::Object(given)).map_err(|error| error.to_string())
}
