//! Options of `opscope sensitivity` about its results.

use std::io::Write;
use std::path::{Path, PathBuf};

use clap::builder::{PossibleValuesParser, TypedValueParser};
use opscope_analysis::compare::report::{self, ReportError};
use opscope_tensor::RoundingFormat;

use super::keep_list::{KeepList, ListForm};
use super::{SensitivityResult, document, report as terminal};
use crate::console;
use crate::exit::{CommandFailure, CommandResult, USAGE};

/// File name that means standard output.
const STDOUT: &str = "-";
/// Placeholder for the dtype in the name of a list.
const DTYPE: &str = "{dtype}";

/// The largest acceptable relative L2 distance.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct DistanceLimit(pub(super) f64);

/// `0.01` or `rel_l2=0.01`.
pub(super) fn limit(text: &str) -> Result<DistanceLimit, String> {
    let number = match text.split_once('=') {
        None => text,
        Some(("rel_l2", number)) => number,
        Some((metric, _)) => return Err(format!("the metric is rel_l2, not `{metric}`")),
    };
    let limit: Option<f64> = number.parse().ok();
    let limit = limit.filter(|limit| *limit >= 0.0 && limit.is_finite());
    limit
        .map(DistanceLimit)
        .ok_or_else(|| "expected a non-negative number, such as 0.01".to_owned())
}

/// The name of a dtype.
pub(super) fn rounding_format() -> impl TypedValueParser<Value = RoundingFormat> {
    let names = RoundingFormat::ALL.map(RoundingFormat::name);
    PossibleValuesParser::new(names).try_map(|text| text.parse::<RoundingFormat>())
}

/// The list of operators to keep.
#[derive(clap::Args)]
#[command(next_help_heading = "Operators to keep")]
pub(super) struct ListArguments {
    /// Write the names of the operators to keep, for a converter; with several dtypes the name must
    /// contain
    /// `{dtype}`
    #[arg(long, value_name = "FILE", requires = "limit")]
    keep_list: Option<PathBuf>,
    /// Format of that list; without `--keep-list` it is printed after the tables
    #[arg(long, value_enum, value_name = "FORM", requires = "limit")]
    list_as: Option<ListForm>,
}

impl ListArguments {
    /// Checks before the work that each dtype gets its own list file.
    pub(super) fn check(&self, formats: &[RoundingFormat]) -> CommandResult {
        let Some(path) = &self.keep_list else {
            return Ok(());
        };
        if formats.len() > 1 && !path.to_string_lossy().contains(DTYPE) {
            let message = format!(
                "`{}` cannot hold the lists of {} dtypes; expected a name with `{DTYPE}` in it",
                path.display(),
                formats.len()
            );
            return Err(CommandFailure::message(USAGE, message));
        }
        Ok(())
    }

    /// The list files of these dtypes.
    pub(super) fn paths(&self, formats: &[RoundingFormat]) -> Vec<PathBuf> {
        let paths = formats.iter().filter_map(|format| self.path(*format));
        paths.collect()
    }

    fn path(&self, format: RoundingFormat) -> Option<PathBuf> {
        let path = self.keep_list.as_ref()?;
        match path.to_str() {
            Some(text) => Some(text.replace(DTYPE, format.name()).into()),
            // A name that is not UTF-8 has no placeholder.
            None => Some(path.clone()),
        }
    }

    /// Writes a list for each dtype, and warns of operators that a list cannot express.
    pub(super) fn write(&self, result: &SensitivityResult, is_replacing: bool) -> CommandResult {
        for one in &result.formats {
            let Some(choice) = &one.choice else {
                continue;
            };
            let form = self.list_as.unwrap_or(ListForm::Lines);
            let list = KeepList::new(form, result, one, choice);
            if self.keep_list.is_some() || self.list_as.is_some() {
                list.warn(one.format);
            }
            match self.path(one.format) {
                Some(path) => save(&list.text, &path, is_replacing)?,
                None if self.list_as.is_some() => console::out().write_all(list.text.as_bytes())?,
                None => {}
            }
        }
        Ok(())
    }
}

/// Result files. They are private to their owner and written atomically.
#[derive(clap::Args)]
#[command(next_help_heading = "Reports")]
pub(super) struct OutputArguments {
    /// Operators in each table; 0 for all
    #[arg(long, value_name = "N", default_value = "20")]
    top: usize,
    /// Write all measurements as one JSON document; `-` is standard output
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Write a CSV row for each operator and dtype
    #[arg(long, value_name = "FILE")]
    csv: Option<PathBuf>,
    /// Replace existing files
    #[arg(long)]
    force: bool,
}

impl OutputArguments {
    /// Whether to replace existing files.
    pub(super) fn is_replacing(&self) -> bool {
        self.force
    }

    /// Whether the JSON document occupies standard output.
    pub(super) fn is_stdout_taken(&self) -> bool {
        self.json.as_deref() == Some(Path::new(STDOUT))
    }

    /// Checks before the work that the results can be written, including these lists.
    pub(super) fn check(&self, lists: &[PathBuf]) -> CommandResult {
        let mut taken: Vec<&Path> = Vec::new();
        let json = self.json.as_deref().filter(|_| !self.is_stdout_taken());
        let reports = json.into_iter().chain(self.csv.as_deref());
        for path in reports.chain(lists.iter().map(PathBuf::as_path)) {
            if path == Path::new(STDOUT) {
                let message = "only `--json` can be written to standard output";
                return Err(CommandFailure::message(USAGE, message));
            }
            if taken.contains(&path) {
                let message = format!("`{}` cannot hold two results", path.display());
                return Err(CommandFailure::message(USAGE, message));
            }
            // `exists` would follow links and miss broken ones.
            if !self.force && path.symlink_metadata().is_ok() {
                return Err(ReportError::Exists(path.to_owned()).into());
            }
            taken.push(path);
        }
        Ok(())
    }

    /// Prints the tables unless standard output is occupied, and writes the files.
    pub(super) fn write(&self, result: &SensitivityResult) -> CommandResult {
        if let Some(path) = &self.json {
            let document = document::json(result);
            if self.is_stdout_taken() {
                console::print_json(&document)?;
            } else {
                save(&format!("{document:#}\n"), path, self.force)?;
            }
        }
        if let Some(path) = &self.csv {
            save(&document::csv(result), path, self.force)?;
        }
        if !self.is_stdout_taken() {
            terminal::print(result, self.top)?;
        }
        Ok(())
    }
}

fn save(text: &str, path: &Path, is_replacing: bool) -> CommandResult {
    Ok(report::save_text(text, path, is_replacing)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_numbers_that_are_not_negative() {
        for (text, expected) in [
            ("0.01", Some(0.01)),
            ("rel_l2=1e-3", Some(1e-3)),
            ("0", Some(0.0)),
            ("-1", None),
            ("nan", None),
            ("inf", None),
            ("cosine=0.9", None),
            ("rel_l2=", None),
            ("", None),
        ] {
            assert_eq!(limit(text).ok(), expected.map(DistanceLimit), "{text}");
        }
    }
}
