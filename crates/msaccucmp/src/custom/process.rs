//! A Python interpreter that runs converters and metrics.

use std::borrow::Cow;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use opscope_store::file_format::npy::{self, NpyHeader};
use serde_json::{Value, json};

use crate::array::{ElementArray, SaveOrder, width};

const INTERPRETER: &str = "python3";
const DRIVER: &str = include_str!("driver.py");
/// Maximum length of an answer line; errors can contain a traceback.
const LINE_BYTES_MAX: u64 = 1 << 20;

/// The arguments of a converter.
pub(crate) struct ConverterCall<'a, 'b> {
    pub(crate) array: &'b ElementArray<'a>,
    pub(crate) dims: &'b [usize],
    pub(crate) wanted: &'b [usize],
    /// The number of groups, if the tensor has several.
    pub(crate) groups: Option<i32>,
}

/// The result of loading a script.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ScriptLoad {
    /// The function, and its number of arguments.
    Function(usize),
    /// No such function.
    NoFunction,
    /// Unknown, because the interpreter lacks numpy.
    NoNumpy,
}

/// A running interpreter, killed on drop.
pub(crate) struct InterpreterProcess {
    child: Child,
    requests: ChildStdin,
    answers: BufReader<ChildStdout>,
    is_broken: bool,
}

impl InterpreterProcess {
    /// Starts an interpreter.
    pub(crate) fn start() -> Result<InterpreterProcess, String> {
        let mut child = Command::new(INTERPRETER)
            .args(["-c", DRIVER])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|error| format!("Cannot run {INTERPRETER}: {error}"))?;
        match (child.stdin.take(), child.stdout.take()) {
            (Some(requests), Some(answers)) => Ok(InterpreterProcess {
                child,
                requests,
                answers: BufReader::new(answers),
                is_broken: false,
            }),
            _ => Err(format!("Cannot run {INTERPRETER} with pipes")),
        }
    }

    /// Whether the interpreter accepts further requests.
    pub(crate) fn is_usable(&self) -> bool {
        !self.is_broken
    }

    /// The number of arguments of a script's converter.
    pub(super) fn count_arguments(&mut self, script: &Path) -> Result<usize, String> {
        let request = json!({ "path": script.to_string_lossy() });
        let answer = self.ask(&request, &[])?;
        let n = answer.get("n_arguments").and_then(Value::as_u64);
        n.and_then(|n| usize::try_from(n).ok())
            .ok_or_else(|| "the interpreter gave no answer".to_owned())
    }

    /// Loads a script that may import from `search_dir`, and finds a function.
    pub(crate) fn load(
        &mut self,
        script: &Path,
        function: &str,
        search_dir: &Path,
    ) -> Result<ScriptLoad, String> {
        let request = json!({
            "path": script.to_string_lossy(),
            "search": search_dir.to_string_lossy(),
            "function": function,
        });
        let answer = self.ask(&request, &[])?;
        if answer.get("lacks_numpy").is_some() {
            return Ok(ScriptLoad::NoNumpy);
        }
        let n = answer.get("n_arguments").and_then(Value::as_u64);
        let n = n.and_then(|n| usize::try_from(n).ok());
        Ok(n.map_or(ScriptLoad::NoFunction, ScriptLoad::Function))
    }

    /// Runs a metric on the bytes of two arrays, and returns its result and its message.
    pub(crate) fn compare(
        &mut self,
        request: &Value,
        bytes: &[u8],
    ) -> Result<(String, String), String> {
        let answer = self.ask(request, bytes)?;
        let texts = ["value", "message"].map(|key| answer.get(key).and_then(Value::as_str));
        match texts {
            [Some(value), Some(message)] => Ok((value.to_owned(), message.to_owned())),
            _ => Err("the interpreter gave no answer".to_owned()),
        }
    }

    /// Runs a script's converter.
    pub(super) fn convert(
        &mut self,
        script: &Path,
        call: &ConverterCall<'_, '_>,
    ) -> Result<ElementArray<'static>, String> {
        let bytes = call.array.bytes_in_order(SaveOrder::C);
        let request = json!({
            "path": script.to_string_lossy(),
            "descr": npy::descr(call.array.dtype()),
            "shape_from": call.dims,
            "shape_to": call.wanted,
            "groups": call.groups,
            "n_bytes": bytes.len(),
        });
        let answer = self.ask(&request, &bytes)?;
        let n_bytes = answer.get("n_bytes").and_then(Value::as_u64).unwrap_or(0);
        let mut file = Vec::new();
        let read = self.answers.by_ref().take(n_bytes).read_to_end(&mut file);
        if read.is_err() || file.len() as u64 != n_bytes {
            self.is_broken = true;
            return Err("the interpreter ended".to_owned());
        }
        array_of(file)
    }

    fn ask(&mut self, request: &Value, bytes: &[u8]) -> Result<Value, String> {
        let answer = self.exchange(request, bytes).map_err(|error| {
            self.is_broken = true;
            format!("the interpreter ended: {error}")
        })?;
        match answer.get("error").and_then(Value::as_str) {
            Some(error) => Err(error.to_owned()),
            None => Ok(answer),
        }
    }

    fn exchange(&mut self, request: &Value, bytes: &[u8]) -> io::Result<Value> {
        writeln!(self.requests, "{request}")?;
        self.requests.write_all(bytes)?;
        self.requests.flush()?;
        let mut line = String::new();
        self.answers
            .by_ref()
            .take(LINE_BYTES_MAX)
            .read_line(&mut line)?;
        Ok(serde_json::from_str(&line)?)
    }
}

impl Drop for InterpreterProcess {
    fn drop(&mut self) {
        // It may be anywhere in the user's code, and its result is no longer needed.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The array of an npy file, in its order.
fn array_of(mut file: Vec<u8>) -> Result<ElementArray<'static>, String> {
    let (header, n_header) = NpyHeader::decode(&file).map_err(|error| error.to_string())?;
    if npy::descr(header.dtype).is_none() {
        let dtype = header.dtype;
        return Err(format!("the interpreter gave elements of type {dtype}"));
    }
    if header.is_big_endian {
        let tensor = npy::from_bytes(file).map_err(|error| error.to_string())?;
        let bytes = tensor.host_bytes().map_err(|error| error.to_string())?;
        let bytes = Cow::Owned(bytes.to_vec());
        return ElementArray::flat(tensor.dtype(), bytes).reshape(tensor.shape());
    }
    file.drain(..n_header);
    let mut dims = header.shape.dims().to_vec();
    if file.len() != header.shape.n_elements() * width(header.dtype) {
        return Err("the interpreter gave too few elements".to_owned());
    }
    let array = ElementArray::flat(header.dtype, Cow::Owned(file));
    if !header.is_fortran_order {
        return array.reshape(&dims);
    }
    // Fortran order is C order with the axes reversed. A transposed view keeps the strides of
    // numpy's array, which determine the order in an npy file.
    dims.reverse();
    let axes: Vec<usize> = (0..dims.len()).rev().collect();
    Ok(array.reshape(&dims)?.transpose(&axes))
}
