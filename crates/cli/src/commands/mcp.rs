//! `opscope mcp`.

mod answer;
mod dumping;
mod judging;
mod looking;
pub(crate) mod message;
mod model_run;
mod tools;
mod trying;

use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use serde_json::{Map, Value, json};

use self::answer::{ToolFailure, of_tool};
use self::judging::Judged;
use self::message::{ClientMessage, RpcError};
use self::tools::TOOLS;
use crate::commands::dump::run_model::{is_signalled, stop_on_signal};
use crate::console;
use crate::exit::{CommandFailure, CommandResult, INTERRUPTED, USAGE};

/// Versions of the protocol that clients may ask for, the newest first. The methods that this
/// server knows are the same in all.
const VERSIONS: [&str; 4] = ["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"];

const INSTRUCTIONS: &str = "Finds the operator that makes a neural network answer wrongly. Start \
    with `verdict` on two models or dumps, then `why`; `look` shows a tensor, `try` tests a change. \
    Each answer has the `next` step.";

/// Serve run, verdict, look, why and try to an agent, by the Model Context Protocol
///
/// Reads JSON-RPC messages from standard input and answers on standard output, one JSON object a
/// line, until the input ends. Dumps go below `--out`; nothing else is written.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  opscope mcp --out /tmp/dumps")]
pub(crate) struct McpArguments {
    /// The directory for dumps; created if missing
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
}

/// The state of a session.
struct McpState {
    out: PathBuf,
    verdicts: Vec<Judged>,
}

impl McpState {
    /// A new directory for dumps.
    fn new_place(&self, kind: &str) -> PathBuf {
        let mut places = (1_u64..).map(|n| self.out.join(format!("{kind}-{n}")));
        // Another session may use the same directory.
        let new = places.find(|place| place.symlink_metadata().is_err());
        new.unwrap_or_else(|| self.out.join(kind))
    }
}

pub(crate) fn run(arguments: &McpArguments) -> CommandResult {
    if arguments.out.exists() && !arguments.out.is_dir() {
        let message = format!("`{}` is not a directory", arguments.out.display());
        return Err(CommandFailure::message(USAGE, message));
    }
    let mut state = McpState {
        out: arguments.out.clone(),
        verdicts: Vec::new(),
    };
    let mut input = io::stdin().lock();
    end_at_signals();
    while let Some(line) = message::read_line(&mut input)? {
        if let Some(answer) = respond(&mut state, line) {
            let mut out = console::json_out();
            writeln!(out, "{answer}")?;
            out.flush()?;
        }
        if is_signalled() {
            return Err(CommandFailure::silent(INTERRUPTED));
        }
        end_at_signals();
    }
    Ok(())
}

/// Makes a signal end the process while no tool works.
fn end_at_signals() {
    // A run that has been stopped already: the first signal then ends the process.
    stop_on_signal(Arc::new(AtomicBool::new(true)));
}

/// The answer to a line, if it needs one.
fn respond(state: &mut McpState, line: Result<Vec<u8>, RpcError>) -> Option<Value> {
    let line = match line {
        Ok(line) if line.iter().all(u8::is_ascii_whitespace) => return None,
        Ok(line) => line,
        Err(error) => return Some(error.to_json()),
    };
    match message::parse(&line) {
        Ok(ClientMessage::Request { id, method, params }) => {
            let result = answered(state, &id, &method, params);
            Some(result.map_or_else(
                |error| error.to_json(),
                |result| message::answer(&id, &result),
            ))
        }
        Ok(ClientMessage::Other) => None,
        Err(error) => Some(error.to_json()),
    }
}

/// The result of a method.
fn answered(
    state: &mut McpState,
    id: &Value,
    method: &str,
    params: Map<String, Value>,
) -> Result<Value, RpcError> {
    match method {
        "initialize" => Ok(initialized(&params)),
        "ping" => Ok(json!({})),
        "tools/list" => Ok(json!({
            "tools": TOOLS.iter().map(tools::Tool::to_json).collect::<Vec<_>>(),
        })),
        "tools/call" => call(state, id, params),
        _ => Err(RpcError::no_method(id.clone(), method)),
    }
}

fn initialized(params: &Map<String, Value>) -> Value {
    let wanted = params.get("protocolVersion").and_then(Value::as_str);
    let known = VERSIONS
        .into_iter()
        .find(|version| Some(*version) == wanted);
    json!({
        "protocolVersion": known.unwrap_or(VERSIONS[0]),
        "capabilities": { "tools": { "listChanged": false } },
        "serverInfo": { "name": "opscope", "version": env!("CARGO_PKG_VERSION") },
        "instructions": INSTRUCTIONS,
    })
}

fn call(
    state: &mut McpState,
    id: &Value,
    mut params: Map<String, Value>,
) -> Result<Value, RpcError> {
    let invalid = |cause, expected| RpcError::params(id.clone(), cause, expected);
    let name = params
        .get("name")
        .and_then(Value::as_str)
        .unwrap_or_default();
    let tool = TOOLS.iter().find(|tool| tool.name == name).ok_or_else(|| {
        let names: Vec<&str> = TOOLS.iter().map(|tool| tool.name).collect();
        let cause = format!("there is no tool `{name}`");
        invalid(cause, format!("`name` to be one of {}", names.join(", ")))
    })?;
    let arguments = match params.remove("arguments") {
        None | Some(Value::Null) => Map::new(),
        Some(Value::Object(arguments)) => arguments,
        Some(_) => {
            return Err(invalid(
                "`arguments` is not an object".to_owned(),
                tool.usage(),
            ));
        }
    };
    let result = tool.call(state, arguments);
    result
        .map(of_tool)
        .map_err(|cause| invalid(cause, tool.usage()))
}

/// Parses words as the arguments of a command.
fn command_arguments<A: clap::Args>(words: Vec<String>) -> Result<A, ToolFailure> {
    let command = A::augment_args(clap::Command::new("opscope").no_binary_name(true));
    let parsed = command
        .try_get_matches_from(words)
        .and_then(|matches| A::from_arg_matches(&matches));
    parsed.map_err(|error| {
        // The usage after it is that of the command line.
        let text = error.to_string();
        let lines = text.lines().take_while(|line| !line.starts_with("Usage"));
        let lines: Vec<&str> = lines
            .map(str::trim)
            .filter(|line| !line.is_empty())
            .collect();
        let text = lines.join(" ");
        ToolFailure::new(
            text.trim_start_matches("error: "),
            "the tool's arguments are in `tools/list`",
        )
    })
}
