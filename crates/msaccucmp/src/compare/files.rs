//! Compares two array files.

use std::path::Path;

use opscope_store::file_format::npy;
use opscope_store::regular_file;

use super::algorithms::{Algorithms, MetricTexts};
use super::dump::is_scalar;
use super::metrics::TensorFacts;
use super::stop::CompareStop;
use super::table;
use super::values::SideValues;
use crate::array::ElementArray;
use crate::failure::ErrorCode;
use crate::log;
use crate::numpy::{self, LoadFailure};
use crate::output::OutputFolder;
use crate::paths::{self, PathKind};

/// The suffix of text files, which are read as tables.
const TEXT_SUFFIX: &str = ".txt";

/// Compares two files, and writes the result if there is an output.
pub(super) fn run(
    my_path: &str,
    golden_path: &str,
    algorithms: &Algorithms,
    output: Option<&OutputFolder>,
) -> Result<(), CompareStop> {
    let (mine, golden) = (paths::resolve(my_path), paths::resolve(golden_path));
    paths::check_input(&mine, PathKind::File)?;
    paths::check_input(&golden, PathKind::File)?;
    log::info(&format!("The my output dump file is '{}'.", mine.display()));
    log::info(&format!("The ground truth file is '{}'.", golden.display()));
    let (my_array, golden_array) = (read(&mine)?, read(&golden)?);
    if my_array.dims != golden_array.dims {
        log::error(&format!(
            "My output shape {:?} in '{}' does not match the ground truth shape {:?} in '{}'.",
            my_array.dims,
            mine.display(),
            golden_array.dims,
            golden.display()
        ));
        return Err(CompareStop::bare(ErrorCode::Shape));
    }
    let about = TensorFacts {
        my_file: &mine.display().to_string(),
        golden_file: &golden.display().to_string(),
        is_scalar: is_scalar(&my_array.dims),
    };
    let results = algorithms.compare(my_array.values?, golden_array.values?, &about, None)?;
    show(algorithms, &results);
    let Some(output) = output else {
        return Ok(());
    };
    let lines = algorithms.titles().zip(&results.texts);
    let text: String = lines
        .map(|(title, text)| format!("{title}: {text}\n"))
        .collect();
    let path = output.text(&format!("file_result_{}.txt", table::time()), &text)?;
    log::info(&format!(
        "The file compare result have been written to {}.",
        log::quoted(&path)
    ));
    Ok(())
}

/// Prints titles and results in two rows.
fn show(algorithms: &Algorithms, results: &MetricTexts) {
    let (mut titles, mut texts) = (String::new(), String::new());
    for (title, text) in algorithms.titles().zip(&results.texts) {
        let width = titles.len().max(texts.len());
        titles = format!("{titles:width$}{title} ");
        texts = format!("{texts:width$}{text} ");
    }
    log::info(&titles);
    log::info(&texts);
    if !results.reasons.is_empty() {
        log::info(&format!("{:?}", results.reasons));
    }
}

/// The elements of a file and their shape.
struct FileArray {
    /// Or why there are none to compare.
    values: Result<SideValues, CompareStop>,
    dims: Vec<usize>,
}

fn read(path: &Path) -> Result<FileArray, CompareStop> {
    if path.to_string_lossy().ends_with(TEXT_SUFFIX) {
        let n_bytes = regular_file::check(path).map_or(0, |metadata| metadata.len());
        let bytes = regular_file::read(path, n_bytes)
            .map_err(|error| CompareStop::not_numpy(path, &error.to_string()))?;
        if bytes.is_empty() {
            return Err(CompareStop::not_numpy(path, "It is empty."));
        }
        let text = String::from_utf8(bytes)
            .map_err(|error| CompareStop::not_numpy(path, &error.to_string()))?;
        let (values, dims) =
            parse_text(&text).ok_or_else(|| CompareStop::not_numpy(path, "It is no table."))?;
        let values = SideValues::Floats(values.into_iter().map(|value| value as f32).collect());
        return Ok(FileArray {
            values: Ok(values),
            dims,
        });
    }
    let array = match numpy::load(path) {
        Ok(loaded) => loaded.tensor,
        // The shapes are compared first.
        Err(LoadFailure::OtherType(reason, Some(dims))) => {
            return Ok(FileArray {
                values: Err(CompareStop::Fatal(reason)),
                dims,
            });
        }
        Err(LoadFailure::Refused(reason) | LoadFailure::OtherType(reason, None)) => {
            return Err(CompareStop::not_numpy(path, &reason));
        }
        Err(LoadFailure::Exception(reason)) => return Err(CompareStop::Fatal(reason)),
    };
    let dims = array.shape().dims().to_vec();
    if npy::descr(array.dtype()).is_none() {
        let message = format!(
            "Elements of type {} are no numbers of numpy.",
            array.dtype()
        );
        return Err(CompareStop::not_numpy(path, &message));
    }
    let bytes = array.host_bytes();
    let bytes = bytes.map_err(|error| CompareStop::Fatal(error.to_string()))?;
    let flat = ElementArray::flat(array.dtype(), bytes.into());
    Ok(FileArray {
        values: Ok(SideValues::decode(&flat)),
        dims,
    })
}

/// Rows of numbers; `None` if a word is not a number or rows differ in length. Axes of size 1 are
/// dropped.
fn parse_text(text: &str) -> Option<(Vec<f64>, Vec<usize>)> {
    let mut values = Vec::new();
    let (mut n_rows, mut n_columns) = (0, 0);
    for line in text.lines() {
        let line = line.split('#').next().unwrap_or_default();
        let row = line.split_whitespace().map(|word| word.parse::<f64>().ok());
        let row: Vec<f64> = row.collect::<Option<_>>()?;
        if row.is_empty() {
            continue;
        }
        if n_rows > 0 && row.len() != n_columns {
            return None;
        }
        n_rows += 1;
        n_columns = row.len();
        values.extend(row);
    }
    let dims = match (n_rows, n_columns) {
        (0, _) => vec![0],
        (1, 1) => Vec::new(),
        (1, n) | (n, 1) => vec![n],
        (rows, columns) => vec![rows, columns],
    };
    Some((values, dims))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_read_as_numpy_does() {
        for (text, expected) in [
            ("1 2 3\n", Some(vec![3])),
            ("1\n2\n", Some(vec![2])),
            ("1 2 # x\n\n3 nan\n", Some(vec![2, 2])),
            ("7", Some(vec![])),
            ("# nothing\n", Some(vec![0])),
            ("1 2\n3\n", None),
            ("1 x\n", None),
        ] {
            assert_eq!(parse_text(text).map(|(_, dims)| dims), expected, "{text}");
        }
    }
}
