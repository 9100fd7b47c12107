//! A result as JSON: one document, or typed records line by line.
//!
//! Both are complete, and can be read back for rejudging.

use std::io::{self, BufRead, BufReader, Write};
use std::path::Path;

use opscope_store::regular_file;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use thiserror::Error;

use crate::compare::result::{
    Comparison, ComparisonConfig, ComparisonSummary, Conclusion, Contract, Experiments,
    OperatorResult, PassedOverFile, Skip, VERSION, VerdictLevel,
};

/// Longest line and document that are read, in bytes.
const N_BYTES_MAX: u64 = 4 << 30;

/// A line, with its type.
#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum JsonLine<'a> {
    Config {
        version: u32,
        #[serde(flatten)]
        config: &'a ComparisonConfig,
    },
    Comparison(&'a OperatorResult),
    Skip(&'a Skip),
    PassedOver(&'a PassedOverFile),
    Contract(&'a Contract),
    Experiments(&'a Experiments),
    Summary(&'a ComparisonSummary),
}

/// Why a saved result cannot be read.
#[derive(Debug, Error)]
pub enum ReadError {
    /// The operating system refused.
    #[error("cannot read it")]
    Io(#[from] io::Error),
    /// It is not a result.
    #[error("line {line}: it is no result of a comparison")]
    Invalid {
        /// Where, counted from 1; for one document the line in it.
        line: usize,
        /// The error of the JSON parser.
        source: serde_json::Error,
    },
    /// It is of another version.
    #[error("its schema has version {0}; this program knows version {VERSION}")]
    Version(u64),
    /// It is larger than any result.
    #[error("it has {0} bytes, more than {N_BYTES_MAX}")]
    TooLarge(u64),
    /// Lines are missing.
    #[error("it is cut off: the last line is no summary")]
    CutOff,
}

pub(super) fn write(comparison: &Comparison, out: &mut dyn Write) -> io::Result<()> {
    serde_json::to_writer(&mut *out, comparison)?;
    writeln!(out)
}

pub(super) fn write_lines(comparison: &Comparison, out: &mut dyn Write) -> io::Result<()> {
    let config = JsonLine::Config {
        version: comparison.version,
        config: &comparison.config,
    };
    let operators = comparison.operators.iter().map(JsonLine::Comparison);
    let skips = comparison.skips.iter().map(JsonLine::Skip);
    let passed_over = comparison.passed_over.iter().map(JsonLine::PassedOver);
    let lines = std::iter::once(config).chain(operators).chain(skips);
    let experiments = comparison.experiments.as_deref();
    let experiments = experiments.map(JsonLine::Experiments);
    let lines = lines.chain(passed_over).chain(experiments);
    for line in lines.chain([
        JsonLine::Contract(&comparison.contract),
        JsonLine::Summary(&comparison.summary),
    ]) {
        serde_json::to_writer(&mut *out, &line)?;
        writeln!(out)?;
    }
    Ok(())
}

/// Reads a result, of either form.
///
/// # Errors
/// [`ReadError`].
pub fn read(path: &Path) -> Result<Comparison, ReadError> {
    let (file, metadata) = regular_file::open(path)?;
    if metadata.len() > N_BYTES_MAX {
        return Err(ReadError::TooLarge(metadata.len()));
    }
    parse(BufReader::new(file))
}

fn parse(mut from: impl BufRead) -> Result<Comparison, ReadError> {
    let mut first = String::new();
    from.read_line(&mut first)?;
    // Records start with an identifying line; a document may have any form.
    let record: Option<Value> = serde_json::from_str(&first).ok();
    let is_records = record.is_some_and(|record| record.get("type").is_some());
    let mut comparison = if is_records {
        records(&first, from)?
    } else {
        document(&first, from)?
    };
    // Other programs may have taken lines out, and causes find operators by their places in this
    // list.
    for (index, operator) in comparison.operators.iter_mut().enumerate() {
        operator.index = index;
    }
    if comparison.contract == Contract::default() {
        // Earlier versions knew levels alone.
        comparison.contract.conclusion = match comparison.summary.level {
            VerdictLevel::Pass => Conclusion::Pass,
            VerdictLevel::Warn => Conclusion::Warn,
            VerdictLevel::Fail => Conclusion::Fail,
            VerdictLevel::Skip => Conclusion::Incomplete,
        };
    }
    Ok(comparison)
}

fn document(first: &str, mut from: impl BufRead) -> Result<Comparison, ReadError> {
    let mut text = first.to_owned();
    from.read_to_string(&mut text)?;
    let invalid = |source: serde_json::Error| ReadError::Invalid {
        line: source.line(),
        source,
    };
    // The version comes first: another one may have other fields.
    #[derive(Deserialize)]
    struct VersionedResult {
        version: u64,
    }
    let VersionedResult { version } = serde_json::from_str(&text).map_err(invalid)?;
    check_version(version)?;
    serde_json::from_str(&text).map_err(invalid)
}

fn check_version(version: u64) -> Result<(), ReadError> {
    if version == u64::from(VERSION) {
        Ok(())
    } else {
        Err(ReadError::Version(version))
    }
}

fn records(first: &str, from: impl BufRead) -> Result<Comparison, ReadError> {
    let mut comparison = Comparison {
        version: VERSION,
        ..Comparison::default()
    };
    let mut is_whole = false;
    let lines = std::iter::once(Ok(first.to_owned())).chain(from.lines());
    for (i, line) in lines.enumerate() {
        let line = line?;
        if line.trim().is_empty() {
            continue;
        }
        let invalid = |source| ReadError::Invalid {
            line: i + 1,
            source,
        };
        let mut value: Value = serde_json::from_str(&line).map_err(invalid)?;
        let kind = value
            .as_object_mut()
            .and_then(|object| object.remove("type"));
        let kind = kind.as_ref().and_then(Value::as_str).unwrap_or_default();
        // Each line sets it again, because a summary followed by other records does not end the
        // result.
        is_whole = kind == "summary";
        match kind {
            "config" => {
                let version = value.get("version").and_then(Value::as_u64);
                check_version(version.unwrap_or(0))?;
                comparison.config = serde_json::from_value(value).map_err(invalid)?;
            }
            "comparison" => {
                let operator = serde_json::from_value(value).map_err(invalid)?;
                comparison.operators.push(operator);
            }
            "skip" => {
                let skip = serde_json::from_value(value).map_err(invalid)?;
                comparison.skips.push(skip);
            }
            "passed_over" => {
                let file = serde_json::from_value(value).map_err(invalid)?;
                comparison.passed_over.push(file);
            }
            "contract" => comparison.contract = serde_json::from_value(value).map_err(invalid)?,
            "experiments" => {
                comparison.experiments = Some(serde_json::from_value(value).map_err(invalid)?);
            }
            "summary" => comparison.summary = serde_json::from_value(value).map_err(invalid)?,
            other => {
                let message = format!("there is no record of type `{other}`");
                return Err(invalid(serde::de::Error::custom(message)));
            }
        }
    }
    if is_whole {
        Ok(comparison)
    } else {
        Err(ReadError::CutOff)
    }
}
