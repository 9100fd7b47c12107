//! `opscope convert`.

mod form;

use std::io::Write;
use std::path::{Path, PathBuf};

use opscope_analysis::convert::{self, ConvertedForm, PickedTensor};
use opscope_analysis::default_jobs;
use opscope_analysis::elements::WantedLayout;
use opscope_store::dump::PassedOver;
use opscope_store::file_format::zstd;
use opscope_store::record::SlotSide;
use opscope_store::remote;
use opscope_tensor::{Layout, Shape};
use serde_json::json;

use super::dump::form::FormChoice;
use super::next_line;
use super::verify::VerifyOption;
use crate::arguments::{ModeArguments, compression, layout, shape};
use crate::console::{self, line, report};
use crate::exit::{CommandFailure, CommandResult, PARTIAL, UNREADABLE, USAGE, chain, check_dump};
use crate::{format, passed_over, progress};

/// Convert dump files to numpy arrays and other files
///
/// Every input and output of a dump file becomes `{file}.{input|output}.{index}.npy`, or a file of
/// another type. A directory is converted recursively and keeps its structure. Dtypes that the new
/// file lacks become the smallest dtype that holds their values exactly (bfloat16 becomes float32,
/// for example). Overflow records become JSON. Failures are reported, and the remaining files are
/// still converted.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  opscope convert -d dump/20240102030405 -out arrays
  opscope convert -d Conv.conv1.0.0.1700000000000000 -f NCHW -out arrays
  opscope convert -d dump/20240102030405 -t safetensors -out tensors --json
  opscope convert -d dump --form acl -out tree")]
pub(crate) struct ConvertArguments {
    /// A dump file, several separated by commas, or a directory; may be repeated
    #[arg(short = 'd', long = "dump", value_name = "PATH", required = true)]
    dump: Vec<PathBuf>,
    /// Output directory; created if missing (`-out` works too)
    #[arg(long, value_name = "DIR", default_value = ".")]
    out: PathBuf,
    /// Kind of file to write
    #[arg(
        short = 't',
        long = "type",
        value_name = "TYPE",
        value_enum,
        default_value = "npy"
    )]
    kind: OutputChoice,
    /// Rewrite the whole dump in this form, in a separate directory below `--out`. One dump only
    #[arg(long, value_enum, value_name = "FORM", conflicts_with_all = ["kind", "layout", "only_output", "only_input", "compress", "keep_existing"])]
    form: Option<FormChoice>,
    /// Convert every tensor to this layout, such as NCHW; the names then include the shape
    #[arg(short = 'f', long, value_name = "LAYOUT", value_parser = layout)]
    layout: Option<Layout>,
    /// Shape in the order of that layout, such as 1,3,224,224; larger tensors are cropped. One file
    /// only
    #[arg(short = 's', long, value_name = "SHAPE", requires = "layout", value_parser = shape)]
    target_shape: Option<Shape>,
    /// Convert this output only. One file only
    #[arg(short = 'o', long, value_name = "N")]
    only_output: Option<usize>,
    /// Convert this input only. One file only
    #[arg(short = 'i', long, value_name = "N", conflicts_with = "only_output")]
    only_input: Option<usize>,
    /// Compress each array at a level from 1 (fastest) to 19, with `-t` npy or msnpy; names get
    /// `.zst` appended
    #[arg(long, value_name = "zstd[:LEVEL]", value_parser = compression)]
    compress: Option<zstd::CompressionLevel>,
    #[command(flatten)]
    verify: VerifyOption,
    /// Number of threads [default: one for each processor]
    #[arg(long, value_name = "N")]
    jobs: Option<usize>,
    /// Leave existing files alone, and report them
    #[arg(long)]
    keep_existing: bool,
    /// Print the result as one JSON object
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    modes: ModeArguments,
}

/// Kind of file to write.
#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum OutputChoice {
    /// A numpy array for each tensor
    Npy,
    /// The raw elements of each tensor
    Bin,
    /// The elements as text, one per line
    Txt,
    /// All tensors of a dump file in one file
    Safetensors,
    /// A numpy array for each tensor, named as MindSpore names them
    Msnpy,
    /// A file for each tensor that `torch.load` reads
    Pt,
}

impl From<OutputChoice> for ConvertedForm {
    fn from(kind: OutputChoice) -> ConvertedForm {
        match kind {
            OutputChoice::Npy => ConvertedForm::Npy,
            OutputChoice::Bin => ConvertedForm::Bin,
            OutputChoice::Txt => ConvertedForm::Txt,
            OutputChoice::Safetensors => ConvertedForm::Safetensors,
            OutputChoice::Msnpy => ConvertedForm::MsNpy,
            OutputChoice::Pt => ConvertedForm::Pt,
        }
    }
}

pub(crate) fn run(arguments: &ConvertArguments) -> CommandResult {
    let paths = paths(&arguments.dump)?;
    let dumps: Vec<&Path> = paths.iter().map(PathBuf::as_path).collect();
    arguments.verify.before(&dumps, || match arguments.form {
        Some(form) => form::run(arguments, form, &paths),
        None => convert(arguments, &paths),
    })
}

fn convert(arguments: &ConvertArguments, paths: &[PathBuf]) -> CommandResult {
    let options = options(arguments, paths)?;
    let mut sources = Vec::new();
    let mut failures: Vec<(String, String)> = Vec::new();
    let mut passed_over = Vec::new();
    for path in paths {
        let found = convert::sources(path);
        // A path without a dump counts too: among several paths a wrong directory would go
        // unnoticed.
        if found.sources.is_empty() && found.errors.is_empty() {
            return Err(CommandFailure::nothing_at(path, &found.passed_over));
        }
        sources.extend(found.sources);
        passed_over.extend(found.passed_over);
        let path = path.display().to_string();
        failures.extend(
            found
                .errors
                .iter()
                .map(|error| (path.clone(), chain(error))),
        );
    }
    // The second file would silently replace the first. Nothing has been written yet.
    if let Some((a, b)) = convert::collision(&sources) {
        let (a, b) = (a.path.display(), b.path.display());
        let message = format!("`{a}` and `{b}` would produce the same file names");
        let failure = CommandFailure::message(USAGE, message);
        return Err(failure.with_hint("convert them in two runs, to different directories"));
    }
    let bar = progress::bytes_bar("converting", sources.iter().map(|s| s.n_bytes).sum());
    let report = convert::run(&sources, &options, |n_bytes| bar.inc(n_bytes))
        .map_err(|error| CommandFailure::new(USAGE, error))?;
    bar.finish_and_clear();
    let of_files = report.failures.iter();
    failures.extend(of_files.map(|f| (f.path.display().to_string(), chain(&f.error))));
    print(arguments, &sources, &report, &failures, &passed_over)?;
    if failures.is_empty() {
        return Ok(());
    }
    let code = if report.n_arrays + report.n_records == 0 {
        UNREADABLE
    } else {
        PARTIAL
    };
    Err(CommandFailure::silent(code))
}

/// The given paths. A path that does not exist may be a comma-separated list.
fn paths(given: &[PathBuf]) -> CommandResult<Vec<PathBuf>> {
    let mut paths = Vec::new();
    for path in given {
        let text = path.to_str().filter(|text| text.contains(','));
        match text {
            // The vendor's tool takes comma-separated lists. Existing files take precedence, as
            // file names may contain commas.
            Some(text) if !remote::exists(path) => paths.extend(text.split(',').map(PathBuf::from)),
            _ => paths.push(path.clone()),
        }
    }
    for path in &paths {
        check_dump(path)?;
    }
    Ok(paths)
}

fn options(
    arguments: &ConvertArguments,
    paths: &[PathBuf],
) -> CommandResult<convert::ConversionOptions> {
    let output = arguments.only_output.map(|index| (SlotSide::Output, index));
    let input = arguments.only_input.map(|index| (SlotSide::Input, index));
    let pick = output
        .or(input)
        .map(|(side, index)| PickedTensor { side, index });
    // Tensor numbers and shapes differ in meaning between operators.
    let is_one_file = matches!(paths, [path] if !remote::is_dir(path));
    if (pick.is_some() || arguments.target_shape.is_some()) && !is_one_file {
        let message = "`--target-shape`, `--only-output` and `--only-input` take a single file";
        return Err(CommandFailure::message(USAGE, message));
    }
    if arguments.compress.is_some()
        && ![OutputChoice::Npy, OutputChoice::Msnpy].contains(&arguments.kind)
    {
        // Readers accept the suffix `.zst` for arrays only.
        let message = "`--compress` is for numpy arrays: `-t npy` or `-t msnpy`";
        return Err(CommandFailure::message(USAGE, message));
    }
    let relayout = arguments.layout.map(|target| WantedLayout {
        target,
        shape: arguments.target_shape.clone(),
    });
    Ok(convert::ConversionOptions {
        out: arguments.out.clone(),
        kind: arguments.kind.into(),
        compression: arguments.compress,
        relayout,
        pick,
        n_threads: arguments.jobs.unwrap_or_else(default_jobs),
        modes: arguments.modes.modes(),
        is_replacing: !arguments.keep_existing,
    })
}

fn print(
    arguments: &ConvertArguments,
    sources: &[convert::ConvertSource],
    report: &convert::ConvertReport,
    failures: &[(String, String)],
    passed_over: &[PassedOver],
) -> CommandResult {
    if arguments.json {
        let failures: Vec<_> = failures
            .iter()
            .map(|(path, error)| json!({ "path": path, "error": error }))
            .collect();
        let result = json!({
            "out": arguments.out,
            "files": sources.len(),
            "converted": report.n_converted,
            "arrays": report.n_arrays,
            "records": report.n_records,
            "buffers": report.n_rest,
            "bytes_read": report.n_bytes_read,
            "bytes_written": report.n_bytes_written,
            "passed_over": passed_over::to_json(passed_over),
            "failures": failures,
        });
        console::print_json(&result)?;
        return Ok(());
    }
    for (path, error) in failures {
        // Errors about a whole file already name it.
        if error.contains(path.as_str()) {
            report!("opscope: {error}");
        } else {
            report!("opscope: `{path}`: {error}");
        }
    }
    let mut made = vec![format::count(report.n_arrays, "array")];
    for (n, noun) in [
        (report.n_records, "overflow record"),
        (report.n_rest, "buffer"),
    ] {
        made.extend((n > 0).then(|| format::count(n, noun)));
    }
    line!(
        console::out(),
        "{} of {} converted to {}, {} in `{}`",
        report.n_converted,
        format::count(sources.len() as u64, "file"),
        made.join(", "),
        format::bytes(report.n_bytes_written),
        arguments.out.display()
    )?;
    passed_over::print(&mut console::out(), passed_over)?;
    // The current directory has other files as well.
    let is_apart = arguments.out != Path::new(".");
    if arguments.kind == OutputChoice::Npy && report.n_arrays > 0 && is_apart {
        line!(console::out(), "{}", next_line("show", &[&arguments.out]))?;
    }
    Ok(())
}
