//! Listed files and what is read from them, and names that more than one form of dump has.

use super::ReadFiles;
use super::tensor_file::{FileContent, FileExpectation, FileRequest};
use crate::StoreError;
use crate::decimal::is_digits;
use crate::dump::DumpEntry;
use crate::file_format::{npy_zst, stats_csv};
use crate::tree::acl::ResultName;

/// A listed file and its contents; none if it is damaged.
pub(super) type ReadEntry = (DumpEntry, Option<FileContent>);

/// Reads the files of a listing and notes those that cannot be read.
pub(super) fn read_entries(
    entries: Vec<DumpEntry>,
    read: ReadFiles<'_>,
    errors: &mut Vec<StoreError>,
) -> Vec<ReadEntry> {
    let requests: Vec<FileRequest> = entries.iter().map(request).collect();
    let contents = read(&requests).into_iter();
    let noted = contents.map(|content| content.map_err(|error| errors.push(error)).ok());
    entries.into_iter().zip(noted).collect()
}

/// Names that do not follow the pattern, and those that are lost, leave it to the content.
pub(super) fn request(entry: &DumpEntry) -> FileRequest {
    let expectation = match &entry.name {
        Some(_) if is_table(entry) => FileExpectation::Table,
        None if stats_csv::may_be_table(&entry.real_name) => FileExpectation::Either,
        _ => FileExpectation::Tensors,
    };
    FileRequest {
        path: entry.path.clone(),
        real_name: entry.real_name.clone(),
        expectation,
    }
}

/// Parses the name of a converted tensor; `None` if the file is not named like one.
pub(super) fn result_name(entry: &DumpEntry) -> Option<ResultName> {
    let (stem, _) = npy_zst::split_name(&entry.real_name)?;
    ResultName::parse(stem)
}

/// Name, output and time of `{op_name}.{output}.{timestamp}`; none of another name.
pub(super) fn golden_name(stem: &str) -> Option<(&str, u32, &str)> {
    let (rest, time) = stem.rsplit_once('.')?;
    let (op_name, output) = rest.rsplit_once('.')?;
    let time = Some(time).filter(|text| is_digits(text))?;
    let output = Some(output).filter(|text| is_digits(text))?.parse().ok()?;
    (!op_name.is_empty()).then_some((op_name, output, time))
}

pub(super) fn is_table(entry: &DumpEntry) -> bool {
    entry.real_name.ends_with(stats_csv::FILE_NAME_SUFFIX)
}
