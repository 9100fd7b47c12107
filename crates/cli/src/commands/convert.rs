//! `opscope convert`.

use std::io::{Write, stdout};
use std::path::PathBuf;

use opscope_analysis::{convert, default_jobs};
use serde_json::json;

use crate::arguments::ModeArguments;
use crate::exit::{Failure, PARTIAL, UNREADABLE, USAGE};
use crate::{format, progress};

/// Convert dump files to numpy arrays
///
/// Every input and output of a dump file becomes `{file}.{input|output}.{index}.npy`. A directory is
/// converted with everything below it and keeps its structure. Types that numpy lacks go to the
/// smallest type that holds their values exactly (bfloat16 to float32, for example). A file that
/// cannot be converted is reported, and the others are converted all the same.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  opscope convert -d dump/20240102030405 -out arrays
  opscope convert -d Conv.conv1.0.0.1700000000000000 -out arrays --json")]
pub(crate) struct Arguments {
    /// A dump file, or a directory of them
    #[arg(short = 'd', long = "dump", value_name = "PATH")]
    dump: PathBuf,
    /// Where to write; created if missing (`-out` works too)
    #[arg(long, value_name = "DIR", default_value = ".")]
    out: PathBuf,
    /// Number of threads [default: one for each processor]
    #[arg(long, value_name = "N")]
    jobs: Option<usize>,
    /// Leave arrays alone that exist already, and report them
    #[arg(long)]
    keep_existing: bool,
    /// Print the result as one JSON object
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    modes: ModeArguments,
}

pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    if let Err(error) = std::fs::metadata(&arguments.dump) {
        let message = format!("cannot read `{}`: {error}", arguments.dump.display());
        return Err(Failure::message(UNREADABLE, message));
    }
    let (sources, list_errors) = convert::sources(&arguments.dump);
    if sources.is_empty() && list_errors.is_empty() {
        let message = format!("`{}` holds no dump files", arguments.dump.display());
        return Err(Failure::message(UNREADABLE, message));
    }
    let options = convert::Options {
        out: arguments.out.clone(),
        n_threads: arguments.jobs.unwrap_or_else(default_jobs),
        modes: arguments.modes.modes(),
        is_replacing: !arguments.keep_existing,
    };
    let bar = progress::bytes_bar("converting", sources.iter().map(|s| s.n_bytes).sum());
    let report = convert::run(&sources, &options, |n_bytes| bar.inc(n_bytes))
        .map_err(|error| Failure::new(USAGE, error))?;
    bar.finish_and_clear();
    let mut failures: Vec<(String, String)> = list_errors
        .into_iter()
        .map(|error| (arguments.dump.display().to_string(), chain(&error.into())))
        .collect();
    failures.extend(report.failures.iter().map(|failure| {
        let error =
            std::iter::successors(Some(&failure.error as &dyn std::error::Error), |error| {
                error.source()
            });
        let text = error
            .map(ToString::to_string)
            .collect::<Vec<_>>()
            .join(": ");
        (failure.path.display().to_string(), text)
    }));
    print(arguments, &sources, &report, &failures)?;
    if failures.is_empty() {
        return Ok(());
    }
    let code = if report.n_arrays == 0 {
        UNREADABLE
    } else {
        PARTIAL
    };
    Err(Failure::silent(code))
}

#[expect(clippy::print_stderr, reason = "failures go to standard error")]
fn print(
    arguments: &Arguments,
    sources: &[convert::Source],
    report: &convert::Report,
    failures: &[(String, String)],
) -> Result<(), Failure> {
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
            "bytes_read": report.n_bytes_read,
            "bytes_written": report.n_bytes_written,
            "failures": failures,
        });
        writeln!(stdout(), "{result:#}")?;
        return Ok(());
    }
    for (path, error) in failures {
        // Errors of a whole file name it themselves.
        if error.contains(path.as_str()) {
            eprintln!("opscope: {error}");
        } else {
            eprintln!("opscope: `{path}`: {error}");
        }
    }
    writeln!(
        stdout(),
        "{} of {} converted to {}, {} in `{}`",
        report.n_converted,
        format::count(sources.len() as u64, "file"),
        format::count(report.n_arrays, "array"),
        format::bytes(report.n_bytes_written),
        arguments.out.display()
    )?;
    Ok(())
}

fn chain(error: &anyhow::Error) -> String {
    format!("{error:#}")
}
