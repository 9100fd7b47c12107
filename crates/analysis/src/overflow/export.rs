//! Exports records to JSON, the tensors of their operators to arrays, and the summary file.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use opscope_store::atomic_file::Creator;
use opscope_store::reader::{OpenedTensor, TensorFile};
use opscope_store::{StoreError, remote};

use super::{OverflowReport, summary};
use crate::convert::{self, ConversionOptions, ConvertReport, ConvertSource};
use crate::elements::decode_tensor;
use crate::error_chain::chain;

/// The exported files.
#[derive(Debug)]
pub struct ExportedFiles {
    /// The summary file.
    pub summary: PathBuf,
    /// The outcome of converting records and dumps.
    pub report: ConvertReport,
}

/// Writes JSON files of the records, arrays of their operators' tensors, and the summary to the
/// output directory of `options`.
///
/// # Errors
/// [`StoreError::Io`] if the directory or the summary cannot be written. Errors of single files are
/// in the report.
pub fn export(
    overflows: &[&OverflowReport],
    options: &ConversionOptions,
) -> Result<ExportedFiles, StoreError> {
    let mut seen = HashSet::new();
    let files = overflows.iter().flat_map(|overflow| {
        let of_operator = overflow
            .operator
            .iter()
            .flat_map(|operator| &operator.files);
        let of_operator = of_operator.map(|file| (&file.path, &file.file_name));
        std::iter::once((&overflow.path, &overflow.file_name)).chain(of_operator)
    });
    // A file may hold several records, and several records may concern one operator; convert each
    // file once.
    let files = files.filter(|(path, _)| seen.insert((*path).clone()));
    let sources: Vec<ConvertSource> = files.map(|(path, name)| source(path, name)).collect();
    let report = convert::run(&sources, options, |_| {})?;
    let blocks = overflows.iter().enumerate();
    let text: String = blocks.map(|(i, overflow)| block(overflow, i + 1)).collect();
    let path = options.out.join(summary::file_name());
    let creator = Creator::in_dump(&options.out, options.modes);
    creator.replace_file(&path, &[text.as_bytes()])?;
    Ok(ExportedFiles {
        summary: path,
        report,
    })
}

fn source(path: &Path, real_name: &str) -> ConvertSource {
    let file_name = path.file_name().unwrap_or_default();
    let file_name = file_name.to_string_lossy().into_owned();
    ConvertSource {
        path: path.to_owned(),
        real_name: (file_name != real_name).then(|| real_name.to_owned()),
        file_name,
        names_its_tensor: false,
        subdir: PathBuf::new(),
        // Only counted for the report, so an unreadable file may have no size.
        n_bytes: remote::metadata(path).map_or(0, |metadata| metadata.len()),
        records: Vec::new(),
    }
}

/// The summary's section about one overflow.
fn block(overflow: &OverflowReport, number: usize) -> String {
    let mut text = summary::title(number);
    let files = overflow
        .operator
        .iter()
        .flat_map(|operator| &operator.files);
    let files: Vec<_> = files
        .map(|file| (file, TensorFile::open(&file.path, &file.file_name)))
        .collect();
    // All files belong to one operator, so the first readable one names it.
    let mut opened = files.iter().filter_map(|(_, file)| file.as_ref().ok());
    if let (Some(operator), Some(file)) = (&overflow.operator, opened.next()) {
        // An array has no header with the operator's name, but its file name has it.
        let named = file.array_name().map(|name| name.op_name);
        let op_name = named.as_deref().unwrap_or(&file.facts().op_name);
        text.push_str(&summary::operator_line(&operator.op_type, op_name));
    }
    // Without an operator dump the section still lists the record itself.
    let parts: Vec<_> = overflow.findings.iter().map(|f| f.to_part()).collect();
    text.push_str(&summary::record_lines(&parts, &overflow.timestamp));
    for (named, file) in &files {
        match file {
            Ok(file) => text.push_str(&tensors(&named.file_name, file)),
            // One damaged dump must not break the rest of the summary.
            Err(error) => text.push_str(&format!(" {}\n", chain(error))),
        }
    }
    text
}

fn tensors(file_name: &str, file: &TensorFile) -> String {
    let lines = file.tensors().map(|stored| {
        let name = format!("{file_name}.{}", stored.label());
        let layout = stored.layout.value();
        let layout = layout.map_or_else(|| "unknown".to_owned(), |layout| layout.to_string());
        let part = match file.elements(stored) {
            Ok(part) => part,
            Err(error) => return format!(" {}\n", chain(&error)),
        };
        let bytes = part.as_ref();
        match decode_tensor(OpenedTensor { stored, bytes }) {
            Ok(decoded) => {
                let dims = decoded.shape.dims();
                summary::tensor_lines(&name, &layout, dims, decoded.dtype, &decoded.bytes)
                    .unwrap_or_else(|| format!(" {name}.npy\n -[Format: {layout}] (empty)\n"))
            }
            Err(error) => format!(" {}\n", chain(&error)),
        }
    });
    lines.collect()
}
