//! The command line of `opscope`, for the binary and for Python's `python -m opscope`.

mod arguments;
mod commands;
mod console;
mod engine;
mod exit;
mod format;
mod help;
mod inputs;
mod passed_over;
mod progress;
pub mod remote;
mod signals;

use std::ffi::OsString;

use clap::{Parser, Subcommand};
use opscope_store::run_file::umask;

use crate::commands::{
    cluster, compare, completions, config, convert, diff, doctor, dump, gears, index, man, mcp,
    msaccucmp, nan, op, overflow, ranks, replay, sensitivity, show, sql, verify, view,
};
use crate::console::report;
use crate::exit::{CommandFailure, CommandResult};

pub use crate::commands::mcp::message::{ClientMessage, RpcError, parse as parse_mcp_message};
pub use crate::commands::sql::look_for_duckdb;

/// Dumps the inputs and outputs of every operator of a neural network, and names the operator that
/// causes a difference.
///
/// Exit codes: 0 fine, 1 overflow or difference found, 2 wrong usage or configuration, 3 a file is
/// unreadable, damaged or not runnable, 4 partly done, 130 interrupted.
#[derive(Parser)]
#[command(
    name = "opscope",
    version,
    max_term_width = 100,
    after_help = "Start with:
  opscope doctor                            this machine: what works, what is missing
  opscope diff net.onnx golden.onnx         two models: which operator differs, and why
  opscope compare target golden             two dumps, of any tool
  opscope dump net.onnx --seed 0 --out DIR  every operator's inputs and outputs"
)]
struct CommandLine {
    #[command(subcommand)]
    command: CliCommand,
}

#[derive(Subcommand)]
enum CliCommand {
    // An enum is as large as its largest variant, so the long lists of options are boxed.
    Dump(Box<dump::DumpArguments>),
    Op(Box<op::OpArguments>),
    Config(config::ConfigArguments),
    Convert(convert::ConvertArguments),
    Compare(Box<compare::CompareArguments>),
    Diff(Box<diff::DiffArguments>),
    Show(show::ShowArguments),
    View(view::ViewArguments),
    Index(index::IndexArguments),
    Sql(sql::SqlArguments),
    Overflow(overflow::OverflowArguments),
    Nan(nan::NanArguments),
    Verify(verify::VerifyArguments),
    Ranks(ranks::RanksArguments),
    Replay(replay::ReplayArguments),
    Sensitivity(Box<sensitivity::SensitivityArguments>),
    Msaccucmp(msaccucmp::MsaccucmpArguments),
    Gears(gears::GearsArguments),
    Doctor(doctor::DoctorArguments),
    Completions(completions::CompletionsArguments),
    Mcp(mcp::McpArguments),
    Man(man::ManArguments),
}

/// Runs a command. The first argument is the program's name; returns the exit code.
///
/// Takes over signals while a model runs, which suits a separate process: programs that do other
/// work at the same time should start one.
pub fn run(arguments: Vec<OsString>) -> u8 {
    // Sets an environment variable, which is safe only while no other thread may read one.
    opscope_engine::disable_telemetry();
    remote::enable();
    let arguments = accept_single_dash(arguments);
    let arguments = remote::without_passwords(arguments);
    let code = match help::parse(&arguments) {
        Ok(mut cli) => {
            if let CliCommand::Diff(command) = &mut cli.command {
                command.words = words(&arguments);
            }
            let has_urls = arguments.iter().any(remote::has_url);
            // These commands end by themselves and clean up the disk.
            let ends_itself = matches!(
                cli.command,
                CliCommand::View(_)
                    | CliCommand::Diff(_)
                    | CliCommand::Dump(_)
                    | CliCommand::Mcp(_)
                    | CliCommand::Sql(_)
            );
            if has_urls && !ends_itself {
                signals::clean_before_the_end(remote::clean);
            }
            match cluster_of(&cli.command) {
                Some(_) => ended(cluster::hand_over(&arguments[1..])),
                None => execute(&cli.command),
            }
        }
        Err(error) => {
            // A closed output cannot be reported.
            let _ = if error.use_stderr() {
                console::report_lines(&usage(&arguments, &error))
            } else {
                // Help and the version contain no user input, so clap may print them in its own
                // styles.
                error.print()
            };
            // clap's codes match ours: 0 for help, 2 for a mistake.
            u8::try_from(error.exit_code()).unwrap_or(exit::USAGE)
        }
    };
    remote::clean();
    // Needed when a library calls this, because only a binary's end flushes.
    let _ = console::flush();
    code
}

/// A command line quoted for a shell.
fn words(arguments: &[OsString]) -> Vec<String> {
    let words = arguments.iter().skip(1).map(|word| word.to_string_lossy());
    std::iter::once("opscope".to_owned())
        .chain(words.map(|word| diff::quote(&word)))
        .collect()
}

/// The usage error as text. clap repeats arguments among its own lines, so arguments are escaped to
/// one line each first.
fn usage(arguments: &[OsString], error: &clap::Error) -> String {
    let visible: Vec<OsString> = arguments
        .iter()
        .map(|argument| console::escaped(argument.to_string_lossy()).into())
        .collect();
    let text = match help::parse(&visible) {
        // Escaped arguments may be parsed differently; the original message then fits better.
        Err(same) if same.kind() == error.kind() => same.render().to_string(),
        _ => error.render().to_string(),
    };
    (NUMBER_ERRORS.iter()).fold(text, |text, (library, plain)| text.replace(library, plain))
}

/// The standard library's messages about text that is not a number, and what to say instead.
const NUMBER_ERRORS: [(&str, &str); 4] = [
    (
        ": invalid digit found in string",
        ": expected a whole number",
    ),
    (
        ": cannot parse integer from empty string",
        ": expected a whole number",
    ),
    (
        ": number too large to fit in target type",
        ": the number is too large",
    ),
    (": invalid float literal", ": expected a number"),
];

fn execute(command: &CliCommand) -> u8 {
    // A panic inside an engine becomes that operator's error; its trace would only obscure the
    // report.
    opscope_store::guard::silence_caught_panics();
    signals::take_over();
    let is_doctor = matches!(command, CliCommand::Doctor(_));
    if let Some(umask) = umask().filter(|umask| umask & 0o700 != 0 && !is_doctor) {
        report!(
            "opscope: the umask {umask:03o} removes the owner's permissions from new \
             files, so they could not be read back"
        );
        report!("  hint: `umask 077` keeps them");
        return exit::USAGE;
    }
    let result = match command {
        CliCommand::Dump(arguments) => dump::run(arguments),
        CliCommand::Op(arguments) => op::run(arguments),
        CliCommand::Gears(arguments) => gears::run(arguments),
        CliCommand::Config(arguments) => config::run(arguments),
        CliCommand::Convert(arguments) => convert::run(arguments),
        CliCommand::Compare(arguments) => compare::run(arguments),
        CliCommand::Diff(arguments) => diff::run(arguments),
        CliCommand::Show(arguments) => show::run(arguments),
        CliCommand::View(arguments) => view::run(arguments),
        CliCommand::Index(arguments) => index::run(arguments),
        CliCommand::Sql(arguments) => sql::run(arguments),
        CliCommand::Overflow(arguments) => overflow::run(arguments),
        CliCommand::Nan(arguments) => nan::run(arguments),
        CliCommand::Verify(arguments) => verify::run(arguments),
        CliCommand::Ranks(arguments) => ranks::run(arguments),
        CliCommand::Replay(arguments) => replay::run(arguments),
        CliCommand::Sensitivity(arguments) => sensitivity::run(arguments),
        CliCommand::Msaccucmp(arguments) => msaccucmp::run(arguments),
        CliCommand::Doctor(arguments) => doctor::run(arguments),
        CliCommand::Completions(arguments) => completions::run(arguments),
        CliCommand::Mcp(arguments) => mcp::run(arguments),
        CliCommand::Man(arguments) => man::run(arguments),
    };
    ended(result)
}

/// The cluster to run a command on.
fn cluster_of(command: &CliCommand) -> Option<&str> {
    match command {
        CliCommand::Compare(arguments) => arguments.cluster(),
        CliCommand::Index(arguments) => arguments.cluster(),
        _ => None,
    }
}

/// The exit code of a command; prints its error.
fn ended(result: CommandResult) -> u8 {
    match result {
        Ok(()) => 0,
        Err(failure) => report(&failure),
    }
}

/// The vendor's converter spells one long option with a single dash. The drop-in parses its own
/// arguments.
fn accept_single_dash(arguments: Vec<OsString>) -> Vec<OsString> {
    if arguments
        .get(1)
        .is_some_and(|command| command == "msaccucmp")
    {
        return arguments;
    }
    arguments
        .into_iter()
        .map(|argument| {
            // clap would read `-out` as `-o ut`, and `convert` has an option `-o`.
            if argument == "-out" {
                "--out".into()
            } else {
                argument
            }
        })
        .collect()
}

fn report(failure: &CommandFailure) -> u8 {
    // `opscope show … | head` has satisfied its reader.
    if failure.is_broken_pipe() {
        return 0;
    }
    if let Some(error) = &failure.error {
        report!("opscope: {error:#}");
    }
    if let Some(hint) = &failure.hint {
        report!("  hint: {hint}");
    }
    failure.code
}
