//! The two sides of a comparison, and their rules.

use std::path::PathBuf;

use super::dump_dir::{DumpDir, KeyNaming};
use super::file_name::DumpFileKind;
use super::rule::{ModelRules, merge_close, merge_quant};
use super::stop::CompareStop;
use crate::custom::{UserConverters, has_converters};
use crate::failure::ErrorCode;
use crate::options::CompareOptions;
use crate::paths::{self, PathKind};

/// One comparison: the settings that differ in a batch.
pub(super) struct NetworkJob<'a> {
    pub(super) options: &'a CompareOptions,
    pub(super) my_path: &'a str,
    pub(super) fusion_rule: &'a str,
    /// The prefix of the result's name.
    pub(super) name_start: String,
    /// Whether advice was requested and no other option disables it.
    pub(super) is_advised: bool,
    pub(super) finds_overflow: bool,
}

/// Both sides, and how to compare them.
pub(super) struct NetworkInputs {
    pub(super) mine: DumpDir,
    pub(super) golden: DumpDir,
    pub(super) custom: Option<UserConverters>,
    pub(super) n_elements_max: Option<usize>,
}

/// Files with rules; missing ones are `None`.
pub(super) struct RulePaths {
    pub(super) fusion: Option<PathBuf>,
    pub(super) quant: Option<PathBuf>,
    pub(super) close: Option<PathBuf>,
}

fn rule_path(text: &str) -> Option<PathBuf> {
    (!text.is_empty()).then(|| paths::resolve(text))
}

impl RulePaths {
    /// The files in the options.
    pub(super) fn new(fusion: &str, quant: &str, close: &str) -> RulePaths {
        RulePaths {
            fusion: rule_path(fusion),
            quant: rule_path(quant),
            close: rule_path(close),
        }
    }

    /// Checks that the files exist.
    pub(super) fn check(&self) -> Result<(), CompareStop> {
        let given = [&self.fusion, &self.quant, &self.close];
        for path in given.into_iter().flatten() {
            paths::check_input(path, PathKind::File)?;
        }
        Ok(())
    }

    /// The merged rules; `None` if two devices are compared directly.
    pub(super) fn load(&self) -> Result<Option<ModelRules>, CompareStop> {
        let rule = match (&self.fusion, &self.quant, &self.close) {
            // With both, `-cf` is ignored.
            (Some(fusion), Some(quant), _) => {
                merge_quant(ModelRules::open(fusion)?, &ModelRules::open(quant)?)
            }
            (Some(fusion), None, Some(close)) => {
                merge_close(ModelRules::open(fusion)?, &ModelRules::open(close)?)?
            }
            (Some(fusion), None, None) => ModelRules::open(fusion)?,
            (None, Some(quant), _) => ModelRules::open(quant)?,
            (None, None, _) => return Ok(None),
        };
        Ok(Some(rule))
    }
}

impl NetworkInputs {
    /// Reads the directories, and checks that the rules match their kinds.
    pub(super) fn open(
        job: &NetworkJob<'_>,
        rules: &RulePaths,
    ) -> Result<NetworkInputs, CompareStop> {
        let options = job.options;
        let naming = KeyNaming {
            keeps_slices: options.keeps_slices,
            has_rule: rules.fusion.is_some(),
        };
        let mine = DumpDir::open(&paths::resolve(job.my_path), naming)?;
        let golden = DumpDir::open(&paths::resolve(&options.golden_path), naming)?;
        check_kinds(&mine, &golden, rules)?;
        let custom = if has_converters(&options.custom_dir)? {
            Some(UserConverters::open(&options.custom_dir)?)
        } else {
            None
        };
        Ok(NetworkInputs {
            mine,
            golden,
            custom,
            n_elements_max: usize::try_from(options.n_elements_max)
                .ok()
                .filter(|&n| n > 0),
        })
    }
}

impl DumpDir {
    /// Whether the first operator's first file is an array, which cannot have overflowed.
    pub(super) fn begins_with_array(&self) -> bool {
        let first = self
            .operators
            .first()
            .and_then(|operator| operator.files.first());
        first.is_some_and(|path| path.to_string_lossy().ends_with(".npy"))
    }
}

/// Checks the combination of dump kinds and rules.
fn check_kinds(mine: &DumpDir, golden: &DumpDir, rules: &RulePaths) -> Result<(), CompareStop> {
    let refuse = |code, what: &str| {
        let message = format!(
            "When the left side is {} and the right side is {}, {what}",
            describe(mine),
            describe(golden)
        );
        Err(CompareStop::coded(code, message))
    };
    let (has_f, has_q, has_cf) = (
        rules.fusion.is_some(),
        rules.quant.is_some(),
        rules.close.is_some(),
    );
    let cannot = "this scenario cannot be compared.";
    let (parameter, kind) = (ErrorCode::InvalidParameter, ErrorCode::DumpType);
    // The order of the checks determines which mistake is reported, as in the reference.
    match (mine.kind, golden.kind) {
        (DumpFileKind::Offline, DumpFileKind::Offline)
            if mine.is_quantised != golden.is_quantised =>
        {
            refuse(kind, cannot)
        }
        (DumpFileKind::Offline, DumpFileKind::Offline) => match (has_f, has_cf, has_q) {
            (true, false, _) => refuse(parameter, "the -cf parameter is required."),
            (false, true, _) => refuse(parameter, "the -f parameter is required."),
            (_, _, true) => refuse(parameter, "there is no need to enter the -q parameter."),
            _ => Ok(()),
        },
        (DumpFileKind::Offline, DumpFileKind::Standard) => {
            match (has_f, has_cf, mine.is_quantised, has_q) {
                (false, ..) => refuse(parameter, "the -f parameter is required."),
                (_, true, ..) => refuse(parameter, "there is no need to enter the -cf parameter."),
                (_, _, true, false) => refuse(parameter, "the -q parameter is required."),
                (_, _, false, true) => {
                    refuse(parameter, "there is no need to enter the -q parameter.")
                }
                _ => Ok(()),
            }
        }
        (DumpFileKind::Offline, _) if !mine.is_quantised => refuse(kind, cannot),
        (DumpFileKind::Offline, _) if !has_f => refuse(parameter, "the -f parameter is required."),
        (DumpFileKind::Offline, _) if has_q || has_cf => refuse(
            parameter,
            "there is no need to enter the -q or -cf parameter.",
        ),
        (DumpFileKind::Offline, _) => Ok(()),
        (DumpFileKind::Quant, _) if has_cf => {
            refuse(kind, "there is no need to enter the -cf parameter.")
        }
        (DumpFileKind::Quant, DumpFileKind::Standard) if !has_q => {
            refuse(kind, "the -q parameter is required.")
        }
        (DumpFileKind::Quant, DumpFileKind::Standard) if has_f => {
            refuse(kind, "there is no need to enter the -f parameter.")
        }
        (DumpFileKind::Quant, DumpFileKind::Standard) => Ok(()),
        _ => refuse(kind, cannot),
    }
}

fn describe(dir: &DumpDir) -> &'static str {
    match (dir.kind, dir.is_quantised) {
        (DumpFileKind::Offline, true) => "a dump of the quantised model on the device",
        (DumpFileKind::Offline, false) => "a dump of the model on the device",
        (DumpFileKind::Quant, _) => "the quantised original model",
        (DumpFileKind::Standard | DumpFileKind::Numpy, _) => "the original model",
    }
}
