//! Matching hints from the user.

use std::path::Path;

use opscope_analysis::compare::document::read_document;
use opscope_analysis::compare::matching::{FusionRules, Mapping, MappingForm, MatchingOptions};

use super::reports;
use crate::exit::{CommandFailure, CommandResult, USAGE};

/// Matching options: a mapping, the fusion rules of both sides, and whether to guess.
pub(super) fn options(
    mapping: Option<&Path>,
    fusion: [Option<&Path>; 2],
    no_guesses: bool,
    step_offset: Option<i64>,
) -> CommandResult<MatchingOptions> {
    let mapping = match mapping {
        Some(path) => {
            let read = read_document::<Mapping>(path);
            Some(read.map_err(|error| CommandFailure::new(USAGE, error))?)
        }
        None => None,
    };
    let [target_fusion, golden_fusion] = fusion.map(|path| {
        let path = path?;
        // Errors of the content do not name the file.
        Some(FusionRules::open(path).map_err(|error| {
            let error = anyhow::Error::new(error).context(format!("`{}`", path.display()));
            CommandFailure::new(USAGE, error)
        }))
    });
    Ok(MatchingOptions {
        mapping,
        target_fusion: target_fusion.transpose()?,
        golden_fusion: golden_fusion.transpose()?,
        no_guesses,
        step_offset,
        ..MatchingOptions::default()
    })
}

/// Writes a mapping in the format of the file's suffix: JSON for `.json`, otherwise YAML.
pub(super) fn export(mapping: &Mapping, path: &Path, is_replacing: bool) -> CommandResult {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let text = mapping.to_text(MappingForm::detect(&name, ""));
    let text = text.map_err(|error| CommandFailure::new(USAGE, error))?;
    reports::save_text(&text, path, is_replacing)
}
