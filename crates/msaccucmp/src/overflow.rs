//! `overflow`: the first operators that overflowed, with their tensors.

mod find;
mod record;

use std::path::{Path, PathBuf};

use find::DebugFile;
use opscope_analysis::overflow::summary;
use record::SummaryRecord;

use crate::array::SaveOrder;
use crate::failure::{ErrorCode, ToolFailure};
use crate::options::OverflowOptions;
use crate::output::OutputFolder;
use crate::paths::{self, PathKind};
use crate::source::DumpSource;
use crate::{convert, dtype, formats, log};

/// Runs the command.
pub(super) fn run(options: &OverflowOptions) -> Result<(), ToolFailure> {
    let dir = paths::resolve(&options.dump_path);
    paths::check_input(&dir, PathKind::Directory).map_err(|failure| {
        let failure = failure.logged();
        let path = &options.dump_path;
        log::error(&format!(
            "[Overflow] the -d parameter: \"'{path}'\" is invalid!"
        ));
        failure
    })?;
    let out_dir = paths::resolve(&options.out_dir);
    // The directory is created before the search because the reference leaves one behind even if a
    // later step fails.
    paths::create_output(&out_dir)?;
    let files = find::debug_files(&dir)?;
    if files.is_empty() {
        // No overflow is a success: the reference returns 0 and writes no summary.
        log::warning("[Overflow] Find [0] overflow node!");
        return Ok(());
    }
    let n_top = files.len().min(options.n_top);
    log::info(&format!(
        "[Overflow] Find [{}] overflow ops. Will show the top {n_top}.",
        files.len()
    ));
    let mut text = String::new();
    for (i, file) in files.iter().take(n_top).enumerate() {
        text.push_str(&block(file, &out_dir, i + 1)?);
    }
    log::info(&format!("[Overflow] The overflow analyse result:\n {text}"));
    OutputFolder::new(out_dir).text(&summary::file_name(), &text)?;
    Ok(())
}

/// Returns the section of the summary for one overflow.
fn block(file: &DebugFile, out_dir: &Path, number: usize) -> Result<String, ToolFailure> {
    let json = converted(file, out_dir)?;
    let record = SummaryRecord::read(&json)?;
    let mut text = summary::title(number);
    let operator = match find::operator(file, &record)? {
        None => {
            log::warning(&format!(
                "[Overflow] Can't find the dump file corresponding to the debug file: {}",
                file.name
            ));
            None
        }
        Some(operator) => Some((
            convert::convert_for_overflow(&operator.path, None, out_dir)?,
            operator,
        )),
    };
    if let Some((source, operator)) = &operator {
        text.push_str(&summary::operator_line(&operator.op_type, &source.op_name));
    }
    text.push_str(&summary::record_lines(&record.parts, &file.timestamp));
    if let Some((source, _)) = &operator {
        text.push_str(&tensor_lines(source)?);
    }
    Ok(text)
}

/// Two lines for each tensor of the operator.
///
/// The reference fails on empty tensors and on buffers.
fn tensor_lines(source: &DumpSource) -> Result<String, ToolFailure> {
    let mut text = String::new();
    for tensor in source.tensors() {
        let decoded = dtype::decode(&tensor)?;
        let bytes = decoded.array.bytes_in_order(SaveOrder::C);
        let (_, format) = formats::from_code(tensor.entry.format)?;
        let (side, i) = (tensor.side.name(), tensor.index);
        let file = format!("{}.{side}.{i}", source.file_name);
        let dtype = decoded.array.dtype();
        let lines = summary::tensor_lines(&file, format, &decoded.dims, dtype, &bytes);
        let lines = lines.ok_or_else(|| {
            let message = format!("The data of {} is empty.", tensor.label());
            ToolFailure::new(ErrorCode::InvalidDumpData, message)
        })?;
        text.push_str(&lines);
    }
    // The reference processes buffers after all tensors, so an empty tensor ends the command first,
    // with another status.
    if source.buffers().next().is_some() {
        return Err(ToolFailure::unexpected(
            "'OpBuffer' object has no attribute 'tensor_format'",
        ));
    }
    Ok(text)
}

/// The JSON file of a record in the output directory; an existing one is reused.
fn converted(file: &DebugFile, out_dir: &Path) -> Result<PathBuf, ToolFailure> {
    // A JSON of an earlier run is used as this one's, one of the mistakes in `docs/msaccucmp.md`.
    if let Some(json) = find_json(file, out_dir)? {
        return Ok(json);
    }
    match convert::convert_for_overflow(&file.path, Some(&file.name), out_dir) {
        Ok(_) => {}
        // A coded failure only leaves the record without a JSON file, which ends the command below
        // with a different code; an exception ends it at once.
        Err(failure @ ToolFailure::Unexpected(_)) => return Err(failure),
        Err(failure) => failure.log(),
    }
    find_json(file, out_dir)?.ok_or_else(|| {
        let message = format!(
            "[Overflow] Parsed overflow debug file: {} failed.",
            file.name
        );
        ToolFailure::new(ErrorCode::ParseDumpFile, message)
    })
}

/// The only JSON file whose name begins with the record's file name.
fn find_json(file: &DebugFile, out_dir: &Path) -> Result<Option<PathBuf>, ToolFailure> {
    let unreadable = |error: std::io::Error| ToolFailure::unexpected(error.to_string());
    let mut found = Vec::new();
    for entry in std::fs::read_dir(out_dir).map_err(unreadable)? {
        let entry = entry.map_err(unreadable)?;
        let name = entry.file_name();
        let name = name.to_string_lossy();
        // The reference compares prefixes of names. A record with two outputs, or one whose name is
        // a prefix of another, therefore finds several files and fails.
        if name.starts_with(file.name.as_str()) && name.ends_with(".json") {
            found.push(entry.path());
        }
    }
    if found.len() > 1 {
        let message = format!("There are {} JSON files for {}.", found.len(), file.name);
        return Err(ToolFailure::new(ErrorCode::MoreFilesMatch, message));
    }
    Ok(found.pop())
}
