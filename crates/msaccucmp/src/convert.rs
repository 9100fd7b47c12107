//! `convert`: dump files to array files.

mod batch;
mod file_converter;
mod op_debug;
mod plain;
mod relayout;

use std::fs;
use std::path::{Path, PathBuf};

use file_converter::FileConverter;
use opscope_store::atomic_file::TEMPORARY_PREFIX;
use opscope_store::decimal::is_digits;
use opscope_store::file_format::mapping_csv;
use opscope_store::record::SlotSide;
use opscope_store::tree::run::RUN_DIR;
use relayout::{ChosenTensor, LayoutChange};

use crate::custom::UserConverters;
use crate::failure::{ErrorCode, ToolFailure};
use crate::options::{ConvertOptions, ToolOutput};
use crate::output::OutputFolder;
use crate::paths::{self, PathKind};
use crate::source::DumpSource;
use crate::{formats, log};

/// The files to convert.
enum ConversionInput {
    One(PathBuf),
    /// Several files, and the number of directory entries or list items.
    Many(Vec<PathBuf>, usize),
}

/// Runs the command.
pub(super) fn run(options: &ConvertOptions) -> Result<(), ToolFailure> {
    if options.is_version_1 {
        log::warning("The option -v has no effect.");
    }
    // The order of these checks determines the status if several things are wrong; scripts depend
    // on it.
    check_dependence(options)?;
    let given = std::path::absolute(&options.dump_path).unwrap_or_default();
    if is_empty_dir(&given) {
        let message = "The dump path is empty.";
        return Err(ToolFailure::new(ErrorCode::InvalidParameter, message));
    }
    // An empty name counts as missing.
    let format = options.format.as_deref().filter(|name| !name.is_empty());
    let relayout = format.map(|name| relayout(options, name)).transpose()?;
    let input = find_input(&options.dump_path)?;
    let out_dir = paths::resolve(&options.out_dir);
    let created = paths::create_output(&out_dir);
    match (created, format) {
        (Ok(()), None) => {}
        (Ok(()), Some(name)) => log::info(&format!("The target format is \"{name}\".")),
        (Err(failure), None) => return Err(failure),
        // The reference reports this and continues; with several files it then hangs if the
        // directory does not exist.
        (Err(failure), Some(_)) => {
            let is_batch = matches!(&input, ConversionInput::Many(files, _) if !files.is_empty());
            if is_batch && !out_dir.is_dir() {
                return Err(failure);
            }
            failure.log();
            log::error("Check arguments Failed. Please recheck the arguments");
        }
    }
    let converter = FileConverter {
        output: OutputFolder::new(out_dir),
        kind: options.kind,
        relayout,
    };
    match input {
        ConversionInput::One(path) => converter.convert(&path).map_err(|failed| failed.failure),
        ConversionInput::Many(paths, n_entries) => batch::run(&converter, &paths, n_entries),
    }
}

/// Reads `-f` and the related options in the reference's order: the index and shape of a single
/// file, the format, the user's scripts.
fn relayout(options: &ConvertOptions, name: &str) -> Result<LayoutChange, ToolFailure> {
    // The reference ignores `-o`, `-i` and `-s` for lists and directories, including values that it
    // would refuse for a single file.
    let is_one = !options.dump_path.contains(',') && paths::resolve(&options.dump_path).is_file();
    let (pick, wanted) = if is_one {
        (parse_pick(options)?, parse_shape(options)?)
    } else {
        (None, None)
    };
    let target = formats::from_name(name).ok_or_else(|| {
        let message = format!("The format \"{name}\" is not supported. Please check the format.");
        ToolFailure::new(ErrorCode::InvalidParameter, message)
    })?;
    let scripts = options.custom_dir.as_deref().filter(|dir| !dir.is_empty());
    Ok(LayoutChange {
        target,
        wanted,
        pick,
        custom: scripts.map(UserConverters::open).transpose()?,
    })
}

/// Whether a path is a directory without any entry.
fn is_empty_dir(path: &Path) -> bool {
    fs::read_dir(path).is_ok_and(|mut entries| entries.next().is_none())
}

/// Converts one dump without a change of layout, for `overflow`. `real_name` replaces a name that
/// the file system refused.
pub(super) fn convert_for_overflow(
    path: &Path,
    real_name: Option<&str>,
    out_dir: &Path,
) -> Result<DumpSource, ToolFailure> {
    let converter = FileConverter {
        output: OutputFolder::new(out_dir.to_owned()),
        kind: ToolOutput::Npy,
        relayout: None,
    };
    let mut source = file_converter::open(path)?;
    if let Some(name) = real_name {
        // A table may contain any path; the output stays in its directory.
        source.file_name = name.replace('/', "_");
    }
    converter
        .convert_source(&source)
        .map_err(|failed| failed.failure)?;
    Ok(source)
}

/// Options that have no effect without `-f`.
fn check_dependence(options: &ConvertOptions) -> Result<(), ToolFailure> {
    if options.format.is_some() {
        return Ok(());
    }
    let dependent = [
        (&options.output_index, "\"-o\" or \"--output_tensor\""),
        (&options.input_index, "\"-i\" or \"--input_tensor\""),
        (&options.shape, "\"-s\" or \"--shape\""),
        (&options.custom_dir, "\"-c\" or \"--custom_script_path\""),
    ];
    match dependent.iter().find(|(value, _)| value.is_some()) {
        None => Ok(()),
        Some((_, names)) => {
            let message =
                format!("The argument '{names}' takes effect only when the \"'-f'\" exists.");
            Err(ToolFailure::new(ErrorCode::InvalidParameter, message))
        }
    }
}

/// Finds the files of `-d` to convert. A directory without files is not an error.
fn find_input(text: &str) -> Result<ConversionInput, ToolFailure> {
    let mut found = Vec::new();
    // A path cannot contain a comma: the reference splits first.
    if text.contains(',') {
        // The valid items of a list are converted.
        for item in text.split(',') {
            let path = paths::resolve(item.trim());
            match paths::check_input(&path, PathKind::Any) {
                Ok(()) => found.push(path),
                Err(failure) => failure.log(),
            }
        }
        if found.is_empty() {
            let message = format!("There is no valid file in \"'{text}'\". Please check the path.");
            return Err(ToolFailure::new(ErrorCode::InvalidPath, message));
        }
    } else {
        let path = paths::resolve(text);
        paths::check_input(&path, PathKind::Any)?;
        found.push(path);
    }
    match &found[..] {
        // A list with one valid file also ends here: its failure is the command's, and no list of
        // failed files is written.
        [path] if path.is_file() => Ok(ConversionInput::One(found.remove(0))),
        [dir] => list(dir),
        several => {
            let n_entries = several.len();
            found.retain(|path| path.is_file());
            Ok(ConversionInput::Many(found, n_entries))
        }
    }
}

/// The files in a directory.
fn list(dir: &Path) -> Result<ConversionInput, ToolFailure> {
    log::warning(
        "The dump path is a directory. If the -o, -i and -s arguments exist, these arguments will \
         be ignored.",
    );
    let unreadable = |error: std::io::Error| {
        let message = format!("The path {} cannot be read: {error}.", log::quoted(dir));
        ToolFailure::new(ErrorCode::InvalidPath, message)
    };
    let mut files = Vec::new();
    let mut n_entries = 0;
    for entry in fs::read_dir(dir).map_err(unreadable)? {
        let entry = entry.map_err(unreadable)?;
        // Skips our metadata files and temporary files.
        let name = entry.file_name();
        let name = name.to_string_lossy();
        if name == RUN_DIR || name.starts_with(TEMPORARY_PREFIX) {
            continue;
        }
        // Directories count too: the reference's percentage is of all entries and may end below
        // 100.
        n_entries += 1;
        // The reference skips no other names, since a dump converts under any name, even a number
        // or one with a suffix.
        if entry.path().is_file() && entry.file_name() != mapping_csv::FILE_NAME {
            // A link in the directory is followed to its file.
            files.push(fs::canonicalize(entry.path()).unwrap_or_else(|_| entry.path()));
        }
    }
    Ok(ConversionInput::Many(files, n_entries))
}

/// `-s`: at least two numbers above zero.
fn parse_shape(options: &ConvertOptions) -> Result<Option<Vec<usize>>, ToolFailure> {
    let Some(text) = options.shape.as_deref().filter(|text| !text.is_empty()) else {
        return Ok(None);
    };
    // Python's `$` also matches before a final line feed.
    let text = text.strip_suffix('\n').unwrap_or(text);
    let parts: Vec<&str> = text.split(',').collect();
    // The reference's pattern requires a comma, so a shape cannot have one axis.
    if parts.len() < 2 || !parts.iter().all(|part| is_digits(part)) {
        let message =
            format!("The shape('{text}') is invalid. The supported formats are \"1,3,224,224\".");
        return Err(ToolFailure::new(ErrorCode::Shape, message));
    }
    // An overflowing number is larger than any dimension.
    let dims: Vec<usize> = parts
        .iter()
        .map(|part| part.parse().unwrap_or(usize::MAX))
        .collect();
    if dims.contains(&0) {
        let message =
            format!("The shape('{text}') is invalid. Each dimension must be greater than 0.");
        return Err(ToolFailure::new(ErrorCode::Shape, message));
    }
    Ok(Some(dims))
}

/// `-o` or `-i`.
fn parse_pick(options: &ConvertOptions) -> Result<Option<ChosenTensor>, ToolFailure> {
    let (side, text) = match (
        non_empty(&options.output_index),
        non_empty(&options.input_index),
    ) {
        (Some(text), _) => (SlotSide::Output, text),
        (_, Some(text)) => (SlotSide::Input, text),
        (None, None) => return Ok(None),
    };
    let text = text.strip_suffix('\n').unwrap_or(&text);
    if text.is_empty() || !text.bytes().all(|b| b.is_ascii_digit()) {
        let message =
            format!("The tensor non_empty '{text}' is invalid. It only supports 'natural number'.");
        return Err(ToolFailure::new(ErrorCode::InvalidParameter, message));
    }
    // An overflowing number is beyond the last tensor of any file and fails like every such non_empty.
    let index = text.parse().unwrap_or(usize::MAX);
    Ok(Some(ChosenTensor { side, index }))
}

/// The value of an option, unless it is empty.
fn non_empty(text: &Option<String>) -> Option<String> {
    text.clone().filter(|text| !text.is_empty())
}
