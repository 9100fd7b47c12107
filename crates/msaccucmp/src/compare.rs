//! `compare` and `file_compare`.
//!
//! | module | what it holds |
//! | --- | --- |
//! | [`file_name`], [`dump_dir`] | the files of each operator |
//! | [`dump`], [`ffts`] | their contents |
//! | [`rule`], [`range`] | fusion rules, and the selected operators |
//! | [`align`], [`restore`] | converting tensors to the same layout |
//! | [`values`], [`metrics`], [`algorithms`] | the computation |
//! | [`inputs`], [`fused`], [`group`], [`devices`], [`outcome`] | comparing the operators of a model, and of two devices |
//! | [`row`], [`table`], [`mapping`], [`advisor`] | the output |
//! | [`network`], [`batch`], [`files`], [`detail`] | modes of the commands |

mod advisor;
mod algorithms;
mod align;
mod batch;
mod detail;
mod devices;
mod dump;
mod dump_dir;
mod ffts;
mod file_name;
mod files;
mod fused;
mod group;
mod inputs;
mod mapping;
mod metrics;
mod network;
mod outcome;
mod overflow;
mod range;
mod restore;
mod row;
mod rule;
mod stop;
mod table;
mod values;

use algorithms::Algorithms;
use inputs::NetworkJob;
use stop::CompareStop;

use crate::failure::{ErrorCode, ToolFailure};
use crate::log;
use crate::options::{CompareOptions, FileCompareOptions};
use crate::output::OutputFolder;
use crate::paths::{self, PathKind};

const H5_SUFFIX: &str = ".h5";
const NPY_SUFFIX: &str = ".npy";

/// Runs `compare`.
pub(super) fn run(options: &CompareOptions) -> Result<(), ToolFailure> {
    check_ranges(options)?;
    if options.is_version_1 {
        log::warning("The option -v has no effect.");
    }
    let status = if options.is_mapping {
        check_mapping(options)?;
        network::run(&job(options, options.is_advised, options.finds_overflow))
    } else {
        check_detail(options)?;
        paths::check_given(&options.my_path, PathKind::Any)?;
        paths::check_given(&options.golden_path, PathKind::Any)?;
        start(options)
    };
    match status {
        Ok(None) => Ok(()),
        Ok(Some(code)) => Err(ToolFailure::Logged(code)),
        Err(stop) => Err(stop.into()),
    }
}

/// Runs `file_compare`.
pub(super) fn run_files(options: &FileCompareOptions) -> Result<(), ToolFailure> {
    for path in [&options.my_path, &options.golden_path] {
        if !path.ends_with(NPY_SUFFIX) {
            let message =
                format!("[file_compare] The file '{path}' is invalid.Only support .npy file.");
            return Err(ToolFailure::new(ErrorCode::FileType, message));
        }
        paths::check_given(path, PathKind::File)?;
    }
    let out_dir = paths::resolve(&options.out_dir);
    let created = paths::create_output(&out_dir)
        .and_then(|()| paths::check_given(&options.out_dir, PathKind::Directory));
    created.map_err(|failure| {
        failure.log();
        let message = format!(
            "[file_compare] The -out parameter: \"'{}'\" is invalid!",
            options.out_dir
        );
        ToolFailure::new(ErrorCode::InvalidPath, message)
    })?;
    let algorithms = Algorithms::of_files();
    let output = OutputFolder::new(out_dir);
    files::run(
        &options.my_path,
        &options.golden_path,
        &algorithms,
        Some(&output),
    )?;
    Ok(())
}

/// Whether a text contains rules.
pub(super) fn is_fusion_rule(text: &str) -> bool {
    rule::ModelRules::parse(text).is_ok()
}

fn job(options: &CompareOptions, is_advised: bool, finds_overflow: bool) -> NetworkJob<'_> {
    NetworkJob {
        options,
        my_path: &options.my_path,
        fusion_rule: &options.fusion_rule,
        name_start: String::new(),
        is_advised,
        finds_overflow,
    }
}

/// Compares files, a directory of rules, or two directories of dumps.
fn start(options: &CompareOptions) -> Result<Option<ErrorCode>, CompareStop> {
    let (mine, golden) = (
        paths::resolve(&options.my_path),
        paths::resolve(&options.golden_path),
    );
    let are_files = mine.is_file() && golden.is_file();
    let are_h5 = [&options.my_path, &options.golden_path]
        .iter()
        .all(|path| path.ends_with(H5_SUFFIX));
    // Old PyTorch adapters wrote such files, and reading them would need another library.
    if are_files && are_h5 {
        let message = "Comparing h5 files is not supported.";
        return Err(CompareStop::coded(ErrorCode::NoDumpFile, message));
    }
    if options.has_post_process {
        let message = "param -p only used in pytorch session.";
        return Err(CompareStop::coded(ErrorCode::InvalidParameter, message));
    }
    if are_files {
        let algorithms = Algorithms::choose(
            &options.algorithms,
            &options.custom_dir,
            &options.algorithm_options,
        )?;
        return files::run(&options.my_path, &options.golden_path, &algorithms, None)
            .map(|()| None);
    }
    if !options.fusion_rule.is_empty() && !paths::resolve(&options.fusion_rule).is_file() {
        paths::check_given(&options.fusion_rule, PathKind::Directory)?;
        return batch::run(options);
    }
    let takes_advice =
        options.range.is_none() && options.select.is_none() && options.op_name.is_none();
    if options.is_advised && !takes_advice {
        log::warning("The option -advisor has no effect with -r, -s and -op.");
    }
    // Advice is about the whole model, so a part of it gets none.
    let is_advised = options.is_advised && takes_advice;
    network::run(&job(
        options,
        is_advised,
        options.finds_overflow || is_advised,
    ))
}

fn invalid(message: &str) -> ToolFailure {
    ToolFailure::new(ErrorCode::InvalidParameter, message)
}

fn check_ranges(options: &CompareOptions) -> Result<(), ToolFailure> {
    let has_op = options
        .op_name
        .as_deref()
        .is_some_and(|name| !name.is_empty());
    let has_range = options
        .range
        .as_deref()
        .is_some_and(|range| !range.is_empty());
    for (name, value) in [("-r", &options.range), ("-s", &options.select)] {
        if value.is_some() && options.fusion_rule.is_empty() {
            let message =
                format!("The argument \"{name}\" takes effect only when the \"-f\" exists.");
            return Err(invalid(&message));
        }
        if value.is_some() && has_op {
            let message =
                format!("The argument \"{name}\" exists, the \"-op\" parameter is invalid.");
            return Err(invalid(&message));
        }
    }
    if has_range && options.select.is_some() {
        return Err(invalid(
            "The argument \"-r\" and \"-s\" can not be used at the same time",
        ));
    }
    if options.n_elements_max < 0 {
        return Err(invalid("Please enter a number of at least 0 for -max."));
    }
    Ok(())
}

/// Options that exclude `-map`, and those that it requires.
fn check_mapping(options: &CompareOptions) -> Result<(), ToolFailure> {
    if is_given(&options.op_name) {
        return Err(invalid("When -map exists, the -op parameter is invalid."));
    }
    if is_given(&options.output_index) || is_given(&options.input_index) {
        return Err(invalid(
            "When -map exists, the -i or -o parameter is invalid.",
        ));
    }
    if options.fusion_rule.is_empty() && options.quant_rule.is_empty() {
        return Err(invalid(
            "When -map exists, the -f or -q parameter is needed.",
        ));
    }
    Ok(())
}

/// Whether an option has a value that is not empty.
fn is_given(text: &Option<String>) -> bool {
    text.as_deref().is_some_and(|text| !text.is_empty())
}

/// Options that have no effect without `-op`.
fn check_detail(options: &CompareOptions) -> Result<(), ToolFailure> {
    if options.op_name.is_some() {
        return Ok(());
    }
    let indices = [
        ("-o", options.output_index.is_some()),
        ("-i", options.input_index.is_some()),
    ];
    let given = indices.into_iter().filter(|(_, is_given)| *is_given);
    let mut names = given
        .map(|(name, _)| name)
        .chain(options.detail_words.iter().copied());
    match names.next() {
        None => Ok(()),
        Some(name) => {
            let message =
                format!("The argument \"{name}\" takes effect only when the \"-op\" exists.");
            Err(invalid(&message))
        }
    }
}
