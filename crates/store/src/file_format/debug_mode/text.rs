//! The format of `DebugMode.debug_string`, as programs print it to a file.
//!
//! ```text
//!     # File: /train/model.py:50 in forward, code: hidden = self.linear(x)
//!     [nn.Mod] Net.linear
//!       aten::addmm(t$3: f32[4], t$8: f32[2, 4], t$9: f32[4, 4])  ->  t$10: f32[2, 4]  # {'hash': 4.65}
//! ```

use super::hashes::HashTree;
use super::modules::ModuleStack;
use super::{DebugCall, DebugLog, literal, stable_name, tensors};
use crate::FormatError;

/// The name of calls that spread a distributed tensor otherwise.
pub(super) const REDISTRIBUTE: &str = "redistribute_input";
/// Begins every line.
const INDENT: &str = "  ";
/// Begins the headers of modules.
pub(super) const MODULE: &str = "nn.Mod";
/// The header of kernels.
const KERNEL: &str = "triton";
/// Between the call, its results and its hashes.
const BEFORE_OUTPUT: &str = "  ->  ";
const BEFORE_LOG: &str = "  # {";
/// Begins a line about a distributed result.
const PLACEMENT: &str = "-> output: ";
/// Begins the line of the program.
const SOURCE: &str = "# File: ";
/// Begin the hashes of a kernel's arguments.
const BEFORE_KERNEL: &str = "# pre-kernel hashes: ";
const BEHIND_KERNEL: &str = "# post-kernel hashes: ";

/// Whether the first line is one of a log, and any line a call. The mode indents all of its lines.
pub(super) fn is_log(head: &str) -> bool {
    let first = head.lines().find(|line| !line.trim().is_empty());
    first.is_some_and(|line| line.starts_with(INDENT))
        && head
            .lines()
            .any(|line| parse_call(line.trim()).is_some() && tensors::has_any(line))
}

pub(super) fn parse(text: &str) -> Result<DebugLog, FormatError> {
    let mut reader = TextReader::default();
    let mut lines = LogLines::new(text);
    while let Some(line) = lines.next_whole() {
        let read = reader.read(line.number, line.text.trim_end());
        read.map_err(|found| FormatError::new(line.offset, "a log of DebugMode", found))?;
    }
    if reader.log.calls.is_empty() && reader.log.unread.n_lines > 0 {
        return Err(FormatError::new(
            0,
            "a log of DebugMode",
            "no line that is a call",
        ));
    }
    Ok(reader.log)
}

/// The lines of a log, of which some are several: results with names are printed one below the
/// other.
struct LogLines<'a> {
    text: &'a str,
    /// Where the next line begins, and its number.
    offset: usize,
    number: usize,
}

/// A line with the lines that belong to it.
struct LogLine<'a> {
    text: &'a str,
    offset: u64,
    number: usize,
}

impl<'a> LogLines<'a> {
    fn new(text: &'a str) -> LogLines<'a> {
        LogLines {
            text,
            offset: 0,
            number: 1,
        }
    }

    fn next_whole(&mut self) -> Option<LogLine<'a>> {
        let (offset, number) = (self.offset, self.number);
        let mut n_open = 0_i64;
        while let Some(line) = self.peek() {
            // A line that is not indented continues a call whose brackets are open.
            if self.offset > offset && (n_open <= 0 || line.starts_with(INDENT)) {
                break;
            }
            let brackets = line.bytes().map(|byte| match byte {
                b'(' => 1,
                b')' => -1,
                _ => 0,
            });
            n_open += brackets.sum::<i64>();
            self.offset += line.len();
            self.number += 1;
        }
        let text = self.text.get(offset..self.offset)?;
        (!text.is_empty()).then_some(LogLine {
            text,
            offset: offset as u64,
            number,
        })
    }

    fn peek(&self) -> Option<&'a str> {
        self.text.get(self.offset..)?.split_inclusive('\n').next()
    }
}

#[derive(Default)]
struct TextReader {
    log: DebugLog,
    modules: ModuleStack,
    source: String,
    n_tensors: usize,
    /// Whether the last call is that of a kernel, whose hashes are on separate lines.
    is_kernel: bool,
}

impl TextReader {
    fn read(&mut self, number: usize, line: &str) -> Result<(), String> {
        let content = line.trim_start();
        // Two blanks are there without any depth.
        let depth = i64::try_from(line.len() - content.len()).unwrap_or(i64::MAX) / 2 - 1;
        if content.is_empty() || content.starts_with(PLACEMENT) {
            return Ok(());
        }
        if let Some(rest) = content.strip_prefix(SOURCE) {
            self.source = source(rest).unwrap_or_default();
            return Ok(());
        }
        let hashes = [(BEFORE_KERNEL, false), (BEHIND_KERNEL, true)];
        let hashes = hashes.into_iter().find_map(|(prefix, is_behind)| {
            let tree = literal::parse(content.strip_prefix(prefix)?);
            Some((tree.unwrap_or(HashTree::None), is_behind))
        });
        if let Some((tree, is_behind)) = hashes {
            self.add_kernel_hashes(&tree, is_behind);
            return Ok(());
        }
        self.is_kernel = false;
        let header = content
            .strip_prefix('[')
            .and_then(|rest| rest.split_once("] "));
        match header {
            Some((KERNEL, call)) => {
                self.is_kernel = true;
                self.add(number, depth, call)
            }
            Some((header, path)) if header.starts_with(MODULE) => {
                self.modules.enter(depth, path);
                Ok(())
            }
            Some(_) => {
                self.modules.pass(depth);
                Ok(())
            }
            None => self.add(number, depth, content),
        }
    }

    fn add(&mut self, number: usize, depth: i64, text: &str) -> Result<(), String> {
        let Some(parsed) = parse_call(text) else {
            self.log.unread.add_line(number, text);
            return Ok(());
        };
        let mut inputs = tensors::find(parsed.args);
        let mut outputs = tensors::find(parsed.output);
        let log = parsed.log.map(literal::parse);
        let tree = log.clone().flatten();
        let get = |key| tree.as_ref().and_then(|tree| tree.get(key));
        let is_read = get("input_hash").is_none_or(|hashes| hashes.assign(&mut inputs))
            & get("hash").is_none_or(|hashes| hashes.assign_or_add(&mut outputs));
        // The output of a user's function may not be a Python value.
        if !is_read || log == Some(None) {
            self.log.unread.add_hashed(parsed.name);
        }
        let call = DebugCall {
            name: stable_name(parsed.name),
            module: self.modules.module_of(depth, parsed.name),
            source: self.source.clone(),
            inputs,
            outputs,
        };
        self.log.add(call, &mut self.n_tensors)
    }

    /// Adds the hashes of a kernel's arguments, which are also its only outputs.
    fn add_kernel_hashes(&mut self, tree: &HashTree, is_behind: bool) {
        let Some(call) = self.log.calls.last_mut().filter(|_| self.is_kernel) else {
            return;
        };
        let tensors = if is_behind {
            call.outputs.clone_from(&call.inputs);
            call.outputs
                .iter_mut()
                .for_each(|tensor| tensor.hashes.clear());
            self.n_tensors += call.outputs.len();
            &mut call.outputs
        } else {
            &mut call.inputs
        };
        if !tree.assign(tensors) || *tree == HashTree::None {
            self.log.unread.add_hashed(&call.name);
        }
    }
}

/// The parts of a line that is a call.
struct CallParts<'a> {
    name: &'a str,
    args: &'a str,
    output: &'a str,
    /// The notes of hooks.
    log: Option<&'a str>,
}

/// Splits `{name}({args}) -> {output} # {log}`. Arguments may contain any text, so the delimiters
/// are searched from the end.
fn parse_call(text: &str) -> Option<CallParts<'_>> {
    let (rest, log) = match text.rfind(BEFORE_LOG) {
        Some(at) => (text.get(..at)?, text.get(at + BEFORE_LOG.len() - 1..)),
        None => (text, None),
    };
    let (call, output) = match rest.rfind(BEFORE_OUTPUT) {
        Some(at) => (rest.get(..at)?, rest.get(at + BEFORE_OUTPUT.len()..)?),
        None => (rest, ""),
    };
    let (name, args) = call.strip_suffix(')')?.split_once('(')?;
    // The redistribution of a distributed tensor follows the name.
    let name = match name.strip_prefix(REDISTRIBUTE) {
        Some(_) => REDISTRIBUTE,
        None => name,
    };
    (!name.trim().is_empty()).then_some(CallParts {
        name,
        args,
        output,
        log,
    })
}

/// `{file}:{line} {function}` of `{file}:{line} in {function}, code: {code}`.
fn source(text: &str) -> Option<String> {
    let (place, _) = text.split_once(", code: ")?;
    let (place, function) = place.rsplit_once(" in ")?;
    Some(format!("{place} {function}"))
}
