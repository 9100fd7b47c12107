//! The form that `DebugMode.save_logs` writes.

use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, Error, SeqAccess, Visitor};

use super::hashes::HashTree;
use super::modules::ModuleStack;
use super::{DebugCall, DebugLog, FILE_BYTES_MAX, stable_name, tensors};
use crate::FormatError;
use crate::file_format::json_object;

/// The value of `format`.
const FORMAT: &str = "torch.utils._debug_mode.DebugMode.logs";
/// The value of `version`.
const VERSION: u64 = 1;
/// Parts of the paths of files that belong to PyTorch and not to the program.
const FRAMEWORKS: [&str; 2] = ["site-packages/torch/", "dist-packages/torch/"];

pub(super) fn is_log(head: &str) -> bool {
    head.trim_start().starts_with('{') && head.contains(&format!("\"{FORMAT}\""))
}

pub(super) fn parse(bytes: &[u8]) -> Result<DebugLog, FormatError> {
    let file: LogFile = json_object::decode(bytes, FILE_BYTES_MAX, "a log of DebugMode")?;
    if (file.format.as_str(), file.version) != (FORMAT, VERSION) {
        let found = format!("`{}` in version {}", file.format, file.version);
        let expected = format!("`{FORMAT}` in version {VERSION}");
        return Err(FormatError::new(0, expected, found));
    }
    Ok(file.logs.0)
}

#[derive(Deserialize)]
struct LogFile {
    format: String,
    version: u64,
    logs: LoggedCalls,
}

/// The calls, of which no more than one is in memory as it is in the file: stacks are long.
struct LoggedCalls(DebugLog);

impl<'de> Deserialize<'de> for LoggedCalls {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<LoggedCalls, D::Error> {
        struct CallsVisitor;

        impl<'de> Visitor<'de> for CallsVisitor {
            type Value = LoggedCalls;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a list of calls")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<LoggedCalls, A::Error> {
                let mut log = DebugLog::default();
                let mut modules = ModuleStack::default();
                let mut n_tensors = 0;
                while let Some(logged) = list.next_element::<LoggedCall>()? {
                    let call = logged.into_call(&mut modules, &mut log);
                    let call = call.map_err(A::Error::custom)?;
                    if let Some(call) = call {
                        log.add(call, &mut n_tensors).map_err(A::Error::custom)?;
                    }
                }
                Ok(LoggedCalls(log))
            }
        }
        from.deserialize_seq(CallsVisitor)
    }
}

/// An entry of the list, whatever its kind.
#[derive(Deserialize)]
struct LoggedCall {
    r#type: String,
    call_depth: i64,
    log: Option<HashTree>,
    output_str: Option<String>,
    stack_trace: Option<String>,
    fwd_stack_trace: Option<String>,
    // Of operators.
    op_name: Option<String>,
    args_str: Option<String>,
    kwargs_str: Option<String>,
    // Of distributed tensors that are spread otherwise.
    arg_str: Option<String>,
    // Of kernels.
    kernel_name: Option<String>,
    pre_hashes: Option<HashTree>,
    post_hashes: Option<HashTree>,
    // Of notes.
    tag: Option<String>,
    header: Option<String>,
}

impl LoggedCall {
    fn into_call(
        self,
        modules: &mut ModuleStack,
        log: &mut DebugLog,
    ) -> Result<Option<DebugCall>, String> {
        let name = match self.r#type.as_str() {
            "op" => field(self.op_name.as_deref(), "op_name")?,
            "redistribute" => super::text::REDISTRIBUTE,
            "triton_kernel" => field(self.kernel_name.as_deref(), "kernel_name")?,
            "annotate" => {
                let header = field(self.header.as_deref(), "header")?;
                if header.starts_with(super::text::MODULE) {
                    modules.enter(self.call_depth, field(self.tag.as_deref(), "tag")?);
                } else {
                    modules.pass(self.call_depth);
                }
                return Ok(None);
            }
            "output_placement" => return Ok(None),
            other => return Err(format!("expected the type of a call, found `{other}`")),
        };
        // Which of them is there depends on the kind.
        let texts = [&self.args_str, &self.arg_str, &self.kwargs_str].map(Option::as_deref);
        let mut inputs: Vec<_> = texts
            .into_iter()
            .flatten()
            .flat_map(tensors::find)
            .collect();
        let output_str = self.output_str.as_deref().unwrap_or_default();
        let mut outputs = tensors::find(output_str);
        let input_hashes = self.log.as_ref().and_then(|log| log.get("input_hash"));
        let output_hashes = self.log.as_ref().and_then(|log| log.get("hash"));
        // A kernel's only outputs are its arguments.
        if self.post_hashes.is_some() {
            outputs.clone_from(&inputs);
        }
        let input_hashes = input_hashes.or(self.pre_hashes.as_ref());
        let output_hashes = output_hashes.or(self.post_hashes.as_ref());
        let is_read = input_hashes.is_none_or(|hashes| hashes.assign(&mut inputs))
            & output_hashes.is_none_or(|hashes| hashes.assign_or_add(&mut outputs));
        if !is_read {
            log.unread.add_hashed(name);
        }
        // A backward call has the stack of autograd, in which no line is the program's.
        let traces = [&self.fwd_stack_trace, &self.stack_trace].map(Option::as_deref);
        let source = traces.into_iter().flatten().find_map(innermost);
        Ok(Some(DebugCall {
            name: stable_name(name),
            module: modules.module_of(self.call_depth, name),
            source: source.unwrap_or_default(),
            inputs,
            outputs,
        }))
    }
}

fn field<'a>(value: Option<&'a str>, name: &str) -> Result<&'a str, String> {
    value.ok_or_else(|| format!("expected the field `{name}`, found none"))
}

/// The last line outside of PyTorch, as `{file}:{line} {function}`.
fn innermost(trace: &str) -> Option<String> {
    let lines = trace.lines().map(str::trim).rev();
    let mut frames = lines.filter_map(|line| {
        let (file, rest) = line.strip_prefix("File \"")?.split_once("\", line ")?;
        let (number, function) = rest.split_once(", in ")?;
        Some((file, number, function))
    });
    let (file, number, function) =
        frames.find(|(file, ..)| !FRAMEWORKS.iter().any(|part| file.contains(part)))?;
    Some(format!("{file}:{number} {function}"))
}
