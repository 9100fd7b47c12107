//! The commands and their options.

mod compare;

use crate::arguments::{self, OptionSpec, ParseStop, ValueKind, exclusive, option, required};
use crate::log;
pub(super) use compare::{AlgorithmChoice, CompareOptions, FileCompareOptions};

const USAGE_STATUS: i32 = 2;
const NO_ARGUMENTS_STATUS: i32 = 6;

/// The command to run, with its options.
#[derive(Debug)]
pub(super) enum ToolCommand {
    Convert(ConvertOptions),
    Overflow(OverflowOptions),
    Compare(Box<CompareOptions>),
    FileCompare(FileCompareOptions),
}

/// Options of `convert`, as given.
#[derive(Debug, Default)]
pub(super) struct ConvertOptions {
    pub(super) dump_path: String,
    pub(super) format: Option<String>,
    pub(super) shape: Option<String>,
    pub(super) output_index: Option<String>,
    pub(super) input_index: Option<String>,
    pub(super) custom_dir: Option<String>,
    pub(super) out_dir: String,
    pub(super) kind: ToolOutput,
    pub(super) is_version_1: bool,
}

/// Kind of output file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum ToolOutput {
    #[default]
    Npy,
    Bin,
    MsNpy,
    Pt,
}

/// Options of `overflow`.
#[derive(Debug)]
pub(super) struct OverflowOptions {
    pub(super) dump_path: String,
    pub(super) out_dir: String,
    pub(super) n_top: usize,
}

/// Why no command runs.
#[derive(Debug)]
pub(super) enum OptionStop {
    /// Print this on stdout and end with the status.
    Help(String, i32),
    /// Print this on stderr and end with the status for usage errors.
    Usage(String),
}

impl OptionStop {
    /// Prints the message and returns the exit status.
    pub(super) fn finish(self) -> i32 {
        match self {
            OptionStop::Help(text, status) => {
                log::help(&text);
                status
            }
            OptionStop::Usage(text) => {
                log::usage(&text);
                USAGE_STATUS
            }
        }
    }
}

const CONVERT: &[OptionSpec] = &[
    required(&["-d", "--dump_file"]),
    option(&["-f", "--format"], ValueKind::Text),
    option(&["-s", "--shape"], ValueKind::Text),
    exclusive(&["-o", "--output_tensor"]),
    exclusive(&["-i", "--input_tensor"]),
    option(&["-c", "--custom_script_path"], ValueKind::SafeText),
    // Every other command refuses odd characters in `-out` as a usage error (2); `convert` leaves
    // them to the path check (6).
    option(&["-out", "--output"], ValueKind::Text),
    option(&["-v", "--version"], ValueKind::Integer(&[1, 2])),
    option(
        &["-t", "--type"],
        ValueKind::Word(&["npy", "bin", "msnpy", "pt"]),
    ),
];

const OVERFLOW: &[OptionSpec] = &[
    required(&["-d", "--dump_path"]),
    required(&["-out", "--output"]),
    option(&["-n", "--top_n"], ValueKind::Integer(&[1, 2, 3, 4, 5])),
];

const MAIN_HELP: &str = "\
usage: msaccucmp [-h] {compare,convert,overflow,file_compare} ...

commands:
  compare        compare two directories of dumps, or two array files
  convert        turn dump files into npy, bin or pt files
  overflow       list the first operators that overflowed, with their tensors
  file_compare   compare two npy files

options:
  -h, --help     show this help and exit
";

const CONVERT_USAGE: &str = "\
usage: msaccucmp convert [-h] -d DUMP_PATH [-f FORMAT] [-s SHAPE]
                         [-o OUTPUT | -i INPUT] [-c CUSTOM_SCRIPT_PATH]
                         [-out OUTPUT_PATH] [-v {1,2}] [-t {npy,bin,msnpy,pt}]
";

const CONVERT_HELP: &str = "
options:
  -h, --help                 show this help and exit
  -d, --dump_file            a dump file, several with commas between them, or a directory
  -f, --format               convert to this layout, such as NCHW
  -s, --shape                cut to this shape, such as 1,3,224,224; needs -f
  -o, --output_tensor        convert this output only; needs -f
  -i, --input_tensor         convert this input only; needs -f
  -c, --custom_script_path   directory with converters of your own in Python; needs -f
  -out, --output             where to write; by default the current directory
  -v, --version              without effect
  -t, --type                 kind of output file; by default npy
";

const OVERFLOW_USAGE: &str = "\
usage: msaccucmp overflow [-h] -d DUMP_PATH -out OUTPUT_PATH [-n {1,2,3,4,5}]
";

const OVERFLOW_HELP: &str = "
options:
  -h, --help        show this help and exit
  -d, --dump_path   the directory that holds the dump
  -out, --output    where to write
  -n, --top_n       how many operators to list; by default 1
";

/// Parses the words after `msaccucmp`.
pub(super) fn parse(args: &[String]) -> Result<ToolCommand, OptionStop> {
    let Some((command, rest)) = args.split_first() else {
        return Err(OptionStop::Help(MAIN_HELP.to_owned(), NO_ARGUMENTS_STATUS));
    };
    match command.as_str() {
        "convert" => {
            let values = read(CONVERT, rest, "convert", CONVERT_USAGE, CONVERT_HELP)?;
            Ok(ToolCommand::Convert(convert_options(values)))
        }
        "overflow" => {
            let values = read(OVERFLOW, rest, "overflow", OVERFLOW_USAGE, OVERFLOW_HELP)?;
            Ok(ToolCommand::Overflow(overflow_options(values)))
        }
        "compare" => {
            let specs = compare::specs(rest);
            let values = read(&specs, rest, "compare", compare::USAGE, compare::HELP)?;
            Ok(ToolCommand::Compare(Box::new(compare::options(
                values, rest,
            ))))
        }
        "file_compare" => {
            let (usage, help) = (compare::FILE_USAGE, compare::FILE_HELP);
            let values = read(compare::FILE_SPECS, rest, "file_compare", usage, help)?;
            Ok(ToolCommand::FileCompare(compare::file_options(values)))
        }
        // Python's `argparse` accepts every unambiguous prefix of a long option.
        "-h" | "--h" | "--he" | "--hel" | "--help" => {
            Err(OptionStop::Help(MAIN_HELP.to_owned(), 0))
        }
        other => {
            let usage = MAIN_HELP.lines().next().unwrap_or_default();
            let choices = "'compare', 'convert', 'overflow', 'file_compare'";
            let reason = format!("invalid choice: '{other}' (choose from {choices})");
            Err(OptionStop::Usage(format!(
                "{usage}\nmsaccucmp: error: {reason}\n"
            )))
        }
    }
}

fn read(
    specs: &[OptionSpec],
    args: &[String],
    command: &str,
    usage: &str,
    help: &str,
) -> Result<impl Iterator<Item = Option<String>>, OptionStop> {
    match arguments::parse(specs, args) {
        Ok(values) => Ok(values.into_iter()),
        Err(ParseStop::Help) => Err(OptionStop::Help(format!("{usage}{help}"), 0)),
        Err(ParseStop::Error(reason)) => Err(OptionStop::Usage(format!(
            "{usage}msaccucmp {command}: error: {reason}\n"
        ))),
    }
}

/// Assigns the values in the order of [`CONVERT`].
fn convert_options(mut values: impl Iterator<Item = Option<String>>) -> ConvertOptions {
    let mut next = || values.next().flatten();
    ConvertOptions {
        dump_path: next().unwrap_or_default(),
        format: next(),
        shape: next(),
        output_index: next(),
        input_index: next(),
        custom_dir: next(),
        out_dir: next().unwrap_or_default(),
        // Python's `int` accepts blanks around a number, so they may still be present.
        is_version_1: next().is_some_and(|version| version.trim() == "1"),
        kind: match next().as_deref() {
            Some("bin") => ToolOutput::Bin,
            Some("msnpy") => ToolOutput::MsNpy,
            Some("pt") => ToolOutput::Pt,
            _ => ToolOutput::Npy,
        },
    }
}

/// Assigns the values in the order of [`OVERFLOW`].
fn overflow_options(mut values: impl Iterator<Item = Option<String>>) -> OverflowOptions {
    let mut next = || values.next().flatten();
    OverflowOptions {
        dump_path: next().unwrap_or_default(),
        out_dir: next().unwrap_or_default(),
        n_top: next().and_then(|n| n.trim().parse().ok()).unwrap_or(1),
    }
}
